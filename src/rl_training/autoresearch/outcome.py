"""What became of a trial: a pure reading of its run folder and of how its process ended.

A complete `result.json` with a sound model counts however the process ended, so that a trial gets the same record
whether its controller lived to see the end or finds the folder after a restart.
"""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl_training.autoresearch.job import DISK_FULL
from rl_training.autoresearch.ledger import STATUSES, VALUED
from rl_training.autoresearch.reading import read_json
from rl_training.experiment.atomic import sha256

# What has a place of its own in a record, or says nothing there.
NOT_EXTRA = (
    *("run_status", "reason", "error", "mean_reward", "std_reward", "model", "model_path", "elapsed_sec"),
    *("schema", "seed", "algo", "env", "margin", "pid"),
)
LONGEST_REASON = 300


@dataclass(frozen=True)
class Ending:
    """How a process ended: its exit code, or why we ended it (`run_status` and a sentence)."""

    exit_code: int | None = None
    run_status: str = ""
    why: str = ""
    interrupted: bool = False  # by the operator, or with the controller: not the setting's fault


@dataclass(frozen=True)
class Outcome:
    """The part of a record that the trial decides."""

    run_status: str
    reason: str = ""
    mean_reward: float | None = None
    std_reward: float | None = None
    model: str | None = None  # its file in the run folder
    model_sha256: str | None = None
    fresh_reward: float | None = None
    own_fresh_reward: float | None = None
    interrupted: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def outcome_of(folder: Path, ending: Ending) -> Outcome:
    """Read a run folder whose process has ended."""
    result = read_json(folder / "result.json")
    retest = read_json(folder / "retest.json") or {}
    fresh = _number(retest.get("fresh_reward"))
    if result is None and ending.exit_code == DISK_FULL:
        return Outcome("crashed", "the disk was full", fresh_reward=fresh, interrupted=True)
    if result is None:
        status, why = ending.run_status or "crashed", ending.why or _say(ending.exit_code)
        return Outcome(status, why, fresh_reward=fresh, interrupted=ending.interrupted)
    status = result.get("run_status", "ok")
    result = {**_means(result.pop("figures", None)), **result}
    extra = {key: value for key, value in result.items() if key not in NOT_EXTRA and _is_plain(value)}
    if status not in VALUED:
        known = status if status in STATUSES else "crashed"
        return Outcome(
            known, _on_one_line(result.get("reason") or result.get("error", "")), fresh_reward=fresh, extra=extra
        )
    mean = _number(result.get("mean_reward"))
    if mean is None:
        why = f"its mean_reward is {result.get('mean_reward')!r}, which is no finite number"
        return Outcome("invalid", why, fresh_reward=fresh)
    name = Path(str(result.get("model", "model.zip"))).name
    stopped = read_json(folder / "stopped.json") or {}
    if isinstance(stopped.get("stopped_at"), int):
        extra["stopped_at"] = stopped["stopped_at"]
        extra["foretold"] = _number(stopped.get("foretold"))
    digests = result.get("sha256")
    fault = _fault_of(folder / name, digests.get(name) if isinstance(digests, dict) else None)
    if fault:
        return Outcome("invalid", fault, fresh_reward=fresh)
    return Outcome(
        status,
        str(result.get("reason") or stopped.get("reason", "")),
        mean,
        _number(result.get("std_reward")),
        model=name,
        model_sha256=sha256(folder / name),
        fresh_reward=fresh,
        own_fresh_reward=_number(retest.get("own_fresh_reward")),
        extra=extra,
    )


def _fault_of(model: Path, expected: object) -> str:
    """What is wrong with a model file; empty if nothing is."""
    try:
        with zipfile.ZipFile(model) as archive:
            broken = archive.testzip()
    except FileNotFoundError:
        return f"it saved no {model.name}"
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        return f"its {model.name} cannot be read: {error}"
    if broken is not None:
        return f"its {model.name} is corrupt at '{broken}'"
    if isinstance(expected, str) and sha256(model) != expected:
        return f"its {model.name} is not the one that was evaluated: the SHA-256 differs"
    return ""


def _say(exit_code: int | None) -> str:
    if exit_code is None:
        return "its process is gone"
    if exit_code < 0:
        return f"its process was ended by signal {-exit_code}"
    return f"its process ended with code {exit_code} and no result"


def _on_one_line(text: object) -> str:
    """A reason for the ledger and the log; PyTorch prints whole tensors."""
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _means(figures: object) -> dict[str, float]:
    """Of figures that a trial gives by episode, such as laps."""
    if not isinstance(figures, dict):
        return {}
    return {f"mean_{name}": sum(values) / len(values) for name, values in figures.items() if values}


def _is_plain(value: object) -> bool:
    """Whether a value may go into the ledger: short, and JSON without NaN."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)
