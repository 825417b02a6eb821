"""What a person sees during training: a progress bar on a terminal, a line now and then in a log, or every reward."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback

REDRAW = 0.25  # seconds between updates of the bar
LOG_EVERY = 10.0  # seconds between lines in a log


class Laps(BaseCallback):
    """Counts the laps of finished episodes and logs what share of them completed one."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0
        self.recent: list[float] = []

    def _on_step(self) -> bool:
        if np.any(self.locals["dones"]):
            for info in self.locals["infos"]:
                if "episode" in info and "lap_count" in info:
                    self.total += int(info["lap_count"])
                    self.recent = [*self.recent[-99:], float(info["lap_count"])]
            if self.recent:
                self.logger.record("rollout/laps_mean", float(np.mean(self.recent)))
                self.logger.record("rollout/laps_total", self.total)
        return True


class ShowProgress(BaseCallback):
    """Steps, steps a second, time left, mean return and laps."""

    def __init__(self, total: int, laps: Laps) -> None:
        super().__init__()
        self.total, self.laps = total, laps
        self.bar: Progress | None = None
        self.task = TaskID(0)

    def _on_training_start(self) -> None:
        self.began = self.shown = time.monotonic()
        self.first = self.model.num_timesteps
        if sys.stderr.isatty():
            from rich.console import Console

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
            )
            self.bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False)
            self.bar.start()
            self.task = self.bar.add_task("training", total=self.total, completed=self.first, note="")

    def _on_step(self) -> bool:
        now = time.monotonic()
        if now - self.shown >= (REDRAW if self.bar else LOG_EVERY):
            self.shown = now
            self._show(now)
        return True

    def _show(self, now: float) -> None:
        steps = self.model.num_timesteps
        rate = (steps - self.first) / max(now - self.began, 1e-9)
        note = f"{rate:,.0f} steps/s"
        episodes = self.model.ep_info_buffer
        if episodes:
            note += f"  return {np.mean([episode['r'] for episode in episodes]):.2f}"
        if self.laps.recent:
            note += f"  laps {self.laps.total}"
        if self.bar:
            self.bar.update(self.task, completed=steps, note=note, refresh=True)
            return
        left = max(self.total - steps, 0) / max(rate, 1e-9)
        print(f"{steps}/{self.total} steps  {note}  {left:,.0f} s left", file=sys.stderr, flush=True)

    def _on_training_end(self) -> None:
        self._show(time.monotonic())
        self.close()

    def close(self) -> None:
        """Give the terminal back; harmless when repeated."""
        if self.bar:
            self.bar.stop()
            self.bar = None


class PrintSteps(BaseCallback):
    """Every step's reward, one line each, as it happens."""

    def _on_step(self) -> bool:
        rewards: Any = self.locals["rewards"]
        text = " ".join(f"{reward:.4f}" for reward in rewards)
        print(f"step {self.num_timesteps} reward {text}", flush=True)
        return True
