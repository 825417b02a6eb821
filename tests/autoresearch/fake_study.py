"""A study of fake trials, as a program that a test can kill: ``python -m tests.autoresearch.fake_study FOLDER SEED``.

Its settings hold every fault once among sound trials, in an order that the seed decides; the disk is full now and then,
and the remote is gone.
"""

from __future__ import annotations

import errno
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_training.autoresearch import controller as controller_module
from rl_training.autoresearch import ledger as ledger_module
from rl_training.autoresearch.acquisition import Observation
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.ledger import Comparable
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.publish import Publisher
from rl_training.autoresearch.space import Params
from rl_training.autoresearch.strategy import Finished, Proposal
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.workers import Limits, WorkerPool
from tests.autoresearch.fake_trials import FAULTS, FakeTrials

COMPARABLE = Comparable("fake", "a", "v1")
SOUND = (10.0, 40.0, 20.0, 70.0, 30.0)


@dataclass
class Script:
    """Proposes the settings given, in order; keeps what it was told."""

    settings: Sequence[Params]
    told: list[list[Observation]] = field(default_factory=list)

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        self.told.append(list(finished))
        tried = [observation.params["step"] for observation in finished] + [params["step"] for params in running]
        left = [i for i in range(len(self.settings)) if i not in tried]
        if not left:
            return Finished("The script has ended.")
        return Proposal({"agent": "fake", "step": left[0], **self.settings[left[0]]}, "script")

    def why_not(self, params: Params) -> str:
        return ""


def faulty_settings(seed: int) -> list[Params]:
    settings: list[Params] = [{"fault": fault, "reward": 99.0} for fault in FAULTS]
    settings += [{"fault": "", "reward": reward} for reward in SOUND]
    random.Random(seed).shuffle(settings)
    return settings


def fill_the_disk_now_and_then(seed: int) -> None:
    write, chance = ledger_module._write_whole, random.Random(seed)

    def unreliable(descriptor: int, data: bytes) -> None:
        if chance.random() < 0.3:
            write(descriptor, data[: chance.randrange(len(data))])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(descriptor, data)

    ledger_module._write_whole = unreliable
    controller_module.RETRY_AFTER = 0.05


def main(folder: str, seed: int) -> None:
    study = Study(Path(folder))
    study.log.parent.mkdir(parents=True, exist_ok=True)
    fill_the_disk_now_and_then(seed)
    limits = Limits(seconds=5.0, memory_bytes=300 << 20, silence=3.0, grace=0.2)
    pool = WorkerPool(FakeTrials(seconds=0.05), 3, limits, preload=(), threads=1)
    options = Options(longest_pause=0.05, publish_every=4, give_up_after=0)
    publisher = Publisher(study, str(study.root / "no-such-remote.git"), push_seconds=5.0)
    script = Script(faulty_settings(seed))
    Controller(study, script, COMPARABLE, pool, Narrator(study.log), options, publisher).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
