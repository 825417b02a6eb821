"""The commands around a study, as a user types them, and what a setting of the search trains."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest

from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Ledger, Record
from rl_training.autoresearch.lock import StudyLock
from rl_training.autoresearch.outcome import Ending, outcome_of
from rl_training.autoresearch.space import default_space
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.training import TrainingTrials, searchable
from rl_training.cli import autoresearch
from rl_training.cli.main import main
from rl_training.experiment.atomic import write_json
from rl_training.experiment.presets import resolve
from rl_training.experiment.run_folder import describe_run


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two trials and a failure, with a champion."""
    study = Study(tmp_path / "study")
    ledger = Ledger(study.results).repair()
    params = {"agent": "ppo", "learning_rate": 1e-3, "timesteps": 5000}
    ledger.append(Record(1, "t", params, "ok", 50.0, 2.0, "models/trial-0001/model.zip", True, 12.5, verdict="keep"))
    ledger.append(Record(2, "t", params, "timeout", reason="it took longer than 360 s"))
    ledger.append(Record(3, "t", {**params, "learning_rate": 2e-3}, "ok", 80.0, 1.0, extra={"mean_laps": 1.5}))
    model = study.root / "model.zip"
    model.write_bytes(b"weights")
    ChampionTracker(study.champion).update_if_better(50.0, params, model, trial=1, verdict="keep")
    return study


