"""Stop, resume, evaluate: a run that is ended and continued is the run that was never ended, to the last bit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import EzPickle
from stable_baselines3.common.callbacks import BaseCallback

from rl_training import api
from rl_training.errors import ConfigError, ModelError, TrackError
from rl_training.experiment.checkpoint import find_checkpoint
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.registry import algorithm_spec
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.metrics_log import MetricsCsv, read_metrics
from rl_training.runtime.milestones import read_looks
from rl_training.runtime.trainer import train
from tests.runs import tiny_donkey


class Interrupt(BaseCallback):
    """Ends the process, as far as the trainer can tell, at a step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.step:
            raise KeyboardInterrupt
        return True


def weights(run: RunFolder) -> dict[str, Any]:
    config = run.config()
    spec = algorithm_spec(config.algo)
    parameters = spec.load(spec.algorithm(), run.model, None, "cpu").get_parameters()
    return {f"{part}.{name}": value for part, values in parameters.items() for name, value in _flat(values)}


def _flat(values: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(values, dict):
        return [leaf for name, value in values.items() for leaf in _flat(value, f"{prefix}.{name}")]
    if isinstance(values, list):
        return [leaf for k, value in enumerate(values) for leaf in _flat(value, f"{prefix}.{k}")]
    return [(prefix, values)]


def assert_same_run(one: RunFolder, other: RunFolder) -> None:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, theirs[name]), name
        else:
            assert value == theirs[name], name
    first, second = one.result(), other.result()
    assert first is not None
    assert second is not None
    for name in ("episode_rewards", "timesteps", "run_status", "baseline", "model"):
        assert first[name] == second[name], name
    assert read_looks(one) == read_looks(other)


def stopped_and_resumed(config: TrainConfig, folder: Path, at: int) -> RunFolder:
    run = RunFolder.create(folder, config)
    with pytest.raises(KeyboardInterrupt):
        train(config, run, quiet=True, callbacks=[Interrupt(at)])
    assert run.result() is None
    np.random.seed(987)  # noqa: NPY002 - whatever the next process has in its generators
    torch.manual_seed(987)
    api.resume(folder)
    return run


@pytest.mark.parametrize("algo", ["ppo", "ppg", "dqn", "drq", "drqv2", "sac"])
def test_resumed_equals_uninterrupted_bit_for_bit_on_the_embedded_world(algo: str, tmp_path: Path) -> None:
    config = tiny_donkey(algo, eval_interval=64, checkpoint_interval=64)
    whole = RunFolder.create(tmp_path / "whole", config)
    train(config, whole, quiet=True)
    resumed = stopped_and_resumed(config, tmp_path / "resumed", at=90)
    assert_same_run(whole, resumed)


def test_classic_gym_envs_resume_bit_for_bit_too(tmp_path: Path) -> None:
    config = TrainConfig(
        env="CartPole-v1",
        num_envs=2,
        total_timesteps=256,
        algo_kwargs={"n_steps": 32, "batch_size": 32},
        eval_episodes=2,
        checkpoint_interval=128,
    )
    whole = RunFolder.create(tmp_path / "whole", config)
    train(config, whole, quiet=True)
    assert_same_run(whole, stopped_and_resumed(config, tmp_path / "resumed", at=150))


class Forgetful(gym.Env[Any, Any], EzPickle):
    """Pickles as it was made, as Gymnasium's Box2D and MuJoCo envs do."""

    observation_space = Box(-1.0, 1.0, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self) -> None:
        EzPickle.__init__(self)
        self.steps: int | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.steps is not None, "step before reset"
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, self.steps == 9, False, {}


def test_envs_that_forget_when_pickled_begin_new_episodes(tmp_path: Path) -> None:
    gym.register("Forgetful-v0", Forgetful)
    config = TrainConfig(
        env="Forgetful-v0",
        total_timesteps=64,
        algo_kwargs={"n_steps": 32, "batch_size": 32},
        eval_episodes=1,
        baseline_episodes=0,
    )
    api.train(config, tmp_path)
    try:
        assert api.resume(tmp_path, total_timesteps=96)["timesteps"] == 96
    finally:
        del gym.registry["Forgetful-v0"]


