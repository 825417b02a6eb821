"""Does stopping hopeless trials and training good ones on find more in the same time? `donkey-rl bench fidelity`.

Two studies for each seed on the embedded generated_track, the same but for `--fidelity`, until each has spent the same
CPU seconds in its trials and in proposing them: time by the clock on a machine with nothing else to do, and unlike that
not spoilt by a busy one. What counts is how the champion then drives on episodes that chose nothing. The studies are
kept in ``--out``, so that a run that was ended goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rl_training.autoresearch.acquisition import Observation
from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.comparison import compare_paired
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.ledger import Ledger, Record
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.space import Params, default_space
from rl_training.autoresearch.strategy import Finished, Proposal, Search
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.training import PRELOAD, TrainingTrials, searchable
from rl_training.autoresearch.workers import Limits, WorkerPool
from rl_training.cli.console import console, table
from rl_training.experiment.presets import resolve

SHORTEST, LONGEST = 2000, 8000  # env steps
EPISODES = 20
SPENT = "The time is spent."
FRESH = 4_000_037  # seed of the last evaluation


@dataclass
class UntilSpent:
    """A search that ends when its study has used its seconds."""

    search: Search
    study: Study
    seconds: float
    proposing: float = field(default=0.0)

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        began = time.process_time()
        if self.proposing + sum(map(cost, Ledger(self.study.results).records)) >= self.seconds:
            return Finished(SPENT)
        proposal = self.search.next(finished, running, seed)
        self.proposing += time.process_time() - began
        return proposal

    def why_not(self, params: Params) -> str:
        return self.search.why_not(params)


def cost(record: Record) -> float:
    """CPU seconds of a trial."""
    return float(record.extra.get("cpu_sec", record.elapsed_sec))


def run_study(study: Study, adaptive: bool, seed: int, seconds: float) -> dict[str, float]:
    """One study to the end of its time, and what it has to show."""
    study.log.parent.mkdir(parents=True, exist_ok=True)
    base = resolve(config="ppo/donkey", over={"seed": seed, "checkpoint_interval": 0, "eval_interval": SHORTEST})
    space = searchable(default_space("ppo"), base, SHORTEST, LONGEST)
    trials = TrainingTrials(base, stop_from=SHORTEST if adaptive else None)
    search = Search(space, trials.fixed, stop_when_converged=False)
    options = Options(10_000, seed, guard=False, longest=LONGEST if adaptive else 0)
    pool = WorkerPool(trials, 1, Limits(seconds=1200.0, silence=600.0), PRELOAD)
    strategy = UntilSpent(search, study, seconds)
    reason = Controller(study, strategy, trials.comparable, pool, Narrator(study.log, quiet=True), options).run()
    if reason != SPENT:
        raise SystemExit(f"{study.name}: {reason}")
    records = Ledger(study.results).records
    return {
        "trials": len(records),
        "stopped": sum(record.stopped_at is not None for record in records),
        "longer": sum(record.continues is not None for record in records),
        "seconds": sum(map(cost, records)) + strategy.proposing,
        "halfway": best_within(records, seconds / 2),
        "champion": drive(study, trials),
    }


def best_within(records: Sequence[Record], seconds: float) -> float:
    """Best reward of the trials that ended within the time."""
    best, spent = float("-inf"), 0.0
    for record in records:
        spent += cost(record)
        if spent <= seconds and record.mean_reward is not None:
            best = max(best, record.mean_reward)
    return best


def drive(study: Study, trials: TrainingTrials) -> float:
    """Mean reward of the champion on new episodes."""
    model, _ = ChampionTracker(study.champion).load()
    return replace(trials, base=replace(trials.base, eval_episodes=EPISODES)).evaluate(model, FRESH)


def main(arguments: Sequence[str]) -> int:
    """Run the studies and print them beside each other."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench fidelity", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="studies of each kind (5)")
    parser.add_argument("--seconds", type=float, default=100.0, help="CPU seconds of each study (100)")
    parser.add_argument("--out", default="runs/bench-fidelity", help="folder of the studies (runs/bench-fidelity)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(arguments)
    found: dict[str, list[dict[str, float]]] = {"full": [], "adaptive": []}
    for seed in range(args.seeds):
        for name, studies in found.items():
            study = Study(Path(args.out) / f"{name}-{seed}")
            studies.append(run_study(study, name == "adaptive", seed, args.seconds))
            console.print(f"{study.name}: {json.dumps(studies[-1])}", soft_wrap=True)
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    title = f"{args.seconds:g} CPU s a study: best reward at half time; the champion's on {EPISODES} new episodes"
    columns = [("full", "trials"), ("full", "halfway"), ("full", "champion")]
    columns += [("adaptive", figure) for figure in ("trials", "stopped", "longer", "halfway", "champion")]
    grid = table(title, "seed", *(" ".join(column) for column in columns))
    for seed in range(args.seeds):
        grid.add_row(str(seed), *(f"{found[name][seed][figure]:.0f}" for name, figure in columns))
    console.print(grid)
    for column in ("halfway", "champion"):
        ours, plain = ([study[column] for study in found[name]] for name in ("adaptive", "full"))
        result = compare_paired(ours, plain)
        console.print(
            f"{column}: adaptive less full {result.difference:+.1f}, 95 % between {result.low:+.1f} and "
            f"{result.high:+.1f}, ahead on {result.wins} of {result.seeds} seeds",
            soft_wrap=True,
        )
    return 0