def test_results_are_sorted_and_exported(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--study", str(study.root), "--csv", "--sort", "reward"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["trial"] for row in rows] == ["3", "1", "2"]
    assert rows[0]["params.learning_rate"] == "0.002"
    assert [row["extra.mean_laps"] for row in rows] == ["1.5", "", ""]
    assert rows[2]["mean_reward"] == ""
    assert main(["results", "--study", str(study.root), "--json", "--sort", "status"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(each["origin"], each["trial"]) for each in told] == [("search", 1), ("search", 3), ("search", 2)]
    assert told[2]["mean_reward"] is None
    assert told[0]["params"]["timesteps"] == 5000
    assert main(["results", "--study", str(study.root), "--limit", "1"]) == 0
    table = capsys.readouterr().out
    assert "search 1" in table
    assert "search 2" not in table


def test_status_tells_champion_best_and_failures(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--study", str(study.root)]) == 0
    said = capsys.readouterr().out
    assert "3 trials, not running" in said
    assert "Champion: trial 1, 50.00" in said
    assert "1 timeout, the last: it took longer than 360 s" in said


def test_status_shows_what_runs_here_and_elsewhere(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    here, elsewhere, over = study.run_folder(1, "sweep"), study.run_folder(4), study.run_folder(5)
    for number, folder in enumerate((here, elsewhere, over)):
        Task(number, {"gamma": number / 4}, 0, "t").save(folder)
    write_json(here / "process.json", ProcessIdentity.own().to_dict())
    write_json(over / "result.json", {})
    (here / "metrics.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n100,1.5\n200,3\n")
    study.log.write_bytes(b"2026-11-19 06:05:07      2 of at most 9 trials, about 0:00:30 left\n torn \xe2\x80")
    assert main(["status", "--study", str(study.root)]) == 0
    said = capsys.readouterr().out
    assert f"sweep-0001 runs as process {os.getpid()}: ▁█ 3.0 at step 200\n  gamma=0" in said
    assert "trial-0004" not in said, "no controller runs"
    with StudyLock(study.lock):
        assert main(["status", "--study", str(study.root)]) == 0
    said = capsys.readouterr().out
    assert "trial-0004 runs\n  gamma=0.25" in said
    assert "trial-0005" not in said
    assert "2 of at most 9 trials, about 0:00:30 left" in said


def test_a_damaged_champion_is_not_shown(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["champion", "--study", str(study.root)]) == 0
    assert "50.0" in capsys.readouterr().out
    (study.champion / "model.zip").write_bytes(b"damaged")
    assert main(["champion", "--study", str(study.root)]) == 1
    assert "does not match its manifest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["results", "--study", "nowhere"], "There is no study in 'nowhere'"),
        (["autoresearch", "--timesteps", "9"], "The search decides --timesteps"),
        (["autoresearch", "--jobs", "0"], "--jobs is 0"),
        (["autoresearch", "--trials", "0"], "--trials is 0; expected 1 or more"),
        (["autoresearch", "--explore", "nan"], "--explore is nan; expected 0 or more"),
        (["autoresearch", "--min-trials-before-gp", "1"], "--min-trials-before-gp is 1; expected 2 or more"),
        (["autoresearch", "--min-timesteps", "-5"], "--min-timesteps is -5"),
        (["autoresearch", "--min-timesteps", "9000", "--max-timesteps", "8000"], "low must be the smaller"),
        (["autoresearch", "--timeout", "-1"], "--timeout is -1"),
        (["sweep", "--memory", "nan"], "--memory is nan"),
        (["sweep", "--push-every", "-1"], "--push-every is -1"),
        (["results", "--study", ".", "--limit", "-1"], "--limit is -1"),
        (["autoresearch", "--agent", "pqo"], "pqo"),
        (["champion", "show", "--seconds", "nan"], "--seconds is nan; expected 1 or more"),
        (["compare", "--with", "ppo/donkey", "--seeds", "0"], "--seeds is 0; expected 1 or more"),
        (["compare", "--with", "ppo/donkey", "--timeout", "-1"], "--timeout is -1.0; expected 0 or more"),
        (["demo", "--seed", "-1"], "--seed is -1; expected 0 or more"),
        (["sweep", "--grid", "learning_rate"], "is no axis of a grid"),
        (["sweep", "--agent", "dqn", "--grid", "n_steer=3,abc"], "n_steer cannot be 'abc'"),
        (["sweep", "--grid", "n_steer=3,5"], "--grid n_steer changes nothing in a training of ppo"),
    ],
)
def test_usage_errors_are_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) in (1, 2)
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing was begun"


def test_a_setting_becomes_a_training_config() -> None:
    trials = TrainingTrials(resolve("dqn", config="dqn/donkey"))
    config = trials.config({"agent": "dqn", "n_steer": 7, "n_throttle": 4, "timesteps": 5000, "gamma": 0.9}, seed=3)
    assert (config.donkey.action.n_steer, config.donkey.action.n_throttle) == (7, 4)
    assert (config.total_timesteps, config.seed, config.algo_kwargs["gamma"]) == (5000, 3, 0.9)
    assert config.algo_kwargs["batch_size"] == trials.base.algo_kwargs["batch_size"]
    assert not set(config.algo_kwargs) & {"agent", "n_steer", "timesteps"}


def test_rewards_are_compared_within_one_agent_env_and_reward_only() -> None:
    base = resolve(config="ppo/donkey")
    ours = TrainingTrials(base).comparable
    grid = {"donkey": {"action": {"n_steer": 5, "n_throttle": 3}}}
    assert TrainingTrials(resolve(config="ppo/donkey", over={"seed": 5, **grid})).comparable == ours
    for over in ({"tracks": ["warren"]}, {"reward": "speed"}, {"limits": {"max_cte": 3.0}}):
        assert TrainingTrials(resolve(config="ppo/donkey", over={"donkey": over})).comparable != ours


def test_what_a_record_does_not_name_was_trained_as_in_the_preset() -> None:
    """A record of the base sweep holds its axes only; the rest came from the preset and not from the space."""
    for agent in ("ppo", "dqn"):
        base = resolve(config=f"{agent}/donkey")
        space = searchable(default_space(agent), base, None, None)
        known = {**base.algo_kwargs, "timesteps": base.total_timesteps}
        known |= {"n_steer": base.donkey.action.n_steer, "n_throttle": base.donkey.action.n_throttle}
        whole = {name: known[name] for name in space.names if name in known}
        assert {"learning_rate", "timesteps"} < whole.keys()
        axes = {name: whole[name] for name in ("learning_rate", "timesteps")}
        assert list(space.encode(axes)) == list(space.encode(whole))
    assert space["n_steer"].default == 5


def test_a_token_in_the_command_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["donkey-rl", "autoresearch", "--push-to", "https://me:t0ken@host/x.git"])
    command = describe_run(resolve(config="ppo/donkey"))["command"]
    assert command[-1] == "https://***@host/x.git"


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        (["--sim", "127.0.0.1:9091"], "1500"),
        (["--sim", "127.0.0.1:9091,127.0.0.1:9093"], "750"),
        (["--sim", "127.0.0.1:9091", "--max-timesteps", "7000"], None),
        (["--sim", "127.0.0.1:9091", "--timeout", "1800"], None),
        ([], None),
    ],
)
def test_trials_that_cannot_end_in_time_are_told_of(
    arguments: list[str], seconds: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(autoresearch, "run_loop", lambda *_, **__: 0)
    assert main(["autoresearch", *arguments]) == 0
    assert capsys.readouterr().out.count(f"steps take {seconds} s and a trial has 360 s") == (seconds is not None)


def test_the_search_is_bounded_and_counts_rollouts_over_all_cars() -> None:
    base = resolve(config="ppo/donkey")
    space = searchable(default_space("ppo"), base, 100, 400)
    assert "reward_shaping" not in space.names
    assert (space["timesteps"].low, space["timesteps"].high) == (100, 400)
    assert space["n_steps"].high * base.num_envs == default_space("ppo")["n_steps"].high


def test_a_real_trial_trains_saves_and_is_evaluated_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rl_training")
    base = resolve(config="ppo/cartpole", over={"num_envs": 2, "eval_episodes": 2, "baseline_episodes": 1})
    trials = TrainingTrials(base)
    params = {"agent": "ppo", "timesteps": 128, "n_steps": 32, "batch_size": 32, "n_epochs": 1}
    trials.train(params, tmp_path, seed=1)
    outcome = outcome_of(tmp_path, Ending(0))
    assert outcome.run_status in ("ok", "no_learning")
    assert outcome.mean_reward is not None
    assert outcome.model is not None
    caplog.clear()
    fresh = trials.evaluate(tmp_path / outcome.model, seed=77)
    assert fresh > 0.0
    told = [float(line.split()[-1]) for line in caplog.messages if line.startswith("episode of ")]
    assert len(told) == 2, "each episode is told as it ends: a sign of life in a simulator of real time"
    assert sum(told) / 2 == pytest.approx(fresh, abs=0.01)
    assert fresh == trials.evaluate(tmp_path / outcome.model, seed=77)
