"""Training DrQ: the common run, held to DrQ."""

from __future__ import annotations

from typing import Any

from rl_training.experiment.config import TrainConfig
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.trainer import train


def train_drq(config: TrainConfig, run: RunFolder, **options: Any) -> dict[str, Any]:
    """Normalised actions from the stochastic actor, scaled to the env's bounds, into a run folder; the result."""
    assert config.algo == "drq", f"train_drq was given a config for {config.algo}"
    return train(config, run, **options)
