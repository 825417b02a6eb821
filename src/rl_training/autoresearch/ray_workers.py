"""Trials on a Ray cluster, behind the interface of `workers.WorkerPool`.

Each of ``jobs`` slots is an actor on some node; in it a `WorkerPool` of one slot starts, watches and ends the trial, so
that time, memory and silence are judged where the trial runs and by the same code. A node that sees the run folder
works in it; from one that does not, the files come back as they change, and `result.json` last of all. A node that is
lost takes its trial along, as `sim_lost`: that says nothing of the setting, which is tried again.

The nodes need the same version of this package. Nothing outlives the controller: Ray ends its actors, and they their
trials.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rl_training.autoresearch.job import Task, TrialRunner
from rl_training.autoresearch.outcome import Ending
from rl_training.autoresearch.workers import HEAVY_MODULES, Ended, Limits, WorkerPool
from rl_training.errors import StudyError, UsageError
from rl_training.experiment.atomic import TEMPORARY, replacing

ANSWER_SECONDS = 60.0  # without a word from a node before it counts as lost
CONNECT_SECONDS = 5.0
POLL_SECONDS = 0.5  # a node waits for news before it answers that there are none
LIVE_BYTES = 1 << 20  # files up to this size come back while a trial runs, all of them when it has ended
NO_ROOM_SECONDS = 600.0  # without a single actor up, before the study gives up
FAILED_STARTS = 3  # of actors in a row, before the study gives up
RESULT = "result.json"
TESTED, ORIGIN = "tested", "origin"  # folders of a node's that hold what came along

Files = dict[str, bytes]


class Node:
    """The actor: a pool of one slot on its node."""

    def __init__(self, runner: TrialRunner, limits: Limits, preload: Sequence[str], threads: int, looks: bool) -> None:
        self._pool = WorkerPool(runner, 1, limits, preload, threads)
        self._looks = looks
        self._borrowed: Path | None = None  # our own folder, where the study's cannot be seen
        self._sent: dict[str, tuple[int, int]] = {}
        self._pool.warm_up()

    def address(self) -> str:
        """Where this is; answered once the actor is up."""
        return str(import_ray().util.get_node_ip_address())

    def start(self, task: Task, folder: Path, luggage: Files) -> tuple[Files, Ended | None]:
        """Start a trial; ``luggage`` are the files of other runs that it needs."""
        if self._looks and Task.load(folder) == task:
            self._pool.start(task, folder)
            return {}, None
        self._borrowed = Path(tempfile.mkdtemp(prefix="donkey-rl-trial-"))
        write_files(self._borrowed, luggage)
        if task.retest_model is not None:
            task = replace(task, retest_model=str(self._borrowed / TESTED / Path(task.retest_model).name))
        if task.origin is not None:
            task = replace(task, origin=str(self._borrowed / ORIGIN))
        self._sent = {}
        self._pool.start(task, self._borrowed / "run")
        return {}, None

    def poll(self, seconds: float) -> tuple[Files, Ended | None]:
        """Wait a little; the files that have changed, and the trial's end."""
        return self._report(self._pool.wait(seconds))

    def stop(self, why: str) -> tuple[Files, Ended | None]:
        """End the trial now."""
        return self._report(self._pool.stop_all(why))

    def _report(self, ended: list[Ended]) -> tuple[Files, Ended | None]:
        end = ended[0] if ended else None
        if self._borrowed is None:
            return {}, end
        files = changed_files(self._borrowed / "run", self._sent, is_over=end is not None)
        if end is not None:
            shutil.rmtree(self._borrowed, ignore_errors=True)
            self._borrowed = None
        return files, end


