"""Rewards on moments made by hand: two cars, figures worked out beside them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from rl_training.errors import ConfigError, UsageError
from rl_training.simulator import state as s
from rl_training.simulator.state import METRE
from rl_training.wrappers.moment import Moment, StartLineClock, moment_of_info
from rl_training.wrappers.rewards import REWARDS, Efficiency, make_reward
from rl_training.wrappers.speed_reward import RewardWrapper, SpeedRewardWrapper

MAX_CTE = 8.0


def moment(
    *,
    forward: float = 0.0,
    cte: float = 0.0,
    offset: float = 0.0,
    furthest: float = 0.0,
    place: tuple[float, float] = (0.0, 0.0),
    crashed: bool = False,
    touching: bool = False,
    lap: float = 0.0,
    cars: int = 1,
) -> Moment:
    """The same for all cars; speeds in m/s, distances along and on the ground in m, cte and offset in u."""
    rows = np.zeros((cars, s.STATE_COLUMNS))
    rows[:, s.FORWARD] = forward * METRE
    rows[:, s.CTE], rows[:, s.OFFSET] = cte, offset
    rows[:, s.FURTHEST] = furthest * METRE
    rows[:, s.X], rows[:, s.Z] = place[0] * METRE, place[1] * METRE
    rows[:, s.HIT] = -1.0
    rows[:, s.TOUCHING] = 3.0 if touching else -1.0
    return Moment(rows, np.tile([-7.0, 3.0], (cars, 1)), 0.05, MAX_CTE, np.full(cars, crashed), np.full(cars, lap))


def paid(name: str, at: Moment) -> float:
    reward = make_reward(name, 1)
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    return float(reward(at)[0][0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("donkey", 1.5),  # 2 × (1 - 2/8)
        ("speed", 1.5),
        ("v1", 1.5),
        ("v2", 1.8),  # 1.5 × (1 + 0.1·2)
        ("v3", 1.8),  # the first step goes straight: e = 1
        ("v4", 0.9),  # 0.75 × 1 × 1.2
        ("v4b", 0.9),
        ("v5", 0.15),  # 2/10 × 0.75
        ("v6", 0.15),
        ("v7", 0.15),
        ("race", 1.5),  # 0.1 m in 0.05 s × 0.75
    ],
)
def test_formulas_at_two_metres_a_second_and_a_quarter_off_the_line(name: str, expected: float) -> None:
    assert paid(name, moment(forward=2.0, cte=-2.0, furthest=0.1, place=(0.0, 0.1))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"), [("donkey", -1.0), ("speed", -1.0), ("v2", -1.0), ("v7", -1.0), ("race", -5.0)]
)
def test_a_crash_costs(name: str, expected: float) -> None:
    assert paid(name, moment(forward=2.0, place=(0.0, 0.1), crashed=True)) == pytest.approx(expected)


def test_cte_counts_alike_on_both_sides_and_at_most_once() -> None:
    assert paid("speed", moment(forward=2.0, cte=3.0)) == paid("speed", moment(forward=2.0, cte=-3.0))
    assert paid("speed", moment(forward=2.0, cte=100.0)) == 0.0


@pytest.mark.parametrize(
    ("offset", "touching", "factor"),
    [(-7.0, False, 1), (3.0, False, 1), (3.5, False, 0), (4.0, False, -1), (-9.0, False, -1), (0.0, True, -1)],
)  # fmt: skip
def test_race_charges_progress_off_the_road_and_along_walls(offset: float, touching: bool, factor: float) -> None:
    assert paid("race", moment(furthest=0.1, offset=offset, touching=touching)) == pytest.approx(2.0 * factor)


def test_race_pays_no_stretch_twice_and_forgets_at_a_new_episode() -> None:
    reward = make_reward("race", 1)
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    assert reward(moment(furthest=1.0))[0][0] == pytest.approx(20.0)
    assert reward(moment(furthest=1.0))[0][0] == 0.0
    assert reward(moment(furthest=1.5))[0][0] == pytest.approx(10.0)
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    assert reward(moment(furthest=0.5))[0][0] == pytest.approx(10.0)


def test_efficiency_is_one_ahead_and_nothing_round_a_circle() -> None:
    ahead, around = Efficiency(1, 30), Efficiency(1, 30)
    for k in range(1, 61):
        straight = ahead(moment(place=(0.0, 0.1 * k)))
        angle = 2.0 * np.pi * k / 30
        circle = around(moment(place=(np.cos(angle), np.sin(angle))))
    assert straight[0] == pytest.approx(1.0)
    assert circle[0] == pytest.approx(0.0, abs=1e-9)


def test_efficiency_of_a_corner_driven_twice_as_far_as_it_leads() -> None:
    efficiency = Efficiency(1, 2)
    efficiency(moment(place=(0.0, 0.0)))
    efficiency(moment(place=(3.0, 0.0)))
    assert efficiency(moment(place=(3.0, 4.0)))[0] == pytest.approx(5.0 / 7.0)


@pytest.mark.parametrize("name", ["v6", "v7"])
def test_the_gate_shuts_on_a_circle_and_then_ends_the_episode(name: str) -> None:
    reward = make_reward(name, 1)
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    ends = []
    for k in range(1, 80):
        angle = 2.0 * np.pi * k / 10
        rewards, ended = reward(moment(forward=2.0, furthest=0.01 * k, place=(np.cos(angle), np.sin(angle))))
        ends.append(bool(ended[0]))
    assert ends.index(True) >= 20
    assert rewards[0] == -1.0


def test_v7_ends_without_progress_and_on_a_short_lap() -> None:
    reward = make_reward("v7", 1)
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    ended = [bool(reward(moment(forward=1.0, place=(0.0, 0.05 * k)))[1][0]) for k in range(1, 62)]
    assert ended.index(True) == 59
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    assert reward(moment(furthest=1.0, lap=4.9))[1][0]
    assert not reward(moment(furthest=2.0, lap=5.1))[1][0]


def test_v4b_fines_short_laps_by_how_short_they_are() -> None:
    lap = moment(place=(0.0, 0.1), lap=2.0)
    assert paid("v4b", lap) == pytest.approx(paid("v4", lap) - 25.0)


@pytest.mark.parametrize("name", list(REWARDS))
def test_cars_of_a_batch_do_not_share_memory(name: str) -> None:
    """Car 1 begins anew in the middle; car 0 must be paid as if it were alone."""
    alone, batch = make_reward(name, 1), make_reward(name, 2)
    nowhere = np.zeros((2, s.STATE_COLUMNS))
    alone.begin(0, nowhere)
    batch.begin(0, nowhere), batch.begin(1, nowhere)
    rng = np.random.default_rng(0)
    for k in range(90):
        where = (float(np.cos(0.2 * k)), float(np.sin(0.3 * k)))
        values = {"forward": float(rng.uniform(0, 2)), "cte": float(rng.uniform(-9, 9)), "furthest": 0.02 * k}
        if k == 40:
            batch.begin(1, nowhere)
        one, end = alone(moment(**values, place=where))
        both, ends = batch(moment(**values, place=where, cars=2))
        assert (one[0], end[0]) == (both[0], ends[0])


@pytest.mark.parametrize("name", list(REWARDS))
def test_a_new_episode_forgets_the_old_one(name: str) -> None:
    used, fresh = make_reward(name, 1), make_reward(name, 1)
    start = np.zeros((1, s.STATE_COLUMNS))
    used.begin(0, start)
    for k in range(45):
        used(moment(forward=1.0, furthest=9.0, place=(float(np.cos(k)), float(np.sin(k)))))
    used.begin(0, start), fresh.begin(0, start)
    for k in range(1, 70):
        at = moment(forward=2.0, cte=1.0, furthest=0.02 * k, place=(0.0, 0.03 * k))
        (paid_again, ended_again), (paid_first, ended_first) = used(at), fresh(at)
        assert paid_again[0] == pytest.approx(paid_first[0], rel=1e-9)
        assert ended_again[0] == ended_first[0]


def test_low_steps_must_follow_each_other_to_end_an_episode() -> None:
    """Fifteen steps at rest, a stretch ahead, fifteen at rest: thirty low steps, but never twenty in a row."""
    reward = make_reward("v6", 1)
    reward.begin(0, np.zeros((1, s.STATE_COLUMNS)))
    place, ends = 0.0, []
    for k in range(89):  # the window of 30 steps forgets the stretch 30 steps after it
        place += 0.1 if 15 <= k < 45 else 0.0
        ends.append(bool(reward(moment(place=(0.0, place)))[1][0]))
    assert not any(ends)
    ends = [bool(reward(moment(place=(0.0, place + 0.1 * (k % 2))))[1][0]) for k in range(60)]
    assert any(ends), "to and fro it ends"


def test_an_unknown_reward_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="'race'"):
        make_reward("rase", 1)


def test_laps_are_timed_from_crossing_to_crossing_of_the_same_line() -> None:
    clock = StartLineClock(2)
    cars = np.zeros((2, s.STATE_COLUMNS))

    def tick(line: float, time: float) -> float:
        clock.clear()
        cars[:, s.LINE_EVENT], cars[:, s.LINE_TIME] = -1.0, time
        cars[0, s.LINE_EVENT] = line
        clock.tick(cars)
        assert clock.lap_seconds[1] == 0.0
        return float(clock.lap_seconds[0])

    assert [tick(0, 1.0), tick(-1, 2.0), tick(1, 3.0), tick(0, 4.5), tick(0, 6.0)] == [0.0, 0.0, 0.0, 3.5, 1.5]
    clock.begin(0)
    assert tick(0, 9.0) == 0.0


class Told(gym.Env[Any, Any]):
    """Tells the infos it was given, one a step; its own reward is 7."""

    observation_space = action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, infos: list[dict[str, Any]], crash: bool = False) -> None:
        self.infos, self.crash = infos, crash

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.left = list(self.infos)
        return np.zeros(2, np.float32), {"furthest": 0.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(2, np.float32), 7.0, self.crash, False, self.left.pop(0)


def wrapped_reward(info: dict[str, Any], crash: bool = False) -> float:
    env = SpeedRewardWrapper(Told([info], crash))
    env.reset()
    _, reward, _, _, seen = env.step(np.zeros(2))
    assert seen["env_reward"] == 7.0
    return float(reward)


def test_speed_reward_wrapper() -> None:
    assert wrapped_reward({"speed": 4.0, "cte": -2.0}) == pytest.approx(3.0)
    assert wrapped_reward({"speed": 4.0, "cte": 20.0}) == 0.0
    assert wrapped_reward({"speed": 4.0, "cte": 2.0}, crash=True) == -1.0


@pytest.mark.parametrize("info", [{"speed": 4.0}, {"cte": 2.0}, {"speed": None, "cte": 1.0}, {}])
def test_speed_reward_falls_back_to_the_envs_own(info: dict[str, Any]) -> None:
    assert wrapped_reward(info) == 7.0


def test_speed_reward_needs_a_width() -> None:
    with pytest.raises(UsageError, match="max_cte"):
        SpeedRewardWrapper(Told([]), max_cte=0.0)


def test_any_reward_over_a_single_env() -> None:
    env = RewardWrapper(Told([{"furthest": 0.1}, {"furthest": 0.1, "hit": "wall"}]), "race")
    env.reset()
    assert env.step(np.zeros(2))[1] == pytest.approx(2.0)
    assert env.step(np.zeros(2))[1] == pytest.approx(-5.0)


def test_info_and_batch_tell_the_same_moment() -> None:
    info = {"pos": (1.0, 0.0, 2.0), "speed": 2.5, "forward_vel": -1.5, "cte": 1.0, "offset": 1.2, "furthest": 3.0}
    told = moment_of_info(info, seconds=0.05, max_cte=MAX_CTE, crashed=False)
    assert told.speed[0] == pytest.approx(2.5)
    assert told.forward[0] == pytest.approx(-1.5)
    assert told.furthest[0] == pytest.approx(3.0)
    assert told.closeness[0] == pytest.approx(0.875)
    np.testing.assert_allclose(told.position, [[1.0, 2.0]])
    assert not told.touching[0]
