"""The ledger: one JSON line for each finished trial, appended and synced, never rewritten.

What a study knows (observations, champion, next number) is folded from these lines. A line is

    schema            version of this layout
    trial, timestamp  number in its ledger, and when it ended (UTC)
    params            the setting, with the agent
    env_set, reward_version   what its reward may be compared with
    seed              of training
    run_status        one of `STATUSES`; a failure is a status and has no reward
    reason            why, in one sentence; empty for ok
    mean_reward, std_reward   null for a failure
    model_path        relative to the study; null where there is none
    model_sha256
    elapsed_sec
    champion          whether it took the crown when it was recorded
    verdict           retest: crowned, and still to be tested; keep, discard: what this retest says of trial `retest_of`
    retest_of, fresh_reward   of a retest: which trial, and the reward of that trial's model on fresh seeds
    own_fresh_reward  of a retest: the reward of its own model on the same
    interrupted       ended by us or with its controller, so that it says nothing of its setting
    continues         trial whose training this one took further (see fidelity.py)
    extra             what the trial reported; of one that was stopped early: `stopped_at`, the steps it was trained,
                      and `foretold`, the reward to which trials came that stood there and went on

Only the unfinished last line that a crash may leave is ever cut off; it is kept in ``….jsonl.rejected``, with a copy of
every line that is not a record.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from rl_training.autoresearch.acquisition import Observation
from rl_training.experiment.atomic import sync

SCHEMA = 1
STATUSES = ("ok", "no_learning", "crashed", "timeout", "sim_lost", "out_of_memory", "invalid")
VALUED = ("ok", "no_learning")  # statuses with a reward
LONGEST_WHY = 300


@dataclass(frozen=True)
class Record:
    """One finished trial; fields as in the module's docstring."""

    trial: int
    timestamp: str
    params: dict[str, Any]
    run_status: str
    mean_reward: float | None = None
    std_reward: float | None = None
    model_path: str | None = None
    champion: bool = False
    elapsed_sec: float = 0.0
    reason: str = ""
    env_set: str = ""
    reward_version: str = ""
    seed: int = 0
    model_sha256: str | None = None
    verdict: str = ""
    retest_of: int | None = None
    fresh_reward: float | None = None
    own_fresh_reward: float | None = None
    interrupted: bool = False
    continues: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)  # what the trial itself reported
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        assert self.run_status in STATUSES, self.run_status
        assert (self.run_status in VALUED) == (self.mean_reward is not None), "a failure has no reward"

    @property
    def speaks_of_its_setting(self) -> bool:
        """Whether the outcome is the setting's own: not ours, nor that of a simulator that went away."""
        return self.mean_reward is not None or not (self.interrupted or self.run_status == "sim_lost")

    @property
    def stopped_at(self) -> int | None:
        """Env steps of a trial that was stopped early; None for one that had all its budget."""
        step = self.extra.get("stopped_at")
        return step if isinstance(step, int) else None

    @property
    def trained(self) -> dict[str, Any]:
        """The setting that the reward belongs to: of a stopped trial, with the steps it had."""
        if self.stopped_at is None or "timesteps" not in self.params:
            return self.params
        return {**self.params, "timesteps": self.stopped_at}

    @property
    def foretold(self) -> float | None:
        """What the whole budget would have given a stopped trial, by those like it; None for any other."""
        reward: Any = self.extra.get("foretold")
        return float(reward) if self.stopped_at is not None and _fits(reward, "float") else None

    def to_line(self) -> bytes:
        return json.dumps(asdict(self), allow_nan=False, default=str).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Record:
        """ValueError, with the reason, for a line that is no record of ours."""
        values = json.loads(line)  # a JSONDecodeError is a ValueError
        if not isinstance(values, dict):
            raise ValueError("it is not a JSON object")
        if values.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {values.get('schema')!r}, ours is {SCHEMA}")
        missing = {"trial", "timestamp", "params", "run_status"} - values.keys()
        if missing:
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        for name in KINDS.keys() & values.keys():
            if not _fits(values[name], KINDS[name]):
                raise ValueError(f"its {name} is {values[name]!r}")
        if values["trial"] < 0:
            raise ValueError(f"its trial is {values['trial']}")
        if values["run_status"] not in STATUSES:
            raise ValueError(f"its run_status is {values['run_status']!r}")
        reward = values.get("mean_reward")
        if (values["run_status"] in VALUED) != (reward is not None):
            raise ValueError(f"its mean_reward is {reward!r} with run_status {values['run_status']}")
        return cls(**{key: value for key, value in values.items() if key in KINDS})


