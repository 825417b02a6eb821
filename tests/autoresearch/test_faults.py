"""The loop loses nothing: not by trials that fail in every way, nor by controllers that are killed at any point."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl_training.autoresearch.acquisition import Observation
from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Ledger, Record, observations
from rl_training.autoresearch.lock import StudyLock
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.outcome import Ending
from rl_training.autoresearch.publish import Publisher
from rl_training.autoresearch.reading import read_json
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.workers import Ended
from tests.autoresearch.fake_study import COMPARABLE, SOUND, Script, faulty_settings
from tests.autoresearch.fake_trials import STATUS_OF, FakeTrials, reward_of

ROOT = Path(__file__).parents[2]
SEED = 11
KILLS = 3
PASSING = ("lost", "disk_full")  # not the setting's fault: tried again, and well


def all_processes(study: Study) -> list[ProcessIdentity]:
    """Every process that a trial wrote down, if it still lives."""
    leaders = [ProcessIdentity.from_dict(read_json(path)) for path in study.models.glob("*/process.json")]
    children = [ProcessIdentity.of(int(path.read_text())) for path in study.models.glob("*/child.txt")]
    return [identity for identity in [*leaders, *children] if identity is not None and identity.is_alive]


def test_a_night_of_faults_and_killed_controllers(tmp_path: Path) -> None:
    study = Study(tmp_path / "night")
    command = [sys.executable, "-m", "tests.autoresearch.fake_study", str(study.root), str(SEED)]
    chance = random.Random(SEED)
    kills = 0
    while True:
        before = len(Ledger(study.results).records)
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as controller:
            if kills < KILLS:
                # Let it do something, so that the kills fall into its work and not into its start.
                deadline, wanted = time.monotonic() + 20.0, before + chance.randrange(1, 4)
                while len(Ledger(study.results).records) < wanted and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0.0, 0.2))
                controller.kill()
                kills += 1
                continue
            errors = controller.communicate(timeout=60)[1]
            assert controller.returncode == 0, errors.decode()
            break

    ledger = Ledger(study.results)
    assert not ledger.rejected
    recorded = Counter(record.trial for record in ledger.records)
    assert set(recorded) == set(study.run_folders()), "every trial that began has a record"
    assert set(recorded.values()) == {1}
    for step, setting in enumerate(faulty_settings(SEED)):
        own = [r for r in ledger.records if r.params["step"] == step and r.retest_of is None]
        speaking = [record for record in own if record.speaks_of_its_setting]
        wanted_status = "ok" if setting["fault"] in PASSING else STATUS_OF[setting["fault"]]
        assert [record.run_status for record in speaking] == [wanted_status], setting
        assert all(record.run_status in ("crashed", "sim_lost") for record in own if record not in speaking)
    values = [each.value for each in observations(ledger.records) if each.value is not None]
    assert set(values) == {*SOUND, 99.0}, "99 is that of the simulator that came back, and of the disk with room"

    assert not all_processes(study)
    assert not study.lock.exists()
    model, manifest = ChampionTracker(study.champion).load()
    assert manifest["mean_reward"] == reward_of(model) == 99.0
    assert manifest["verdict"] == "keep"
    assert "No space left on device" in study.log.read_text()
    assert "Publishing failed, trying again later" in study.log.read_text()


class InlinePool:
    """Runs each trial while it is started: what is left are the controller's own writes."""

    slots = 1

    def __init__(self) -> None:
        self._ended: list[Ended] = []

    def warm_up(self) -> None: ...

    @property
    def running(self) -> list[Task]:
        return [ended.task for ended in self._ended]

    @property
    def has_room(self) -> bool:
        return not self._ended

    def start(self, task: Task, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        task.save(folder)
        trials = FakeTrials()
        if task.retest_model is not None:
            (folder / "retest.json").write_text(f'{{"fresh_reward": {trials.evaluate(Path(task.retest_model), 0)}}}')
        trials.train(task.params, folder, task.seed)
        self._ended.append(Ended(task, folder, Ending(0), 0.0))

    def wait(self, seconds: float) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def stop_all(self, why: str) -> list[Ended]:
        return self.wait(0.0)


class Killed(BaseException):
    """The controller's death."""


class DiesAt:
    """Counts the writes of a process; from number ``step`` on it is dead and writes nothing any more."""

    def __init__(self, step: int) -> None:
        self.step, self.count = step, 0

    def __call__(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count >= self.step:
                raise Killed
            return call(*args, **kwargs)

        return counted


# All that changes a file in the controller, its cleaning up included: who is killed leaves temporary files, a lock and
# half a line.
WRITES = [
    *((os, name) for name in ("open", "replace", "fsync", "write", "ftruncate")),
    *((Path, name) for name in ("mkdir", "symlink_to", "unlink", "write_text")),
    *((shutil, name) for name in ("copyfile", "rmtree")),
    *((Task, "save"), (FakeTrials, "train"), (Ledger, "append"), (ChampionTracker, "crown")),
]
PLAN = [{"reward": 10.0}, {"fault": "nan"}, {"reward": 30.0}]


def run_study(root: Path) -> None:
    study = Study(root)
    Controller(study, Script(PLAN), COMPARABLE, InlinePool(), Narrator(study.log, quiet=True), Options()).run()  # type: ignore[arg-type]


def state(root: Path) -> tuple[list[Any], dict[str, Any]]:
    """What a study knows, without what tells two runs of it apart."""
    records: list[Record] = [record for record in Ledger(Study(root).results).records if not record.interrupted]
    facts = [(r.params, r.mean_reward, r.run_status, r.champion, r.verdict, r.fresh_reward) for r in records]
    manifest = ChampionTracker(Study(root).champion).load()[1]
    return facts, {key: manifest[key] for key in ("mean_reward", "params", "verdict")}


def test_a_controller_killed_at_any_write_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # counted, but no power is cut
    run_study(tmp_path / "whole")
    wanted = state(tmp_path / "whole")
    assert [fact[3:5] for fact in wanted[0]] == [
        (True, "retest"), (False, "keep"), (False, ""), (True, "retest"), (False, "keep")
    ]  # fmt: skip
    locks: list[StudyLock] = []
    enter = StudyLock.__enter__
    monkeypatch.setattr(StudyLock, "__enter__", lambda lock: locks.append(lock) or enter(lock))
    step = 0
    while True:
        step += 1
        root = tmp_path / str(step)
        with monkeypatch.context() as patch:
            dies = DiesAt(step)
            for owner, name in WRITES:
                patch.setattr(owner, name, dies(getattr(owner, name)))
            try:
                run_study(root)
                break
            except Killed:
                with contextlib.suppress(OSError, IndexError):
                    os.close(locks[-1]._descriptor)  # the kernel would
        run_study(root)
        assert state(root) == wanted, f"killed at write {step}"
        assert set(Study(root).run_folders()) == {record.trial for record in Ledger(Study(root).results).records}
        assert not Study(root).lock.exists()
    assert step > 100


def test_a_publisher_killed_at_any_step_loses_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    study = Study(tmp_path / "night")
    study.results.parent.mkdir(parents=True)
    said: list[str] = []
    git = Publisher._git
    step, alive = 0, False
    while not alive:
        step += 1
        with study.results.open("a") as file:
            file.write(f"line {step}\n")
        with monkeypatch.context() as patch:
            patch.setattr(Publisher, "_git", DiesAt(step)(git))
            patch.setattr(Publisher, "_start_push", lambda publisher, say: None)
            try:
                Publisher(study, str(remote)).publish("killed", said.append)
                alive = True
            except Killed:
                pass
    publisher = Publisher(study, str(remote))
    publisher.finish(said.append)
    show = ["git", "-C", str(remote), "show", f"{publisher.branch}:night/outerloop-results/{study.results.name}"]
    text = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    assert text.splitlines() == [f"line {i}" for i in range(1, step + 1)]
    assert step > 5


def test_the_script_is_told_nothing_of_faults_but_that_they_failed() -> None:
    record = Record(1, "t", {"step": 0}, "timeout", None)
    assert observations([record]) == [Observation({"step": 0}, None)]
