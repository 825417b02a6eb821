"""Ending a training early, by its own learning curve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from rl_training.experiment.atomic import write_json
from rl_training.experiment.run_folder import RunFolder
from rl_training.report.learning_curve import evaluation_curve

Looks = list[tuple[float, float]]


class StopWhen(BaseCallback):
    """Asks ``judge(looks)`` after each look for the best policy; facts in answer end the training and are noted.

    Looks are (step, mean reward) pairs: what a policy earns while it explores says little of how it drives. The policy
    is whole at that moment, so what is evaluated afterwards is what a shorter budget would have given.
    """

    def __init__(self, judge: Callable[[Looks], dict[str, Any] | None], folder: Path, note: str) -> None:
        super().__init__()
        self.judge, self.folder, self.note = judge, folder, note
        self.is_over = False
        self.seen = 0  # bytes of the looks: a rollout may be a single step, and most bring no look

    def _on_rollout_start(self) -> None:
        file = RunFolder(self.folder).evaluations
        size = file.stat().st_size if file.exists() else 0
        if size == self.seen:
            return
        self.seen = size
        looks = evaluation_curve(self.folder)
        if looks and looks[-1][0] == self.num_timesteps and not self.is_over:
            facts = self.judge(looks)
            if facts is not None:
                self.is_over = True
                write_json(self.folder / self.note, {"stopped_at": self.num_timesteps, **facts})

    def _on_step(self) -> bool:
        return not self.is_over