def test_a_finished_run_goes_on_to_a_new_total_and_keeps_one_line_of_metrics(tmp_path: Path) -> None:
    config = tiny_donkey("ppo", eval_interval=64)
    api.train(config, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    result = api.resume(run.path, total_timesteps=192)
    assert result["timesteps"] == 192
    assert run.config() == replace(config, total_timesteps=192)
    steps = [float(row["time/total_timesteps"]) for row in read_metrics(run.metrics)]
    assert steps == sorted(set(steps))
    assert steps[-1] == 192
    with pytest.raises(ConfigError, match="has 192 steps behind it"):
        api.resume(run.path, total_timesteps=100)
    assert run.result() is not None  # nothing was touched


@pytest.mark.parametrize("damage", ["files.json", "state.pkl", "unreadable", "track"])
def test_a_finished_run_that_cannot_go_on_keeps_its_outcome(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.train(tiny_donkey("ppo"), tmp_path)
    point = tmp_path / "checkpoints" / "0000000128"
    if damage == "unreadable":  # whole, but written by versions that are no longer installed
        monkeypatch.setattr("rl_training.runtime.resume_point.set_random_state", _unknown_class)
    elif damage == "track":
        config = tmp_path / "config.yaml"
        config.write_text(config.read_text().replace("generated_track", "gone"))
    else:
        (point / damage).write_bytes(b"{")
    with pytest.raises((ModelError, TrackError)):
        api.resume(tmp_path, total_timesteps=192)
    monkeypatch.undo()
    assert json.loads((tmp_path / "result.json").read_text())["timesteps"] == 128
    assert find_checkpoint(tmp_path).model == tmp_path / "model.zip"


def _unknown_class(*_: Any) -> None:
    raise AttributeError("no such class")


def test_a_run_that_cannot_begin_leaves_its_folder_free(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for episodes in (2, 0):
        with pytest.raises(TrackError):
            api.train(tiny_donkey("ppo", donkey={"tracks": ["nowhere"]}, baseline_episodes=episodes), folder)
        assert not folder.exists()


def test_the_best_look_is_kept_and_is_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_donkey("ppo", eval_interval=32)
    result = api.train(config, tmp_path)
    looks = read_looks(RunFolder(tmp_path))
    assert [line["step"] for line in looks] == [32, 64, 96, 128]
    assert result["model"] == "best_model.zip"
    assert set(result["sha256"]) == {"model.zip", "best_model.zip"}
    found = find_checkpoint(tmp_path)
    assert found.model == tmp_path / "best_model.zip"
    assert found.config == config
    again = api.evaluate(tmp_path, episodes=2, seed=config.seed + 1_000_003)
    assert again.mean_reward == max(line["mean_reward"] for line in looks)


def test_an_exchanged_model_is_refused(tmp_path: Path) -> None:
    api.train(tiny_donkey("ppo"), tmp_path)
    with (tmp_path / "model.zip").open("ab") as file:
        file.write(b"!")
    with pytest.raises(ModelError, match="SHA-256 differs"):
        api.evaluate(tmp_path)


def test_a_fault_is_a_status_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("rl_training.runtime.trainer.build_model", fail)
    with pytest.raises(MemoryError):
        api.train(tiny_donkey("ppo"), tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["run_status"] == "out_of_memory"


def test_metrics_continue_after_a_torn_row(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("time/total_timesteps,train/loss\n10,0.5\n20,0.4\n30,0.3\n4")
    metrics = MetricsCsv(path, until=20)
    metrics.write({"time/total_timesteps": 25, "train/loss": np.float32(0.25)}, {}, 25)
    metrics.write({"time/total_timesteps": 35, "eval/mean_reward": 9.0}, {}, 35)
    rows = read_metrics(path)
    assert [row["time/total_timesteps"] for row in rows] == ["10", "20", "25", "35"]
    assert [row["train/loss"] for row in rows] == ["0.5", "0.4", "0.25", ""]
    assert rows[-1]["eval/mean_reward"] == "9.0"
