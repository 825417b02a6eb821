"""Tiny configs of every kind, for tests that train."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rl_training.experiment.config import TrainConfig
from rl_training.experiment.presets import resolve
from rl_training.experiment.registry import Hook, algorithm_spec
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.metrics_log import read_metrics

ROLLOUT = {"n_steps": 16, "batch_size": 32, "n_epochs": 1}
REPLAY = {"learning_starts": 24, "batch_size": 8, "buffer_size": 500}
SMALL_IMAGE = {"policy_kwargs": {"encoder": "compact", "hidden": [16]}}
TINY: dict[str, dict[str, Any]] = {
    "ppo": {**ROLLOUT},
    "ppg": {**ROLLOUT, "n_policy_iterations": 2, "auxiliary_epochs": 1, "auxiliary_batch_size": 32},
    "dqn": {**REPLAY, "train_freq": 4, "gradient_steps": 1, "target_update_interval": 16},
    "sac": {**REPLAY, "train_freq": 4, "gradient_steps": 1},
    "drq": {**REPLAY, **SMALL_IMAGE, "train_freq": 4, "gradient_steps": 1},
    "drqv2": {**REPLAY, **SMALL_IMAGE, "train_freq": 4, "gradient_steps": 1},
}


def tiny_donkey(algo: str, **over: Any) -> TrainConfig:
    """Two cars and a few updates, with episodes of at most two seconds."""
    values: dict[str, Any] = {
        "num_envs": 2,
        "total_timesteps": 128,
        "eval_episodes": 2,
        "baseline_episodes": 2,
        "eval_interval": 0,
        "checkpoint_interval": 0,
        "algo_kwargs": TINY[algo],
        "donkey": {"limits": {"max_steps": 40}},
    }
    return resolve(config=f"{algo}/donkey", over={**values, **over})


def check_a_tiny_run_fills_its_folder(algo: str, hook: Any, folder: Path) -> None:
    """Train by the registry's hook, which must be this one, and look at everything that is left."""
    config = tiny_donkey(algo)
    run = RunFolder.create(folder, config)
    registered = algorithm_spec(algo).train
    assert isinstance(registered, Hook)
    assert registered.resolve() is hook
    result = hook(config, run, quiet=True)
    assert result == {key: value for key, value in (run.result() or {}).items() if key != "schema"}
    assert result["timesteps"] == config.total_timesteps
    assert math.isfinite(result["mean_reward"])
    assert len(result["episode_rewards"]) == config.eval_episodes
    assert set(result["sha256"]) == {"model.zip"}
    rows = read_metrics(run.metrics)
    losses = [float(row[name]) for row in rows for name in row if "loss" in name and row[name]]
    assert losses
    assert all(math.isfinite(loss) for loss in losses)
    assert any((folder / "tensorboard").iterdir())
    assert (folder / "learning_curve.png").read_bytes()[:4] == b"\x89PNG"
