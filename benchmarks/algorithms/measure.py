"""What the parts of `bench algorithms` share: rows of the table, taking turns, a cheap env of images, the peer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Box

ROOT = Path(__file__).parents[2]
PEER_PYTHON = ROOT / ".venv-peers-rl" / "bin" / "python"
CARTPOLE: dict[str, Any] = {"n_steps": 128, "batch_size": 128, "n_epochs": 4, "learning_rate": 2.5e-4, "device": "cpu"}
Row = dict[str, Any]


class Images(gym.Env[Any, Any]):
    """Noise of a given shape that rolls by three channels a step; costs next to nothing."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.observation_space, self.action_space = Box(0, 255, shape, np.uint8), Box(-1.0, 1.0, (2,), np.float32)
        self.frames = np.random.default_rng(0).integers(0, 256, (60, *shape[1:]), dtype=np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self._see(), 0.1, False, self.time % 50 == 0, {}

    def _see(self) -> Any:
        channels = self.observation_space.shape[0]  # type: ignore[index]
        return self.frames[(np.arange(channels) + 3 * self.time) % len(self.frames)]


def clock() -> float:
    """Seconds of this process on one thread, where other work must not count; of the wall on several."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def best_of_turns(work: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Seconds of each piece of work: they take turns, and the best of each counts."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(turns):
        for name, piece in work.items():
            start = clock()
            piece()
            best[name] = min(best[name], clock() - start)
    return best


def peer(*arguments: str) -> dict[str, float] | None:
    """axiomrl's figures on as many threads as ours, or None where its venv is missing or it fails."""
    if not PEER_PYTHON.exists():
        return None
    threads = str(torch.get_num_threads())
    command = [str(PEER_PYTHON), str(Path(__file__).with_name("peer.py")), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"axiomrl failed at {' '.join(arguments)}: {reason}", file=sys.stderr, flush=True)
        return None
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def row(
    what: str, who: str, figure: float, unit: str, better: float | None = None, bar: str = "", met: bool | None = None
) -> Row:
    """One line of the table; ``better`` is how many times better ours is than the peer, ``met`` whether the bar is."""
    return {"what": what, "who": who, "figure": figure, "unit": unit, "times": better, "bar": bar, "met": met}


def against(what: str, who: str, figure: float, unit: str, better: float, at_least: float, than: str) -> Row:
    """A line whose bar is to be so many times better than a peer."""
    missing = better != better
    met = None if missing else better >= at_least
    return row(what, who, figure, unit, None if missing else better, f"≥ {at_least:g}× {than}", met)