KINDS = {item.name: str(item.type) for item in fields(Record)}


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value of a line is what a field of `Record` holds."""
    for kind in annotation.split(" | "):
        if kind == "None" and value is None:
            return True
        if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
            return math.isfinite(value)
        types = {"int": int, "str": str, "bool": bool, "dict[str, Any]": dict}
        if kind in types and type(value) is types[kind]:
            return True
    return False


@dataclass(frozen=True)
class Rejected:
    """A line that is not a record: its number from 1, and why."""

    line: int
    why: str


class Ledger:
    """The records of one file. Without `repair`, which needs the study's lock, it only reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[Record] = []
        self.rejected: list[Rejected] = []
        self._trials: set[int] = set()
        data = path.read_bytes() if path.exists() else b""
        self._whole = data.rfind(b"\n") + 1  # bytes of complete lines
        self._tail = data[self._whole :]
        self._rejected_lines: list[bytes] = []
        lines = data[: self._whole].split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            self._take(number, line)
        self._lines = len(lines)

    def _take(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        try:
            record = Record.from_line(line)
            if record.trial in self._trials:
                raise ValueError(f"trial {record.trial} is recorded above")
        except (ValueError, RecursionError) as error:
            self.rejected.append(Rejected(number, str(error)[:LONGEST_WHY]))
            self._rejected_lines.append(line)
        else:
            self._keep(record)

    def _keep(self, record: Record) -> None:
        self.records.append(record)
        self._trials.add(record.trial)

    @property
    def rejected_path(self) -> Path:
        return self.path.with_name(self.path.name + ".rejected")

    def repair(self) -> Ledger:
        """Set aside what is no record and cut a torn tail off, so that the next record begins a line of its own."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._tail:
            self._lines += 1
            known = len(self.rejected)
            self._take(self._lines, self._tail)
            # A tail that is a whole record lost nothing but its line end.
            whole_record = len(self.rejected) == known
        self._set_aside()
        if self._tail:
            with self.path.open("r+b") as file:
                if whole_record:
                    file.seek(0, os.SEEK_END)
                    file.write(b"\n")
                else:
                    file.truncate(self._whole)
                file.flush()
                os.fsync(file.fileno())
            self._tail = b""
        return self

    def _set_aside(self) -> None:
        there = self.rejected_path.read_bytes().split(b"\n") if self.rejected_path.exists() else []
        new = [line for line in self._rejected_lines if line not in there]
        if new:
            with self.rejected_path.open("ab") as file:
                file.write(b"".join(line + b"\n" for line in new))
                file.flush()
                os.fsync(file.fileno())

    def append(self, record: Record) -> None:
        """Add a record so that it survives a power cut. OSError, and no trace in the file, if the disk refuses it."""
        assert not self._tail, "repair the ledger before appending"
        assert record.trial not in self._trials, f"trial {record.trial} is recorded"
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            try:
                _write_whole(descriptor, record.to_line())
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)
        if is_new:
            sync(self.path.parent)
        self._keep(record)


def _write_whole(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@dataclass(frozen=True)
class Comparable:
    """What two rewards must have in common to be compared."""

    agent: str
    env_set: str
    reward_version: str

    def why_not(self, record: Record) -> str:
        """Why a record cannot be compared with these; empty if it can."""
        theirs = {
            "agent": record.params.get("agent"),
            "env set": record.env_set,
            "reward version": record.reward_version,
        }
        ours = {"agent": self.agent, "env set": self.env_set, "reward version": self.reward_version}
        return "; ".join(f"its {key} is '{theirs[key]}', not '{ours[key]}'" for key in ours if ours[key] != theirs[key])


def select(records: Iterable[Record], comparable: Comparable) -> tuple[list[Record], dict[str, int]]:
    """The records that may be compared, and how many are ignored for which reason."""
    chosen: list[Record] = []
    ignored: dict[str, int] = {}
    for record in records:
        why = comparable.why_not(record)
        if why:
            ignored[why] = ignored.get(why, 0) + 1
        else:
            chosen.append(record)
    return chosen, ignored


def observations(records: Iterable[Record]) -> list[Observation]:
    """What the trials have shown: rewards, and failures that are the setting's own fault."""
    return [Observation(record.trained, record.mean_reward) for record in records if record.speaks_of_its_setting]


def lessons(records: Iterable[Record]) -> list[Observation]:
    """What the optimiser learns from: what was shown, and of stopped trials also what their whole budget would have."""
    told: list[Observation] = []
    for record in records:
        told += observations([record])
        if record.foretold is not None:
            told.append(Observation(record.params, record.foretold, foretold=True))
    return told
