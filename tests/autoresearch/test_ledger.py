"""The ledger keeps every record that was written whole, and no byte of one that was not."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rl_training.autoresearch import ledger as ledger_module
from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.ledger import Comparable, Ledger, Record, observations, select
from rl_training.autoresearch.lock import StudyLock, holder
from rl_training.errors import StudyError


def record(trial: int, reward: float | None = 10.0, **more: Any) -> Record:
    status = more.pop("run_status", "ok" if reward is not None else "crashed")
    params = {"agent": "ppo", "learning_rate": 1e-3 * trial, "note": "Straße"}
    return Record(trial, "2026-11-18T12:00:00+00:00", params, status, reward, env_set="a", reward_version="v1", **more)


def test_a_record_survives_writing_and_reading(tmp_path: Path) -> None:
    written = [record(1), record(2, None, run_status="timeout", reason="too long"), record(3, 2.5, verdict="retest")]
    ledger = Ledger(tmp_path / "l.jsonl").repair()
    for each in written:
        ledger.append(each)
    assert Ledger(tmp_path / "l.jsonl").records == written
    fields = json.loads((tmp_path / "l.jsonl").read_text().splitlines()[1])
    assert fields["mean_reward"] is None
    assert fields["schema"] == 1


def test_a_write_torn_at_any_byte_costs_only_that_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power is cut here, and there are many files
    path = tmp_path / "l.jsonl"
    before, torn, after = record(1), record(2, 20.0), record(3, 30.0)
    line = torn.to_line()
    for length in range(len(line) + 1):
        path.write_bytes(before.to_line() + line[:length])
        path.with_name("l.jsonl.rejected").unlink(missing_ok=True)
        ledger = Ledger(path).repair()
        is_whole = length >= len(line) - 1  # only the line end may be missing
        assert ledger.records == ([before, torn] if is_whole else [before])
        ledger.append(after)
        assert Ledger(path).records == [*ledger.records]
        assert not Ledger(path).rejected
        if 0 < length < len(line) - 1:
            assert ledger.rejected_path.read_bytes() == line[:length] + b"\n"
        else:
            assert not ledger.rejected_path.exists()


def test_a_ledger_killed_while_repairing_is_repaired_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.jsonl"
    path.write_bytes(record(1).to_line() + b'{"schema": 1, "tri')
    ledger = Ledger(path)
    ledger._take(2, ledger._tail)
    ledger._set_aside()  # and killed before the tail is cut
    again = Ledger(path).repair()
    assert again.records == [record(1)]
    assert again.rejected_path.read_bytes() == b'{"schema": 1, "tri\n'
    assert path.read_bytes() == record(1).to_line()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not json", "Expecting value"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"trial": 7, "mean_reward": 5.0}', "schema is None"),
        (record(7).to_line().replace(b'"schema": 1', b'"schema": 2'), "schema is 2"),
        (record(7).to_line().replace(b"10.0", b"NaN"), "mean_reward is nan"),
        (record(7).to_line().replace(b'"ok"', b'"great"'), "run_status is 'great'"),
        (record(7).to_line().replace(b'"ok"', b'"timeout"'), "with run_status timeout"),
        (record(7).to_line().replace(b'"ok"', b'["ok"]'), "run_status is ['ok']"),
        (record(7).to_line().replace(b'"elapsed_sec": 0.0', b'"elapsed_sec": "long"'), "elapsed_sec is 'long'"),
        (record(7).to_line().replace(b'"champion": false', b'"champion": 1'), "champion is 1"),
        (record(7).to_line().replace(b'"extra": {}', b'"extra": null'), "extra is None"),
        (record(7).to_line().replace(b'"std_reward": null', b'"std_reward": 1e999'), "std_reward is inf"),
        (record(7).to_line().replace(b'"trial": 7', b'"trial": true'), "trial is True"),
        (record(7).to_line().replace(b'"trial": 7', b'"trial": -7'), "trial is -7"),
        (record(1).to_line(), "trial 1 is recorded above"),
        (b"\xff\xfe\x00", "codec"),
        (b"[" * 100_000, "recursion"),
        (record(7).to_line().replace(b'"ok"', b'"%s"' % (b"x" * 9999)), "run_status is 'xxx"),
    ],
)
def test_a_foreign_line_is_set_aside_with_the_reason(tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / "l.jsonl"
    line = line.rstrip(b"\n")
    path.write_bytes(record(1).to_line() + line + b"\n" + record(2).to_line())
    for _ in range(2):  # the copy is made once
        ledger = Ledger(path).repair()
        assert ledger.records == [record(1), record(2)]
        assert [rejected.line for rejected in ledger.rejected] == [2]
        assert why in ledger.rejected[0].why
        assert len(ledger.rejected[0].why) <= 300
        assert ledger.rejected_path.read_bytes() == line + b"\n"
    assert path.read_bytes().split(b"\n")[1] == line, "the ledger itself is only appended to"


def test_a_full_disk_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.jsonl"
    ledger = Ledger(path).repair()
    ledger.append(record(1))

    def write_half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "_write_whole", write_half)
        with pytest.raises(OSError, match="No space"):
            ledger.append(record(2))
    assert path.read_bytes() == record(1).to_line()
    ledger.append(record(2))
    assert Ledger(path).records == [record(1), record(2)]


def test_only_comparable_trials_and_own_failures_teach(tmp_path: Path) -> None:
    records = [
        record(1),
        replace(record(2), env_set="b"),
        replace(record(3), reward_version="v2"),
        replace(record(4), params={"agent": "dqn"}),
        record(5, None, run_status="timeout"),
        record(6, None, run_status="sim_lost"),
        record(7, None, interrupted=True),
        record(8, 0.5, run_status="no_learning"),
    ]
    chosen, ignored = select(records, Comparable("ppo", "a", "v1"))
    assert [each.trial for each in chosen] == [1, 5, 6, 7, 8]
    assert ignored == {
        "its env set is 'b', not 'a'": 1,
        "its reward version is 'v2', not 'v1'": 1,
        "its agent is 'dqn', not 'ppo'": 1,
    }
    assert [each.value for each in observations(chosen)] == [10.0, None, 0.5]


HOLD = """
import sys, time
from pathlib import Path
from rl_training.autoresearch.lock import StudyLock
with StudyLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_controller_is_refused_by_the_pid_of_the_first_until_that_dies(tmp_path: Path) -> None:
    path = tmp_path / "study" / "outerloop-results" / ".lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        assert holder(path) == first.pid
        with pytest.raises(StudyError, match=f"process {first.pid}"), StudyLock(path):
            pass
        first.kill()
        first.wait()
    assert holder(path) is None
    with StudyLock(path):
        assert holder(path) == os.getpid()
    assert not path.exists()


def test_a_pid_used_again_is_another_process() -> None:
    own = ProcessIdentity.own()
    assert own.is_alive
    assert not replace(own, started=own.started + "1").is_alive
    assert ProcessIdentity.from_dict(own.to_dict()) == own
    assert ProcessIdentity.from_dict({"pid": "1"}) is None


def test_ten_thousand_records_are_read_in_no_time(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    line = record(1).to_line()
    path.write_bytes(b"".join(line.replace(b'"trial": 1,', b'"trial": %d,' % i) for i in range(10_000)))
    began = time.process_time()
    ledger = Ledger(path).repair()
    assert time.process_time() - began < 2.0, "looking each trial up among all the others took twelve"
    assert len(ledger.records) == 10_000
