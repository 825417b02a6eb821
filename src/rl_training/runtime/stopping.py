"""Ending a training early, by its own learning curve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from rl_training.experiment.atomic import write_json


class StopWhen(BaseCallback):
    """Asks ``why(step, level)`` between rollouts; an answer ends the training and is kept in ``note``.

    The level is the mean return of the last training episodes, the one that metrics.csv has. The policy is whole at
    that moment, so what is evaluated afterwards is what a shorter budget would have given.
    """

    def __init__(self, why: Callable[[int, float], str], note: Path, every: int) -> None:
        super().__init__()
        self.why, self.note, self.every = why, note, every
        self.reason = ""
        self.asked = 0

    def _on_rollout_start(self) -> None:
        episodes = self.model.ep_info_buffer
        if not episodes or self.num_timesteps < self.asked + self.every:
            return
        self.asked = self.num_timesteps
        self.reason = self.why(self.num_timesteps, float(np.mean([episode["r"] for episode in episodes])))
        if self.reason:
            write_json(self.note, {"stopped_at": self.num_timesteps, "reason": self.reason})

    def _on_step(self) -> bool:
        return not self.reason
