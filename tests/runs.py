"""Tiny configs of every kind, for tests that train."""

from __future__ import annotations

from typing import Any

from rl_training.experiment.config import TrainConfig
from rl_training.experiment.presets import resolve

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
