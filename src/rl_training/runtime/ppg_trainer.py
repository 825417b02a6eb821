"""Training PPG: the common run, held to PPG."""

from __future__ import annotations

from typing import Any

from rl_training.experiment.config import TrainConfig
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.trainer import train


def train_ppg(config: TrainConfig, run: RunFolder, **options: Any) -> dict[str, Any]:
    """Policy phases over rollouts, auxiliary phases over what they left, into a run folder; the result."""
    assert config.algo == "ppg", f"train_ppg was given a config for {config.algo}"
    return train(config, run, **options)
