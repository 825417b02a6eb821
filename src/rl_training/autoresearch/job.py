"""A trial from the inside: what runs in the process that the fork server makes for it.

The process leads a session of its own, writes to its run folder only, and ends with its controller.

Files of a run folder that the loop reads and writes; the trial adds its own beside them:

    task.json      what to do, written before the process starts
    process.json   who does it: pid and start time
    retest.json    of a retest: fresh_reward of the model it tests, own_fresh_reward of its own over the same episodes
    stopped.json   stopped_at, reason and foretold, of a trial that ended early by its learning curve
    result.json    run_status, mean_reward, std_reward, `model` (its file, model.zip unless said), sha256 of the models
                   by file, and whatever else the trial reports: says that the training is over
    model.zip      the policy
    log.txt        all that was printed
"""

from __future__ import annotations

import contextlib
import errno
import logging
import multiprocessing
import os
import resource
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from rl_training.autoresearch.family import end_family, family_of
from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.reading import read_json
from rl_training.errors import SimulatorError, UsageError
from rl_training.experiment.atomic import TEMPORARY, write_json

DISK_FULL = errno.ENOSPC  # exit code
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class TrialRunner(Protocol):
    """How a study trains and evaluates. It is pickled into the trial's process; what it imports can be preloaded."""

    def train(self, params: dict[str, Any], folder: Path, seed: int) -> None:
        """Train with ``params``; write the model, then ``result.json``, into ``folder``."""

    def extend(self, params: dict[str, Any], folder: Path, seed: int, origin: Path) -> None:
        """As `train`, from the end of the training in the run folder ``origin``."""

    def evaluate(self, model: Path, seed: int) -> float:
        """Mean reward of a saved model over episodes that ``seed`` makes new."""


@dataclass(frozen=True)
class Task:
    """What one trial is to do. ``retest_model`` is the model, of trial ``retest_of``, that is evaluated first;
    ``origin`` the run folder, of trial ``continues``, whose training is taken further. ``env_set`` and
    ``reward_version`` say with what its reward may be compared, also if another study's controller finds it."""

    trial: int
    params: dict[str, Any]
    seed: int
    timestamp: str
    retest_of: int | None = None
    retest_model: str | None = None
    continues: int | None = None
    origin: str | None = None
    env_set: str = ""
    reward_version: str = ""

    def save(self, folder: Path) -> None:
        write_json(folder / "task.json", asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Task | None:
        """The task of a run folder; None if it has none, as one whose controller died while making it, or a strange
        one."""
        try:
            task = cls(**(read_json(folder / "task.json") or {}))
        except TypeError:
            return None
        return task if isinstance(task.trial, int) and isinstance(task.params, dict) else None


def is_run(folder: Path) -> bool:
    """Whether a folder holds anything of a run, but for what a killed writer may leave."""
    return folder.is_dir() and any(not path.name.startswith(TEMPORARY) for path in folder.iterdir())


def run_job(runner: TrialRunner, task: Task, folder: Path, threads: int, memory_bytes: int) -> None:
    """Do a task; the exit code is 0 if it was done and 1 if not, and `result.json` says why not. On a full disk, where
    nothing can be said, it is `DISK_FULL`."""
    os.setsid()
    try:
        _settle(folder, threads, memory_bytes)
        _do(runner, task, folder)
    except Exception as error:  # whatever a trial raises is its result
        with contextlib.suppress(OSError):
            traceback.print_exc()
        if is_full_disk(error):
            (folder / "result.json").unlink(missing_ok=True)
            os._exit(DISK_FULL)  # an orderly end would write once more
        if not (folder / "result.json").exists():
            result = {"run_status": status_of(error), "reason": f"{type(error).__name__}: {error}"}
            refused = {"refused": True} if isinstance(error, UsageError) else {}
            write_json(folder / "result.json", {**result, **refused})
        sys.exit(1)


def _settle(folder: Path, threads: int, memory_bytes: int) -> None:
    """Make the process a trial's: its output, its name for those who look for it, its limits."""
    _print_to(folder / "log.txt")
    logging.getLogger("rl_training").addHandler(logging.StreamHandler(sys.stdout))
    logging.getLogger("rl_training").setLevel(logging.INFO)
    write_json(folder / "process.json", ProcessIdentity.own().to_dict())
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_controller, name="end-with-controller", daemon=True).start()
    _limit_threads(threads)
    if memory_bytes and sys.platform.startswith("linux"):
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _do(runner: TrialRunner, task: Task, folder: Path) -> None:
    if task.origin is not None:
        runner.extend(dict(task.params), folder, task.seed, Path(task.origin))
    elif task.retest_model is not None:
        _retest(runner, task, folder, Path(task.retest_model))
    else:
        runner.train(dict(task.params), folder, task.seed)


def _retest(runner: TrialRunner, task: Task, folder: Path, tested: Path) -> None:
    """Drive the model on fresh seeds, train its setting with another seed, and drive the new model on the same."""
    fresh = {"fresh_reward": float(runner.evaluate(tested, task.seed))}
    write_json(folder / "retest.json", fresh)
    runner.train(dict(task.params), folder, task.seed)
    result = read_json(folder / "result.json") or {}
    if result.get("run_status", "ok") == "ok":
        own = folder / Path(str(result.get("model", "model.zip"))).name
        write_json(folder / "retest.json", {**fresh, "own_fresh_reward": float(runner.evaluate(own, task.seed))})


def is_full_disk(error: BaseException | None) -> bool:
    """Whether there was no room on the disk: for what was asked, or for what came of it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def status_of(error: Exception) -> str:
    """The run_status of a trial that raised an error."""
    if isinstance(error, MemoryError) or "allocate memory" in str(error):  # torch raises a RuntimeError
        return "out_of_memory"
    if isinstance(error, SimulatorError):
        return "sim_lost"
    return "invalid" if isinstance(error, UsageError) else "crashed"


def _print_to(log: Path) -> None:
    """Send output, that of C libraries too, to the log, line by line."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115


def _leave(number: int, frame: object) -> None:
    """On SIGTERM: unwind, so that envs and simulators are closed."""
    sys.exit(128 + number)


def _end_with_controller() -> None:
    controller = multiprocessing.parent_process()
    assert controller is not None
    controller.join()
    own = ProcessIdentity.own()
    end_family(family_of(own) - {own}, grace=0.0)  # simulators lead sessions of their own
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _limit_threads(threads: int) -> None:
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    if "torch" in sys.modules:  # preloaded, so it has read the environment already
        sys.modules["torch"].set_num_threads(threads)
