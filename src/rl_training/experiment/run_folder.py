"""A run folder explains itself: what was asked, by which command and code, what came of it, and the models.

config.yaml          the resolved config
run.json             command line, versions, code revision, machine, seed, when it began
env_spec.json        what the policy sees and does (donkey runs): evaluation and export rebuild the env from it
baseline.json        rewards of a random and of the untrained policy
metrics.csv          the learner's figures over time; tensorboard/ beside it where TensorBoard is installed
evaluations.jsonl    one line for each look for the best checkpoint
model.zip            the policy as training left it
best_model.zip       the best of the looks, where there were any
checkpoints/STEP/    the point to resume from, generators, replay and simulator included
learning_curve.png   returns over steps
result.json          the outcome and the models' digests; its presence says that the run is over
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rl_training.errors import ModelError, UsageError
from rl_training.experiment.atomic import TEMPORARY, write_json, write_text
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.yaml_text import yaml_load

SCHEMA = 1
PACKAGES = ("donkeycar-rl-autoresearch", "torch", "stable-baselines3", "gymnasium", "numpy", "numba")


@dataclass(frozen=True)
class RunFolder:
    """Names and contents of one run."""

    path: Path

    @property
    def model(self) -> Path:
        return self.path / "model.zip"

    @property
    def best_model(self) -> Path:
        return self.path / "best_model.zip"

    @property
    def result_file(self) -> Path:
        return self.path / "result.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def evaluations(self) -> Path:
        return self.path / "evaluations.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @classmethod
    def create(cls, path: Path, config: TrainConfig) -> RunFolder:
        """A new run; one that is already there is never overwritten."""
        run = cls(path)
        if run.result_file.exists() or (path / "config.yaml").exists():
            raise UsageError(
                f"{path} already holds a run; choose another folder, or continue it with 'donkey-rl resume {path}'."
            )
        path.mkdir(parents=True, exist_ok=True)
        for leftover in path.glob(f"{TEMPORARY}*"):
            leftover.unlink()
        if config.is_donkey:
            write_json(path / "env_spec.json", config.donkey.to_dict())
        write_json(path / "run.json", describe_run(config))
        run.write_config(config)
        return run

    def discard(self) -> None:
        """Take back a run that could not begin, so that its folder can be used again."""
        for name in ("config.yaml", "run.json", "env_spec.json"):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """A run that was begun."""
        if not (path / "config.yaml").is_file():
            raise ModelError(f"{path} is no run folder: it has no config.yaml. Give the folder that 'train' made.")
        return cls(path)

    def config(self) -> TrainConfig:
        """The resolved config the run was begun with."""
        file = self.path / "config.yaml"
        values = yaml_load(file.read_text(encoding="utf-8"), str(file))
        if not isinstance(values, Mapping):
            raise ModelError(f"{file} is damaged: it holds no keys and values. Restore it.")
        return TrainConfig.from_dict(values)

    def write_config(self, config: TrainConfig) -> None:
        """Also what makes the folder a run."""
        write_text(self.path / "config.yaml", config.to_yaml())

    def result(self) -> dict[str, Any] | None:
        """The outcome, None while there is none."""
        if not self.result_file.is_file():
            return None
        try:
            values: dict[str, Any] = json.loads(self.result_file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError(f"{self.result_file} is damaged ({error}); train again or restore it.") from error
        return values

    def yardsticks(self) -> dict[str, list[float]] | None:
        """Episode rewards of a random and of the untrained policy, None where they were not measured."""
        file = self.path / "baseline.json"
        if not file.is_file():
            return None
        try:
            rewards: dict[str, list[float]] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError(f"{file} is damaged ({error}); restore it, or remove it to go on without.") from error
        return rewards

    def write_yardsticks(self, rewards: dict[str, list[float]]) -> None:
        """Keep them for a resume."""
        write_json(self.path / "baseline.json", rewards)

    def write_result(self, values: dict[str, Any]) -> None:
        """Say that the run is over."""
        write_json(self.result_file, {"schema": SCHEMA, **values})


def new_run_path(config: TrainConfig, root: Path) -> Path:
    """A folder of its own for each run: ``ALGO-ENV-seedN-TIME``."""
    name = "".join(c if c.isalnum() or c in "-_+" else "-" for c in config.env_name)[:60]
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    path = root / f"{config.algo}-{name}-seed{config.seed}-{stamp}"
    attempt = 1
    while path.exists():
        attempt += 1
        path = root / f"{config.algo}-{name}-seed{config.seed}-{stamp}-{attempt}"
    return path


def describe_run(config: TrainConfig) -> dict[str, Any]:
    """Who, with what, where and when."""
    return {
        "schema": SCHEMA,
        "command": [without_secrets(word) for word in sys.argv],
        "seed": config.seed,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "started_unix": round(time.time(), 3),
        "revision": code_revision(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }


def without_secrets(text: str) -> str:
    """Words for a log or a file: names and tokens in web addresses are blanked."""
    return re.sub(r"(\w+://)[^/\s]+@", r"\1***@", text)


def code_revision() -> dict[str, Any] | None:
    """Commit of the checkout the package runs from, None where it is installed without one."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        return {"commit": commit, "modified": bool(_git(here, "status", "--porcelain", "--", str(here.parent)))}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=5.0
    )
    return answer.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
