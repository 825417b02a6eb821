"""What must be true of a study after a night of faults; each line of the table is a rule and how it was kept."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from rl_training.autoresearch.champion import ChampionTracker, holder, reign
from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Ledger, Record
from rl_training.autoresearch.reading import read_json
from rl_training.autoresearch.study import Study
from tests.autoresearch.soak_night import BASE
from tests.autoresearch.soak_trials import FAULTS, VALUED

MARK = "DONKEY_RL_SOAK"  # a variable that every process of the night inherits


@dataclass(frozen=True)
class Rule:
    """``faults`` are the violations; none if it was kept."""

    name: str
    checked: int
    faults: list[str]


def fault_of(record: Record, faults: list[str]) -> str:
    return faults[(record.trial - 1) % len(faults)]


def check(study: Study, faults: list[str], wanted: int, told: Path, remote: Path, branch: str) -> list[Rule]:
    """Every rule, whether it was kept or not."""
    ledger = Ledger(study.results)
    records = ledger.records
    begun = {trial for trial, folder in study.run_folders().items() if Task.load(folder) is not None}
    counted = Counter(record.trial for record in records)
    speaking = [record for record in records if record.retest_of is None and record.speaks_of_its_setting]
    missing = [f"trial {trial} has {counted[trial]} records" for trial in begun | set(counted) if counted[trial] != 1]
    strange = [f"line {rejected.line}: {rejected.why}" for rejected in ledger.rejected]
    folders = [f"trial {trial} has no run folder" for trial in set(counted) - begun]
    enough = [] if len(speaking) == wanted else [f"{len(speaking)} trials speak of their setting, not {wanted}"]
    return [
        Rule("every trial has exactly one record", len(begun), missing + strange + folders),
        Rule("the trials that were asked for", len(speaking), enough),
        Rule("every record has the right status", len(records), list(_wrong_statuses(study, records, faults))),
        Rule("no process is left", len(records), list(_left_processes(study))),
        Rule("no lock, no unfinished file is left", 1, _left_files(study)),
        Rule("the champion is the ledger's, loads and drives", 1, list(_champion_faults(study, records))),
        Rule("the search was told rewards of sound trials only", *_told_faults(records, told)),
        Rule("the remote has the whole ledger", 1, _remote_faults(study, remote, branch)),
    ]


def _wrong_statuses(study: Study, records: list[Record], faults: list[str]) -> Iterator[str]:
    for record in records:
        fault = fault_of(record, faults)
        allowed = FAULTS[fault][1]
        if record.continues is not None and fault.startswith("tcp"):
            allowed |= VALUED  # a training taken further stays with the simulator it began with
        origin = record.continues or record.retest_of
        if origin is not None and fault_of(_by_trial(records, origin), faults).startswith("tcp"):
            allowed |= {"sim_lost"}  # its model wants the simulator that may be gone
        if record.run_status not in ({"crashed"} if record.interrupted else allowed):
            yield f"trial {record.trial} ({fault}) is {record.run_status}: {record.reason}"
        result = read_json(study.run_folder(record.trial) / "result.json") or {}
        if record.mean_reward is not None and record.mean_reward != result.get("mean_reward"):
            yield f"trial {record.trial} has another reward in its run folder"


def _by_trial(records: list[Record], trial: int) -> Record:
    return next(record for record in records if record.trial == trial)


def _left_processes(study: Study) -> Iterator[str]:
    for path in [*study.models.glob("*/process.json")]:
        identity = ProcessIdentity.from_dict(read_json(path))
        if identity is not None and identity.is_alive:
            yield f"process {identity.pid} of {path.parent.name}"
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(study.root) and process.status() != psutil.STATUS_ZOMBIE:
                yield f"process {process.pid}: {' '.join(process.cmdline())[:100]}"
        except (psutil.Error, OSError):
            continue


def _left_files(study: Study) -> list[str]:
    unfinished = list(study.champion.rglob(".*"))
    return [str(path) for path in [study.lock, *unfinished] if path.exists()]


def _champion_faults(study: Study, records: list[Record]) -> Iterator[str]:
    model, manifest = ChampionTracker(study.champion).load()
    crowned = holder(reign(records))
    if crowned is None or manifest["trial"] != crowned.record.trial:
        yield f"the folder shows trial {manifest['trial']}, the ledger {crowned and crowned.record.trial}"
    elif manifest["sha256"] != crowned.record.model_sha256 or crowned.verdict != "keep":
        yield f"trial {manifest['trial']} is shown with another model, or still owes its retest"
    BASE.evaluate(model, 1)  # raises if it does not load


def _told_faults(records: list[Record], told: Path) -> tuple[int, list[str]]:
    rewards = {record.mean_reward for record in records if record.run_status in VALUED}
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    wrong = {value for values in lines for value in values if value is not None and value not in rewards}
    return len(lines), [f"{value} is no reward of a sound trial" for value in wrong]


def _remote_faults(study: Study, remote: Path, branch: str) -> list[str]:
    name = f"{branch}:{study.name}/{study.results.relative_to(study.root)}"
    shown = subprocess.run(["git", "-C", str(remote), "show", name], capture_output=True, check=False)
    return [] if shown.stdout == study.results.read_bytes() else ["its ledger differs: " + shown.stderr.decode()[:200]]
