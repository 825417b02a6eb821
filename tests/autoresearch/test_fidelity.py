"""Which trials are stopped and which are trained on: on curves made by hand, in the loop, and in a real training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rl_training.autoresearch.fidelity import Hopeless, best_so_far, hopeless, level_at, to_promote
from rl_training.autoresearch.ledger import Ledger, Record, lessons, observations
from rl_training.autoresearch.outcome import Ending, outcome_of
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.training import TrainingTrials
from rl_training.experiment.presets import resolve
from tests.autoresearch.fake_study import Script
from tests.autoresearch.fake_trials import FakeTrials
from tests.autoresearch.test_controller import controller

STEPS = range(10, 101, 10)


def line(slope: float, steps: range = STEPS) -> list[tuple[float, float]]:
    return [(float(step), slope * step) for step in steps]


def late(slope: float) -> list[tuple[float, float]]:
    """Nothing until step 50, then steep."""
    return [(float(step), slope * max(0, step - 50)) for step in STEPS]


PAST = [line(slope) for slope in range(1, 20)]


def test_a_curve_is_read_at_its_last_point() -> None:
    assert [level_at(line(1.0), step) for step in (9, 10, 19, 20, 500)] == [None, 10.0, 10.0, 20.0, 100.0]


def test_a_policy_that_gets_worse_after_its_peak_has_lost_nothing() -> None:
    looks = [(10.0, 3.0), (20.0, 9.0), (30.0, 4.0), (40.0, 10.0)]
    assert best_so_far(looks) == [(10.0, 3.0), (20.0, 9.0), (30.0, 9.0), (40.0, 10.0)]
    assert best_so_far([]) == []


def test_a_trial_that_stands_where_only_losers_stood_is_stopped() -> None:
    # Ends are 100, 200 … 1900. The kin of 155 are three below and three above it, of 0 the lowest six: the same.
    why = "stopped at step 50 of 100: none of 6 trials that stood about as low as 155.0 there reached 700.0"
    assert hopeless(50, 155.0, 100, PAST) == Hopeless(why, foretold=350.0)
    assert hopeless(50, 0.0, 100, PAST) == Hopeless(why.replace("155.0", "0.0"), foretold=350.0), "lower than all"
    assert hopeless(50, 205.0, 100, PAST) is None, "its kin include one that came out of the worst third"
    assert hopeless(50, 999.0, 100, PAST) is None, "better than all"


def test_nobody_is_stopped_before_the_third_of_the_budget() -> None:
    assert hopeless(33, 0.0, 100, PAST) is None
    assert hopeless(34, 60.0, 100, PAST) is not None


def test_nobody_is_stopped_where_slow_starters_recover() -> None:
    assert hopeless(50, 105.0, 100, [*PAST, late(18.0)]) is None


def test_nobody_is_judged_by_few_or_by_shorter_trials() -> None:
    assert hopeless(50, 105.0, 100, PAST[:17]) is None
    short = [line(slope, range(10, 71, 10)) for slope in range(1, 20)]
    assert hopeless(50, 105.0, 100, short) is None


def record(trial: int, reward: float | None, timesteps: int = 1000, agent: str = "fake", **more: Any) -> Record:
    status = more.pop("run_status", "ok" if reward is not None else "crashed")
    return Record(trial, "t", {"agent": agent, "timesteps": timesteps}, status, reward, **more)


PLAIN = [record(i, float(i)) for i in range(1, 10)]


def test_the_best_short_trial_is_trained_on_once() -> None:
    found = to_promote(PLAIN, [], 4000)
    assert found is not None
    assert (found[0].trial, found[1]) == (9, 2000)
    after = [*PLAIN, record(10, 20.0, 2000, continues=9)]
    assert to_promote(after, [], 4000) is None, "one in three trials at most"
    found = to_promote([*after, record(11, 0.5), record(12, None)], [], 4000)
    assert found is not None
    assert (found[0].trial, found[1]) == (10, 4000)
    assert to_promote(PLAIN, [9], 4000) is None
    ended_by_us = record(10, None, 2000, continues=9, interrupted=True)
    assert to_promote([*PLAIN, ended_by_us, record(11, 0.5), record(12, 0.5)], [], 4000) == (PLAIN[8], 2000)


@pytest.mark.parametrize(
    "best",
    [
        record(10, 99.0, 3500),
        record(10, 99.0, retest_of=3),
        record(10, 99.0, run_status="no_learning"),
        record(10, 99.0, extra={"stopped_at": 400}),
    ],
)
def test_who_is_not_trained_on(best: Record) -> None:
    found = to_promote([*PLAIN, best], [], 4000)
    assert found is None or found[0].trial == 9


def test_a_stopped_trial_speaks_of_the_steps_it_had() -> None:
    told = observations([record(1, 5.0, extra={"stopped_at": 400}), record(2, 6.0)])
    assert [(o.params["timesteps"], o.value) for o in told] == [(400, 5.0), (1000, 6.0)]


def test_the_search_also_hears_what_a_stopped_trial_would_have_come_to() -> None:
    stopped = record(1, 5.0, extra={"stopped_at": 400, "foretold": 8.0})
    by_an_older_release = record(2, 4.0, extra={"stopped_at": 400})
    not_stopped = record(3, 6.0, extra={"foretold": 9.0})
    told = lessons([stopped, by_an_older_release, not_stopped, record(4, None)])
    assert [(o.params["timesteps"], o.value, o.foretold) for o in told] == [
        (400, 5.0, False), (1000, 8.0, True), (400, 4.0, False), (1000, 6.0, False), (1000, None, False),
    ]  # fmt: skip


def test_the_loop_trains_its_best_on_and_counts_it_as_a_trial(tmp_path: Path) -> None:
    script = Script([{"reward": float(i), "timesteps": 100} for i in range(12)])
    controller(tmp_path, script, guard=False, trials=12, longest=400, runner=FakeTrials()).run()
    records = Ledger(Study(tmp_path).results).records
    longer = [(r.trial, r.continues, r.params["timesteps"], r.mean_reward) for r in records if r.continues]
    # The ninth trial is the first that may be a longer one: twice the best so far, which then is worth twice as much.
    assert longer == [(9, 8, 200, 14.0), (12, 9, 400, 28.0)]
    origin = records[7]
    assert (records[8].seed, records[8].champion) == (origin.seed, True)


TINY = {"num_envs": 2, "eval_episodes": 2, "baseline_episodes": 1, "eval_interval": 0, "checkpoint_interval": 0}
SETTING = {"agent": "ppo", "timesteps": 128, "n_steps": 32, "batch_size": 32, "n_epochs": 1, "learning_rate": 1e-3}


def weights(model: Path) -> dict[str, torch.Tensor]:
    import stable_baselines3

    return stable_baselines3.PPO.load(model).policy.state_dict()


def test_a_training_taken_further_is_the_longer_training(tmp_path: Path) -> None:
    trials = TrainingTrials(resolve(config="ppo/cartpole", over=TINY))
    trials.train(SETTING, tmp_path / "short", seed=1)
    longer = {**SETTING, "timesteps": 256}
    trials.extend(longer, tmp_path / "extended", 1, tmp_path / "short")
    trials.train(longer, tmp_path / "long", seed=1)
    found, wanted = weights(tmp_path / "extended" / "model.zip"), weights(tmp_path / "long" / "model.zip")
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert (
        outcome_of(tmp_path / "extended", Ending(0)).mean_reward == outcome_of(tmp_path / "long", Ending(0)).mean_reward
    )


def test_a_hopeless_training_is_stopped_and_says_so(tmp_path: Path) -> None:
    study = Study(tmp_path)
    trials = TrainingTrials(resolve(config="ppo/cartpole", over=TINY))
    ours = trials.comparable
    ledger = Ledger(study.results).repair()
    for number in range(1, 21):  # fourteen are good from the start, the others never
        folder = study.run_folder(number)
        folder.mkdir(parents=True)
        level = 900.0 if number > 6 else 90.0
        looks = [json.dumps({"step": step, "mean_reward": level}) for step in (64, 128, 320)]
        (folder / "evaluations.jsonl").write_text("\n".join(looks) + "\n")
        facts = {"env_set": ours.env_set, "reward_version": ours.reward_version}
        ledger.append(record(number, level, 320, "ppo", model_path=f"models/{folder.name}/model.zip", **facts))
    folder = study.run_folder(21)
    setting = {**SETTING, "timesteps": 320}
    stopping = replace(trials, base=replace(trials.base, eval_interval=64), stop_from=64)
    stopping.train(setting, folder, seed=1)
    outcome = outcome_of(folder, Ending(0))
    assert outcome.mean_reward is not None
    assert outcome.reason.startswith("stopped at step 128 of 320: none of 6 trials")
    assert outcome.extra["stopped_at"] == 128
    assert outcome.extra["foretold"] == 90.0
    trials.train({**setting, "timesteps": 128}, tmp_path / "short", seed=1)
    found, wanted = weights(folder / "model.zip"), weights(tmp_path / "short" / "model.zip")
    assert all(torch.equal(found[name], wanted[name]) for name in wanted), "what a budget of 128 steps gives"
