"""How long a trial waits before its first line runs: `donkey-rl bench trial_start`.

From the decision to the entry of the runner: once with the fork server that has torch, stable-baselines3 and our
trainer loaded, once with a new interpreter that imports them, as a subprocess for each trial would.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_training.autoresearch.job import Task
from rl_training.autoresearch.training import PRELOAD
from rl_training.autoresearch.workers import Limits, WorkerPool


@dataclass(frozen=True)
class Stamp:
    """A trial that notes when it began, with all it needs imported."""

    def train(self, params: dict[str, Any], folder: Path, seed: int) -> None:
        import rl_training.runtime.trainer  # noqa: F401

        (folder / "began.txt").write_text(repr(time.monotonic()))  # the clock that all processes share

    def evaluate(self, model: Path, seed: int) -> float:
        raise NotImplementedError


def forked(pool: WorkerPool, folder: Path, trial: int) -> float:
    """Seconds until a trial from the fork server begins."""
    asked = time.monotonic()
    pool.start(Task(trial, {}, 0, ""), folder)
    while pool.running:
        pool.wait(1.0)
    return float((folder / "began.txt").read_text()) - asked


def spawned() -> float:
    """Seconds until a new interpreter has imported the trainer."""
    code = "import time, rl_training.runtime.trainer; print(time.monotonic())"
    asked = time.monotonic()
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout) - asked


def main(arguments: Sequence[str]) -> int:
    """Print the fastest and the median of each."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench trial_start", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        pool = WorkerPool(Stamp(), 1, Limits(), (*PRELOAD, __name__))
        forked(pool, Path(name) / "warm", 0)
        ours = sorted(forked(pool, Path(name) / str(i), i) for i in range(args.repeats))
    theirs = sorted(spawned() for _ in range(max(3, args.repeats // 3)))
    for label, times in (("fork server", ours), ("new interpreter", theirs)):
        print(f"{label:16} fastest {times[0]:.3f} s, median {times[len(times) // 2]:.3f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
