"""Which process is meant: a pid alone is used again by others, a pid with its start time is not."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class ProcessIdentity:
    """``started`` is the kernel's own text on Linux, which a change of the clock does not touch."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Identity of a living process; None when there is none (a zombie has ended)."""
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return None
            return cls(pid, _start_of(pid))
        except (psutil.Error, OSError):
            return None

    @classmethod
    def own(cls) -> ProcessIdentity:
        identity = cls.of(os.getpid())
        assert identity is not None
        return identity

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> ProcessIdentity | None:
        """The inverse of `to_dict`; None for anything else."""
        if not values or not isinstance(values.get("pid"), int) or not isinstance(values.get("started"), str):
            return None
        return cls(values["pid"], values["started"])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_alive(self) -> bool:
        return self.of(self.pid) == self

    def process(self) -> psutil.Process | None:
        """A handle for signals and figures; None when it has ended."""
        try:
            return psutil.Process(self.pid) if self.is_alive else None
        except psutil.Error:
            return None


def _start_of(pid: int) -> str:
    if not sys.platform.startswith("linux"):
        return repr(psutil.Process(pid).create_time())
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{after_name[19]}"  # field 22 of stat: clock ticks after boot