def changed_files(folder: Path, sent: dict[str, tuple[int, int]], is_over: bool) -> Files:
    """Contents of the files that are new since ``sent``, which is kept up to date."""
    files: Files = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(OSError):  # it may be gone by now
            status = path.stat()
            name, signature = path.relative_to(folder).as_posix(), (status.st_mtime_ns, status.st_size)
            waits = not is_over and (status.st_size > LIVE_BYTES or name == RESULT)
            if path.name.startswith(TEMPORARY) or not path.is_file() or waits or sent.get(name) == signature:
                continue
            files[name] = path.read_bytes()
            sent[name] = signature
    return files


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files whole, `result.json` last: it says that the others are there."""
    for name in sorted(files, key=lambda name: (name == RESULT, name)):
        with replacing(folder / name) as temporary:
            temporary.write_bytes(files[name])


def cpus_for(nodes: Sequence[float], jobs: int) -> int:
    """The most CPUs each of ``jobs`` trials can have; 0 if they do not all fit, one CPU each."""
    for cpus in range(int(max(nodes, default=0)), 0, -1):
        if sum(int(node // cpus) for node in nodes) >= jobs:
            return cpus
    return 0


@dataclass
class Slot:
    """An actor, what it was asked last, and its trial."""

    actor: Any
    asked: Any  # reference to an answer that is to come; None when none is
    when: float
    node: str = ""  # known once it is up
    task: Task | None = None
    folder: Path = field(default_factory=Path)
    began: float = 0.0
    unwritten: Files = field(default_factory=dict)  # what came back, and a full disk has refused
    end: Ended | None = None


class RayPool:
    """Up to ``jobs`` trials at a time on a cluster. It connects in `warm_up` and leaves in `stop_all`."""

    def __init__(
        self,
        runner: TrialRunner,
        jobs: int,
        limits: Limits,
        address: str = "auto",
        preload: Sequence[str] = HEAVY_MODULES,
        look_for_folder: bool = True,
    ) -> None:
        self._ray = import_ray()
        self._setting = (runner, limits, preload)
        self._limits = limits
        self._address = address
        self._looks = look_for_folder
        self._slots: list[Slot] = []
        self._cpus = 1
        self._failed_starts = 0
        self.slots = jobs

    def warm_up(self) -> None:
        """Join the cluster and ask for the actors; they start while the caller goes on. StudyError if there is none."""
        connect(self._ray, self._address)
        nodes = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        self._cpus = cpus_for(nodes, self.slots)
        if not self._cpus:
            self._ray.shutdown()
            raise StudyError(
                f"The cluster has {len(nodes)} nodes with {sum(nodes):g} CPUs, too few for --jobs {self.slots}; "
                "each trial needs one."
            )
        self._fill()

    @property
    def running(self) -> list[Task]:
        return [slot.task for slot in self._slots if slot.task is not None]

    @property
    def has_room(self) -> bool:
        """Whether an actor is up and idle."""
        return any(slot.node and slot.task is None for slot in self._slots)

    def start(self, task: Task, folder: Path) -> None:
        """Start a trial. OSError if its folder cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        task.save(folder)
        slot = next(slot for slot in self._slots if slot.node and slot.task is None)
        luggage = luggage_of(task)
        slot.task, slot.folder, slot.began = task, folder, time.monotonic()
        slot.asked, slot.when = slot.actor.start.remote(task, folder.resolve(), luggage), slot.began

    def wait(self, seconds: float) -> list[Ended]:
        """Wait until something happens on the cluster, at most ``seconds``. Returns the trials that ended."""
        self._fill()
        asked = {slot.asked: slot for slot in self._slots if slot.asked is not None}
        if asked:
            answered, _ = self._ray.wait(list(asked), num_returns=1, timeout=seconds)
        else:
            time.sleep(seconds)
            answered = []
        ended = [self._hear(asked[answer], answer) for answer in answered]
        now = time.monotonic()
        for slot in [slot for slot in self._slots if slot.node]:
            if slot.asked is not None and now - slot.when > ANSWER_SECONDS:
                ended.append(self._lose(slot, f"it gave no answer for {ANSWER_SECONDS:g} s"))
            elif slot.asked is None and slot.task is not None:
                ended.append(self._write(slot))
        if self._slots and not any(slot.node for slot in self._slots):
            oldest = min(slot.when for slot in self._slots)
            if now - oldest > NO_ROOM_SECONDS:
                raise StudyError(f"No node of the cluster had {self._cpus} free CPUs for {NO_ROOM_SECONDS:g} s.")
        return [each for each in ended if each is not None]

    def stop_all(self, why: str) -> list[Ended]:
        """End every trial now and leave the cluster."""
        busy = [slot for slot in self._slots if slot.task is not None and slot.asked is not None]
        stopped = [(slot, slot.asked, slot.actor.stop.remote(why)) for slot in busy]
        answers = [answer for _, *both in stopped for answer in both]
        if answers:
            self._ray.wait(answers, num_returns=len(answers), timeout=3 * self._limits.grace + 10.0)
        ended = [self._hear(slot, last) or self._hear(slot, stop) for slot, last, stop in stopped]
        ended += [self._lose(slot, why) for slot in list(self._slots) if slot.task is not None]
        for slot in self._slots:
            self._ray.kill(slot.actor)
        self._slots = []
        self._ray.shutdown()
        return [each for each in ended if each is not None]

    def _fill(self) -> None:
        """An actor for every slot; those of a lost node are asked for anew and come up where there is room."""
        while len(self._slots) < self.slots:
            runner, limits, preload = self._setting
            actor_class = self._ray.remote(num_cpus=self._cpus, max_restarts=0)(Node)
            actor = actor_class.remote(runner, limits, preload, self._cpus, self._looks)
            self._slots.append(Slot(actor, actor.address.remote(), time.monotonic()))

    def _hear(self, slot: Slot, answer: Any) -> Ended | None:
        """Take an answer in; the trial's end, if it is one."""
        if slot not in self._slots:
            return None
        try:
            said = self._ray.get(answer, timeout=ANSWER_SECONDS if slot.asked is answer else 0.1)
        except self._ray.exceptions.RayError as error:
            return self._lose(slot, _first_line(error))
        self._failed_starts = 0
        if slot.task is None:
            slot.node, slot.asked = said, None
            return None
        files, slot.end = said
        slot.unwritten.update(files)
        slot.asked = None
        return self._write(slot)

    def _write(self, slot: Slot) -> Ended | None:
        """Put into the run folder what came back, and ask for more; the trial's end, if that is what came."""
        try:
            write_files(slot.folder, slot.unwritten)
        except OSError:  # a full disk, which the controller tells of: asked again at the next wait
            return None
        slot.unwritten = {}
        if slot.end is None:
            slot.asked, slot.when = slot.actor.poll.remote(POLL_SECONDS), time.monotonic()
            return None
        end, slot.end = slot.end, None
        task, slot.task = slot.task, None
        assert task is not None
        return Ended(task, slot.folder, end.ending, end.elapsed)

    def _lose(self, slot: Slot, why: str) -> Ended | None:
        """Forget an actor that is gone; the end of its trial."""
        self._slots.remove(slot)
        self._ray.kill(slot.actor)
        if slot.task is None:
            self._failed_starts += 1
            if self._failed_starts >= FAILED_STARTS:
                raise StudyError(f"No trial can be started on the cluster: {why}")
            return None
        ending = Ending(None, "sim_lost", f"its node {slot.node} was lost: {why}")
        return Ended(slot.task, slot.folder, ending, time.monotonic() - slot.began)


