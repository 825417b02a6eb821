"""Trials that train nothing: each does what its setting says, so that studies of faults are quick and seeded."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_training.errors import ConfigError, SimulatorLost

FAULTS = (
    "killed", "hangs", "silent", "eats_memory", "no_result", "nan", "corrupt_model", "raises", "lost", "bad_config",
    "disk_full",
)  # fmt: skip
STATUS_OF = {
    "": "ok",
    "killed": "crashed",
    "hangs": "timeout",
    "silent": "timeout",
    "eats_memory": "out_of_memory",
    "no_result": "crashed",
    "nan": "invalid",
    "corrupt_model": "invalid",
    "raises": "crashed",
    "lost": "sim_lost",
    "bad_config": "invalid",
    "disk_full": "crashed",
}


def save_model(path: Path, reward: float) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps({"reward": reward}))


def reward_of(model: Path) -> float:
    with zipfile.ZipFile(model) as archive:
        return float(json.loads(archive.read("data"))["reward"])


@dataclass(frozen=True)
class FakeTrials:
    """``params`` may hold a ``fault`` and the ``reward``; ``fresh_loss`` is what a model loses on fresh seeds."""

    seconds: float = 0.0
    fresh_loss: float = 0.0

    def train(self, params: dict[str, Any], folder: Path, seed: int) -> None:
        print(f"training with seed {seed}", flush=True)
        logging.getLogger("rl_training.fake").info("episode of 3 steps")
        reward = float(params.get("reward", 0.0))
        fault = params.get("fault", "")
        if fault:
            getattr(self, f"_{fault}")(folder)
            reward = math.nan if fault == "nan" else reward
        time.sleep(self.seconds)
        save_model(folder / "model.zip", reward)
        if fault == "corrupt_model":
            data = bytearray((folder / "model.zip").read_bytes())
            data[40] ^= 255
            (folder / "model.zip").write_bytes(data)
        (folder / "result.json").write_text(json.dumps({"mean_reward": reward, "std_reward": 1.0, "laps": 2}))

    def extend(self, params: dict[str, Any], folder: Path, seed: int, origin: Path) -> None:
        """Twice as good as before."""
        self.train({**params, "reward": 2.0 * reward_of(origin / "model.zip")}, folder, seed)

    def evaluate(self, model: Path, seed: int) -> float:
        return reward_of(model) - self.fresh_loss

    def _killed(self, folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _hangs(self, folder: Path) -> None:
        """Alive by its log, deaf to TERM, and with a child in a session of its own."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        (folder / "child.txt").write_text(str(child.pid))
        while True:
            print("still here", flush=True)
            time.sleep(0.05)

    def _silent(self, folder: Path) -> None:
        time.sleep(600)

    def _eats_memory(self, folder: Path) -> None:
        eaten = []
        while True:
            eaten.append(bytearray(b"x") * (32 << 20))
            print(len(eaten), flush=True)

    def _no_result(self, folder: Path) -> None:
        os._exit(0)

    def _nan(self, folder: Path) -> None: ...

    def _corrupt_model(self, folder: Path) -> None: ...

    def _raises(self, folder: Path) -> None:
        raise RuntimeError("the simulator raised")

    def _lost(self, folder: Path) -> None:
        """Away the first time, back the second."""
        with contextlib.suppress(FileExistsError):
            (folder.parent / "simulator-was-lost").touch(exist_ok=False)
            raise SimulatorLost("the simulator is gone")

    def _bad_config(self, folder: Path) -> None:
        raise ConfigError("there is no such setting")

    def _disk_full(self, folder: Path) -> None:
        """The first time; there is room the second."""
        with contextlib.suppress(FileExistsError):
            (folder.parent / "disk-was-full").touch(exist_ok=False)
            (folder / "result.json").write_text('{"run_status": "crashed", "error": "No space left on device"}')
            raise OSError(errno.ENOSPC, "No space left on device")
