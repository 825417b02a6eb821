"""What the loop itself costs, trials apart: `donkey-rl bench loop`.

Fake trials that end at once, after a ledger of so many earlier ones: processor time of a turn (the suggestion apart),
seconds until a study of 10,000 trials goes on, and the memory of it all.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rl_training.autoresearch.acquisition import Observation
from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Comparable, Ledger, Record
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.outcome import Ending
from rl_training.autoresearch.space import Params, default_space
from rl_training.autoresearch.strategy import Finished, Proposal, Search
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.workers import Ended
from rl_training.experiment.atomic import write_json

MODEL_BYTES = 10 << 20
COMPARABLE = Comparable("dqn", "a", "v1")
SETTING = {"agent": "dqn", "n_steer": 7, "n_throttle": 3, "learning_rate": 1e-3, "timesteps": 9000}


class InstantPool:
    """Trials that are over as they begin."""

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
        folder.mkdir(parents=True)
        task.save(folder)
        write_json(folder / "result.json", {"run_status": "crashed", "reason": "a fake"})
        self._ended.append(Ended(task, folder, Ending(0), 0.0))

    def wait(self, seconds: float) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def stop_all(self, why: str) -> list[Ended]:
        return self.wait(0.0)


class NoSearch(Search):
    """All of the search but its model."""

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        return Proposal({**SETTING, "timesteps": 5000 + len(finished)}, "none")


def write_ledger(study: Study, count: int) -> None:
    """``count`` sound trials with a champion among them."""
    study.run_folder(1).mkdir(parents=True)
    model = study.run_folder(1) / "model.zip"
    model.write_bytes(bytes(MODEL_BYTES))
    study.results.parent.mkdir(parents=True, exist_ok=True)
    with study.results.open("wb") as file:
        for trial in range(1, count + 1):
            params = {**SETTING, "learning_rate": 1e-4 + 1e-7 * trial}
            path = str(model.relative_to(study.root))
            record = Record(
                trial, "t", params, "ok", 99.0 - trial / count, 1.0, path, trial == 1, verdict="keep" * (trial == 1)
            )
            file.write(Record(**{**record.__dict__, "env_set": "a", "reward_version": "v1"}).to_line())


def run(root: Path, earlier: int, trials: int) -> tuple[float, float]:
    """Seconds until the loop's first turn, and processor seconds of one turn."""
    study = Study(root)
    write_ledger(study, earlier)
    options = Options(trials=earlier + trials, give_up_after=0, guard=False)
    search = NoSearch(default_space("dqn"), {"agent": "dqn"})
    pool = InstantPool()
    began, first = time.monotonic(), []
    start = pool.start

    def note(task: Task, folder: Path) -> None:
        first.append((time.monotonic(), time.process_time()))
        start(task, folder)

    pool.start = note  # type: ignore[method-assign]
    Controller(study, search, COMPARABLE, pool, Narrator(study.log, quiet=True), options).run()
    turn = (first[-1][1] - first[0][1]) / (len(first) - 1)
    assert ChampionTracker(study.champion).is_whole
    assert len(Ledger(study.results).records) == earlier + trials
    return first[0][0] - began, turn


def main(arguments: Sequence[str]) -> int:
    """Print a line for each size of the ledger."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench loop", description=__doc__)
    parser.add_argument("--earlier", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--trials", type=int, default=20)
    args = parser.parse_args(arguments)
    print("earlier trials   until the first   CPU of a turn   memory")
    for earlier in args.earlier:
        with tempfile.TemporaryDirectory() as name:
            until, turn = run(Path(name) / "study", earlier, args.trials)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{earlier:14,} {until:15.2f} s {1000 * turn:12.1f} ms {memory:6.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