def import_ray() -> Any:
    """Ray, which is an optional extra."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UsageError(
            "--executor ray needs Ray, which is not installed: pip install 'donkeycar-rl-autoresearch[ray]'"
        ) from error


def connect(ray: Any, address: str) -> None:
    """Join a cluster, and keep the signal handler that Ray would replace. StudyError if none answers."""
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdigit() and "/" not in host:  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        where = "on this machine" if address == "auto" else f"at '{address}'"
        raise StudyError(
            f"No Ray cluster answers {where}; start one with `ray start --head`, join it from this machine, and give "
            f"its HOST:PORT as --address ({_first_line(error)})."
        ) from error
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, handler)


def luggage_of(task: Task) -> Files:
    """What a trial needs of other runs: the model to be tested, the training to be taken further. Nothing if gone."""
    files: Files = {}
    if task.retest_model is not None and Path(task.retest_model).is_file():
        model = Path(task.retest_model)
        beside = [path for path in model.parent.iterdir() if path.suffix in (".json", ".yaml") and path.is_file()]
        files |= {f"{TESTED}/{path.name}": path.read_bytes() for path in [model, *beside]}
    if task.origin is not None:
        origin = changed_files(Path(task.origin), {}, is_over=True)
        files |= {f"{ORIGIN}/{name}": content for name, content in origin.items()}
    return files


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
