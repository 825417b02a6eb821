"""The controller of a soak, as a program to be killed: ``python -m tests.autoresearch.soak_night FOLDER SEED …``."""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from rl_training.autoresearch import controller as controller_module
from rl_training.autoresearch import ledger as ledger_module
from rl_training.autoresearch.acquisition import Observation
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.publish import Publisher
from rl_training.autoresearch.space import Parameter, Params, Space
from rl_training.autoresearch.strategy import Finished, Proposal, Search
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.training import PRELOAD, TrainingTrials
from rl_training.autoresearch.workers import Limits, WorkerPool
from rl_training.errors import DonkeyRLError
from rl_training.experiment.presets import resolve
from tests.autoresearch.soak_trials import DAY, SoakTrials, jump_clock, schedule

SMALL = {
    "num_envs": 1,
    "eval_episodes": 1,
    "eval_interval": 0,
    "baseline_episodes": 0,
    "checkpoint_interval": 0,
    "donkey": {"limits": {"max_steps": 40}},
    "algo_kwargs": {"n_steps": 64, "batch_size": 64, "n_epochs": 1},
}
SPACE = Space(
    (
        Parameter("learning_rate", "log_float", 1e-5, 1e-2),
        Parameter("gamma", "float", 0.9, 0.99),
        Parameter("timesteps", "int", 64, 192),
    )
)
LONGEST = 256
BASE = TrainingTrials(resolve(config="ppo/donkey", over=SMALL))


@dataclass(frozen=True)
class ToldSearch(Search):
    """Keeps what it is told, for the examiner."""

    told: Path = Path()

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        with self.told.open("a") as file:
            print(json.dumps([observation.value for observation in finished]), file=file)
        return super().next(finished, running, seed)


class JumpingDatetime(datetime):
    """A calendar that follows the jumps of ``time.time``."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(time.time(), tz) + timedelta(0)


def jump_now_and_then(seed: int) -> None:
    """Move this process's clock by up to a day, every few seconds."""
    chance = random.Random(seed)

    def jump() -> None:
        real = time.time
        while True:
            time.sleep(chance.uniform(2.0, 6.0))
            time.time = real
            jump_clock(chance.uniform(-DAY, DAY))

    controller_module.datetime = JumpingDatetime  # type: ignore[misc]
    threading.Thread(target=jump, daemon=True).start()


def fill_the_disk_on_demand(flag: Path) -> None:
    """Where no file system of our own can be mounted: the ledger's writes fail while there is a file ``flag``."""
    write = ledger_module._write_whole

    def refusing(descriptor: int, data: bytes) -> None:
        if flag.exists():
            write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(descriptor, data)

    ledger_module._write_whole = refusing


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("life", type=int, help="which controller of the night this is")
    for name in ("trials", "jobs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("address", "remote"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("wishes", "told"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("timeout", "silence", "memory"):
        parser.add_argument(f"--{name}", type=float, required=True)
    args = parser.parse_args(arguments)
    jump_now_and_then(args.seed * 1000 + args.life)
    fill_the_disk_on_demand(args.wishes / "disk-full")
    controller_module.RETRY_AFTER = 0.5
    study = Study(args.folder)
    trials = SoakTrials(BASE, tuple(schedule(args.seed)), args.address, args.wishes)
    limits = Limits(args.timeout, int(args.memory * 2**30), args.silence, grace=1.0)
    pool = WorkerPool(trials, args.jobs, limits, (*PRELOAD, "tests.autoresearch.soak_trials"))
    search = ToldSearch(SPACE, BASE.fixed, stop_when_converged=False, told=args.told)
    options = Options(args.trials, args.seed, longest_pause=2.0, publish_every=5, give_up_after=0, longest=LONGEST)
    publisher = Publisher(study, args.remote, push_seconds=3.0)
    try:
        study.log.parent.mkdir(parents=True, exist_ok=True)
        Controller(study, search, BASE.comparable, pool, Narrator(study.log, True), options, publisher).run()
    except (DonkeyRLError, OSError) as error:  # as the command line does
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
