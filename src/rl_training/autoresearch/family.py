"""A trial's processes together: found, measured and ended as one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable

import psutil

from rl_training.autoresearch.identity import ProcessIdentity

Family = set[ProcessIdentity]


def family_of(leader: ProcessIdentity) -> Family:
    """A trial's processes: its session, and all descendants, which may have left the session."""
    now = ProcessIdentity.of(leader.pid)
    if now is not None and now != leader:
        return set()  # the pid has gone to a stranger, which it cannot while anyone of the session lives
    pids: set[int] = set()
    with contextlib.suppress(psutil.Error):
        pids.update({leader.pid}, (child.pid for child in psutil.Process(leader.pid).children(recursive=True)))
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader.pid:
                pids.add(pid)
    return {identity for pid in pids if (identity := ProcessIdentity.of(pid)) is not None}


def memory_of(family: Iterable[ProcessIdentity]) -> int:
    """Resident bytes of processes together."""
    total = 0
    for identity in family:
        with contextlib.suppress(psutil.Error):
            if (process := identity.process()) is not None:
                total += process.memory_info().rss
    return total


def end_family(family: Iterable[ProcessIdentity], grace: float) -> None:
    """TERM, wait at most ``grace`` seconds, KILL, wait again; only processes that are still the ones meant."""
    left = [identity for identity in family if identity.is_alive]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for identity in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(identity.pid, number)
        deadline = time.monotonic() + grace
        while (left := [identity for identity in left if identity.is_alive]) and time.monotonic() < deadline:
            time.sleep(0.01)
