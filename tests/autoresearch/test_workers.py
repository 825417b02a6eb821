"""Trials as processes: each ends with the right status, and with everything it started."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.outcome import Ending, Outcome, outcome_of
from rl_training.autoresearch.workers import Ended, Limits, WorkerPool, end_stale
from tests.autoresearch.fake_trials import FAULTS, STATUS_OF, FakeTrials

LIMITS = Limits(seconds=5.0, memory_bytes=400 << 20, silence=3.0, grace=0.3)


def task(trial: int, fault: str = "", reward: float = 5.0) -> Task:
    return Task(trial, {"fault": fault, "reward": reward}, 10 + trial, "now")


def run_all(pool: WorkerPool, tasks: list[Task], root: Path) -> dict[int, tuple[Ended, Outcome]]:
    waiting, done = list(tasks), {}
    deadline = time.monotonic() + 60
    while waiting or pool.running:
        assert time.monotonic() < deadline
        while waiting and pool.has_room:
            pool.start(waiting[0], root / str(waiting[0].trial))
            waiting.pop(0)
        for ended in pool.wait(0.2):
            done[ended.task.trial] = ended, outcome_of(ended.folder, ended.ending)
    return done


def test_every_fault_gets_its_status_and_leaves_no_process(tmp_path: Path) -> None:
    pool = WorkerPool(FakeTrials(), 6, LIMITS, preload=(), threads=1)
    faults = ["", *FAULTS]
    done = run_all(pool, [task(i, fault) for i, fault in enumerate(faults)], tmp_path)
    for i, fault in enumerate(faults):
        ended, outcome = done[i]
        assert outcome.run_status == STATUS_OF[fault], (fault, outcome.reason)
        assert (outcome.mean_reward is not None) == (fault == ""), fault
        assert fault == "" or outcome.reason, fault
        leader = ProcessIdentity.from_dict(json.loads((tmp_path / str(i) / "process.json").read_text()))
        assert leader is not None
        assert not leader.is_alive, fault
        assert ended.elapsed < 20.0, fault
    assert done[0][1].extra == {"laps": 2}
    child = int((tmp_path / str(faults.index("hangs")) / "child.txt").read_text())
    assert ProcessIdentity.of(child) is None, "a child in a session of its own ends too"
    assert (tmp_path / "0" / "log.txt").read_text() == "training with seed 10\nepisode of 3 steps\n"


def test_a_stale_process_is_ended_by_its_identity_only(tmp_path: Path) -> None:
    pool = WorkerPool(FakeTrials(), 1, Limits(), preload=(), threads=1)
    pool.start(task(1, "silent"), tmp_path / "1")
    while not (tmp_path / "1" / "process.json").exists():
        pool.wait(0.05)
    text = (tmp_path / "1" / "process.json").read_text()
    identity = ProcessIdentity.from_dict(json.loads(text))
    assert identity is not None
    (tmp_path / "1" / "process.json").write_text(text.replace('"started": "', '"started": "x'))
    assert not end_stale(tmp_path / "1", 0.3), "the same pid, another start time: a stranger"
    assert identity.is_alive
    (tmp_path / "1" / "process.json").write_text(text)
    assert end_stale(tmp_path / "1", 0.3)
    assert not identity.is_alive
    assert [ended.ending.exit_code is not None for ended in pool.wait(2.0)] == [True]


def test_a_retest_drives_both_models_on_the_same_fresh_seeds(tmp_path: Path) -> None:
    pool = WorkerPool(FakeTrials(fresh_loss=2.0), 1, LIMITS, preload=(), threads=1)
    run_all(pool, [task(1)], tmp_path)
    tested = str(tmp_path / "1" / "model.zip")
    again = replace(task(2, reward=8.0), retest_of=1, retest_model=tested)
    outcome = run_all(pool, [again], tmp_path)[2][1]
    assert (outcome.mean_reward, outcome.fresh_reward, outcome.own_fresh_reward) == (8.0, 3.0, 6.0)


@pytest.mark.parametrize("text", ["{}", "[]", "torn", '{"trial": "x"}', '{"trial": 1, "newer": 2}'])
def test_a_task_that_is_not_ours_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "task.json").write_text(text)
    assert Task.load(tmp_path) is None


def test_a_result_counts_however_its_process_ended(tmp_path: Path) -> None:
    pool = WorkerPool(FakeTrials(), 1, LIMITS, preload=(), threads=1)
    run_all(pool, [task(1)], tmp_path)
    killed = Ending(None, "timeout", "too long")
    assert outcome_of(tmp_path / "1", killed).run_status == "ok"
    (tmp_path / "1" / "result.json").unlink()
    assert outcome_of(tmp_path / "1", killed) == Outcome("timeout", "too long")


@pytest.mark.parametrize("exit_code", [-9, 0, 3])
def test_an_ending_without_a_result_is_explained(tmp_path: Path, exit_code: int) -> None:
    outcome = outcome_of(tmp_path, Ending(exit_code))
    assert outcome.run_status == "crashed"
    assert str(abs(exit_code)) in outcome.reason
