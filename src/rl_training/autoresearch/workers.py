"""Trials as processes: started by a fork server that has the heavy libraries loaded, watched, ended and reaped.

Every trial leads a session of its own and has three limits: time, memory of all its processes together, and silence
(nothing in its run folder changes). A trial over a limit is asked to end (TERM), and made to (KILL) after a grace.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Protocol

from rl_training.autoresearch.family import Family, end_family, family_of, memory_of
from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.job import Task, TrialRunner, run_job
from rl_training.autoresearch.outcome import Ending
from rl_training.autoresearch.reading import read_json

WATCH_EVERY = 0.5  # [s] between looks at memory and silence
HEAVY_MODULES = ("torch", "numba", "stable_baselines3")


@dataclass(frozen=True)
class Limits:
    """What one trial may use; 0 is no limit."""

    seconds: float = 360.0
    memory_bytes: int = 8 << 30
    silence: float = 120.0  # [s] without a change in the run folder
    grace: float = 3.0  # [s] between TERM and KILL


@dataclass
class Job:
    """A running trial."""

    task: Task
    folder: Path
    process: ForkServerProcess
    leader: ProcessIdentity
    began: float
    family: Family = field(default_factory=set)  # every process of it that was ever seen
    signature: object = None
    changed: float = 0.0
    looked: float = 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began


@dataclass(frozen=True)
class Ended:
    """A trial whose processes are all gone."""

    task: Task
    folder: Path
    ending: Ending
    elapsed: float


class Pool(Protocol):
    """Where trials run: here by `WorkerPool`, on a cluster by `ray_workers.RayPool`."""

    slots: int

    def warm_up(self) -> None:
        """Make ready while the caller goes on."""

    @property
    def running(self) -> list[Task]: ...

    @property
    def has_room(self) -> bool: ...

    def start(self, task: Task, folder: Path) -> None:
        """Start a trial in a run folder of its own. OSError if the folder cannot be written."""

    def wait(self, seconds: float) -> list[Ended]:
        """Wait until a trial ends, at most ``seconds``; end those over a limit. Returns all that ended."""

    def stop_all(self, why: str) -> list[Ended]:
        """End every trial now."""


class WorkerPool:
    """Up to ``jobs`` trials at a time, sharing the cores evenly."""

    def __init__(
        self, runner: TrialRunner, jobs: int, limits: Limits, preload: Sequence[str] = HEAVY_MODULES, threads: int = 0
    ) -> None:
        self._runner = runner
        self._limits = limits
        self._jobs: list[Job] = []
        self.slots = jobs
        self._threads = threads or max(1, len(os.sched_getaffinity(0)) // jobs)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["__main__", "rl_training.autoresearch.job", *preload])

    def warm_up(self) -> None:
        """Start the fork server; it imports while the caller goes on."""
        from multiprocessing.forkserver import ensure_running

        ensure_running()

    @property
    def running(self) -> list[Task]:
        return [job.task for job in self._jobs]

    @property
    def has_room(self) -> bool:
        return len(self._jobs) < self.slots

    def start(self, task: Task, folder: Path) -> None:
        """Start a trial in a run folder of its own. OSError if the folder cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        task.save(folder)
        arguments = (self._runner, task, folder, self._threads, self._limits.memory_bytes)
        process = self._context.Process(target=run_job, args=arguments, name=folder.name, daemon=False)
        process.start()
        assert process.pid is not None
        leader = ProcessIdentity.of(process.pid) or ProcessIdentity(process.pid, "ended at once")
        now = time.monotonic()
        self._jobs.append(Job(task, folder, process, leader, now, changed=now))

    def wait(self, seconds: float) -> list[Ended]:
        """Wait until a trial ends, at most ``seconds``; end those over a limit. Returns all that ended."""
        if self._jobs:
            wait_for([job.process.sentinel for job in self._jobs], min(seconds, WATCH_EVERY))
        else:
            time.sleep(seconds)
        ended = []
        for job in list(self._jobs):
            ending = self._ending_of(job)
            if ending is not None:
                ended.append(self._finish(job, ending))
        return ended

    def stop_all(self, why: str) -> list[Ended]:
        """End every trial now."""
        return [self._finish(job, Ending(None, "crashed", why, interrupted=True)) for job in list(self._jobs)]

    def _ending_of(self, job: Job) -> Ending | None:
        """Why a trial is over; None while it may go on."""
        if job.process.exitcode is not None:
            return Ending(job.process.exitcode)
        now = time.monotonic()
        limits = self._limits
        if limits.seconds and now - job.began > limits.seconds:
            return Ending(None, "timeout", f"it took longer than {limits.seconds:g} s")
        if now - job.looked < WATCH_EVERY:
            return None
        job.looked = now
        job.family |= family_of(job.leader)
        used = memory_of(job.family)
        if limits.memory_bytes and used > limits.memory_bytes:
            return Ending(None, "out_of_memory", f"it used {used / 2**30:.2f} GB of {limits.memory_bytes / 2**30:.2f}")
        signature = _signature(job.folder)
        if signature != job.signature:
            job.signature, job.changed = signature, now
        elif limits.silence and now - job.changed > limits.silence:
            return Ending(None, "timeout", f"it gave no sign of life for {limits.silence:g} s")
        return None

    def _finish(self, job: Job, ending: Ending) -> Ended:
        job.family |= family_of(job.leader)
        end_family(job.family, self._limits.grace)
        job.process.join(self._limits.grace)
        if job.process.exitcode is not None:
            job.process.close()
        self._jobs.remove(job)
        return Ended(job.task, job.folder, ending, job.elapsed)


def end_stale(folder: Path, grace: float) -> bool:
    """End the process that a dead controller left in a run folder; False if there was none."""
    leader = ProcessIdentity.from_dict(read_json(folder / "process.json"))
    if leader is None or not leader.is_alive:
        return False
    end_family(family_of(leader), grace)
    return True


def _signature(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Changes whenever a file of the run folder does."""
    files = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                status = entry.stat()
                files.add((entry.name, status.st_mtime_ns, status.st_size))
    return frozenset(files)
