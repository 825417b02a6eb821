"""Proposals: stateless, distinct, away from failures, and good on functions whose best is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rl_training.autoresearch.acquisition import MIN_TRIALS, TOP, Observation, recommend, suggest
from rl_training.autoresearch.space import Parameter, Space, default_space

PLANE = Space((Parameter("x", "float"), Parameter("y", "float")))


def hill(params: dict[str, float]) -> float:
    """1 at (0.7, 0.3), about half of that at 0.25 from there."""
    return math.exp(-10 * ((params["x"] - 0.7) ** 2 + (params["y"] - 0.3) ** 2))


def study(space, function, trials, seed, noise=0.0, fails=lambda params: False):
    rng = np.random.default_rng(seed)
    observations = []
    for _ in range(trials):
        params = suggest(space, observations, [], seed).params
        value = None if fails(params) else function(params) + noise * rng.standard_normal()
        observations.append(Observation(params, value))
    return observations


def seen(count, seed=0):
    rng = np.random.default_rng(seed)
    points = [{"x": float(x), "y": float(y)} for x, y in rng.random((count, 2)).round(6)]
    return [Observation(point, hill(point)) for point in points]


def test_same_question_same_answer():
    observations = seen(10)
    first, second = (suggest(PLANE, observations, [{"x": 0.5, "y": 0.5}], 3) for _ in range(2))
    assert first == second
    assert suggest(PLANE, observations, [], 4).params != first.params


def test_starts_space_filling_and_logs_candidates_as_soon_as_there_is_a_model():
    nothing = suggest(PLANE, [], [], 0)
    assert (nothing.rule, nothing.top) == ("space-filling", ())
    two = suggest(PLANE, seen(MIN_TRIALS - 1), [], 0)
    assert two.rule == "space-filling"
    assert len(two.top) == TOP
    assert suggest(PLANE, seen(MIN_TRIALS), [], 0).rule == "UCB"
    assert suggest(PLANE, seen(8), [], 0, min_trials=9).rule == "space-filling"
    assert suggest(default_space("ppo"), [], [], 0).rule == "space-filling"


def test_the_start_covers_the_space():
    space = default_space("ppo")
    start = []
    for _ in range(24):
        start.append(Observation(suggest(space, start, [], 1).params, None))  # no values: nothing but space-filling
    for column in np.array([space.encode(o.params) for o in start]).T[:4]:
        assert len(np.unique(np.floor(column * 4))) == 4
    assert len({tuple(o.params.items()) for o in start}) == 24


def test_top_candidates_are_ranked_different_and_add_up():
    explore = 2.5
    top = suggest(PLANE, seen(12), [], 0, explore=explore).top
    assert len(top) == TOP
    assert [c.ucb for c in top] == sorted((c.ucb for c in top), reverse=True)
    for candidate in top:
        assert candidate.ucb == pytest.approx(candidate.mean + explore * candidate.std)
    places = np.array([PLANE.encode(c.params) for c in top])
    gaps = np.abs(places[:, None] - places).max(axis=2) + np.eye(TOP)
    assert gaps.min() >= 0.05
    suggestion = suggest(PLANE, seen(12), [], 0)
    assert suggestion.params == suggestion.top[0].params


def test_explore_trades_the_mean_for_the_unknown():
    greedy, curious = (suggest(PLANE, seen(15), [], 0, explore=k).top[0] for k in (0.0, 20.0))
    assert greedy.mean > curious.mean
    assert greedy.std < curious.std


def test_parallel_workers_get_different_settings():
    running = []
    for _ in range(6):
        running.append(suggest(PLANE, seen(12), running, 0).params)
    places = np.array([PLANE.encode(params) for params in running])
    gaps = np.abs(places[:, None] - places).max(axis=2) + np.eye(6)
    assert gaps.min() > 0.01
    start = [suggest(PLANE, [], running[:i], 0).params for i in range(4)]
    assert len({tuple(params.values()) for params in start}) == 4


def test_a_running_setting_is_not_proposed_again_on_a_small_grid():
    space = Space((Parameter("n", "int", 1, 3),))
    observations = [Observation({"n": n}, float(n)) for n in (1, 2, 3, 3)]
    assert suggest(space, observations, [], 0).params == {"n": 3}
    assert suggest(space, observations, [{"n": 3}], 0).params != {"n": 3}
    everything = [{"n": 1}, {"n": 2}, {"n": 3}]
    assert suggest(space, observations, everything, 0).params in everything


def test_a_choice_that_always_fails_is_given_up():
    space = Space((Parameter("kind", "categorical", choices=("a", "b", "c")), Parameter("x", "float")))
    trials = study(space, lambda p: p["x"], 24, 0, fails=lambda p: p["kind"] == "b")
    failures = [o for o in trials if not o.ok]
    assert len(failures) <= 8
    assert len({tuple(o.params.values()) for o in failures}) == len(failures)


def test_the_edge_of_a_region_that_fails_is_found():
    """The function rises towards x = 1, where every trial beyond 0.7 fails."""
    trials = study(PLANE, lambda p: p["x"], 25, 0, fails=lambda p: p["x"] > 0.7)
    assert recommend(PLANE, trials).params["x"] > 0.66


def test_a_chance_failure_does_not_close_a_good_place():
    """A failure at the top of a well-known hill is worth about what the model thought, one among failures much less."""
    top = {"x": 0.7, "y": 0.3}
    around = [{"x": 0.7 + dx, "y": 0.3 + dy} for dx in (-0.03, 0.03) for dy in (-0.03, 0.03)]
    known = seen(30)
    chance = suggest(PLANE, [*known, Observation(top, None)], [], 0, explore=0.0).params
    assert hill(chance) > 0.8
    closed = [*known, *(Observation(p, None) for p in [top, *around, *around, *around])]
    assert hill(suggest(PLANE, closed, [], 0, explore=0.0).params) < hill(chance) - 0.05


def test_a_value_that_is_no_number_is_a_failure():
    observations = [*seen(6), Observation({"x": 0.1, "y": 0.1}, float("nan")), Observation({"x": 0.2, "y": 0.1}, None)]
    assert all(math.isfinite(c.ucb) for c in suggest(PLANE, observations, [], 0).top)
    assert recommend(PLANE, [Observation({"x": 0.1, "y": 0.1}, None)]) is None


def test_the_incumbent_is_not_the_luckiest_run():
    observations = seen(40, seed=2)
    lucky = Observation({"x": 0.05, "y": 0.95}, 1.3)
    unlucky = [Observation({"x": 0.05 + 0.01 * i, "y": 0.95}, 0.0) for i in range(1, 4)]
    chosen = recommend(PLANE, [*observations, lucky, *unlucky])
    assert chosen.params != lucky.params
    assert hill(chosen.params) > 0.6


@pytest.mark.parametrize(("noise", "limit"), [(0.0, 0.01), (0.1, 0.12)])
def test_finds_the_hill(noise, limit):
    misses = [1 - hill(recommend(PLANE, study(PLANE, hill, 25, seed, noise)).params) for seed in range(4)]
    assert np.mean(misses) < limit


def test_finds_the_best_of_a_mixed_space():
    space = Space(
        (
            Parameter("kind", "categorical", choices=("a", "b", "c")),
            Parameter("n", "int", 1, 8),
            Parameter("rate", "log_float", 1e-5, 1e-1),
            Parameter("extra", "float", parent="kind", parent_values=("b",)),
        )
    )

    def reward(params):
        base = {"a": 0.0, "b": 0.5, "c": 0.2}[params["kind"]] + 0.5 * (params.get("extra", 0.0) > 0.5)
        return base - 0.1 * abs(params["n"] - 6) - 0.3 * abs(math.log10(params["rate"]) + 3)

    observations = study(space, reward, 40, 1)
    best = recommend(space, observations).params
    assert best["kind"] == "b"
    assert best["extra"] > 0.5
    assert abs(best["n"] - 6) <= 1
    assert reward(best) > 0.7
    assert all(("extra" in o.params) == (o.params["kind"] == "b") for o in observations)


@pytest.mark.parametrize("value", [0.0, 1e12, -1e-12])
def test_equal_rewards_are_no_trouble(value):
    observations = [Observation(o.params, value) for o in seen(8)]
    suggestion = suggest(PLANE, observations, [], 0)
    assert all(math.isfinite(c.ucb) and c.std > 0 for c in suggestion.top)


def test_a_model_that_foretells_nothing_does_not_roam():
    """Pure noise: free maximisation of its prior uncertainty would sit in the corners, the sequence does not."""
    rng = np.random.default_rng(4)
    noise = [Observation(o.params, float(rng.standard_normal())) for o in seen(12)]
    assert suggest(PLANE, noise, [], 0).rule == "space-filling by UCB"
    assert suggest(PLANE, seen(12), [], 0).rule == "UCB"
