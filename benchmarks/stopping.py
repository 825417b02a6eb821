"""How often would the rule that stops hopeless trials be wrong? Replays a study whose trials all ran to their end.

    donkey-rl autoresearch --trials 50 --min-trials-before-gp 50 --fidelity full --no-convergence \\
        --set eval_interval=5000 --study runs/whole
    donkey-rl bench stopping --study runs/whole

The trials are told in many orders. One that the rule would have stopped is lost if it is of the best fifth; foretold is
what the rule says it would have come to, and real what it came to. Each row is the rule with other constants; the last
is the one in use (`rl_training/autoresearch/fidelity.py`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl_training.autoresearch import fidelity
from rl_training.autoresearch.ledger import Ledger
from rl_training.autoresearch.study import Study
from rl_training.cli.console import console, table
from rl_training.errors import UsageError
from rl_training.report.learning_curve import evaluation_curve

Trial = tuple[float, fidelity.Curve, float]  # budget, curve, reward
NAMES = ("POOR", "KIN", "ABOVE", "ENOUGH")
IN_USE = tuple(getattr(fidelity, name) for name in NAMES)
RULES = ((2 / 3, 4, 2, 8), (1 / 2, 4, 2, 8), (2 / 3, 6, 3, 12), (1 / 2, 6, 3, 12), (0.4, 6, 3, 12), (1 / 3, 6, 3, 12))


def trials_of(study: Study) -> list[Trial]:
    """Every trial of a study with its whole curve."""
    found = []
    for record in Ledger(study.results).records:
        if record.mean_reward is not None and record.retest_of is None and record.model_path is not None:
            curve = fidelity.best_so_far(evaluation_curve((study.root / record.model_path).parent))
            found.append((float(record.params["timesteps"]), curve, record.mean_reward))
    return found


def replay(trials: Sequence[Trial], rule: Sequence[float], orders: int) -> dict[str, float]:
    """Means over the orders."""
    for name, value in zip(NAMES, rule, strict=True):
        setattr(fidelity, name, value)
    best = float(np.quantile([reward for _, _, reward in trials], 0.8))
    stopped, lost, told = 0, 0, []
    for order in range(orders):
        past: list[fidelity.Curve] = []
        for i in np.random.default_rng(order).permutation(len(trials)):
            budget, curve, reward = trials[i]
            verdicts = (fidelity.hopeless(step, level, budget, past) for step, level in curve)
            verdict = next((each for each in verdicts if each is not None), None)
            if verdict is None:
                past.append(curve)
                continue
            stopped, lost = stopped + 1, lost + (reward >= best)
            told.append((verdict.foretold, curve[-1][1]))
    foretold, real = np.mean(told, axis=0) if told else (float("nan"), float("nan"))
    return {
        "stopped": stopped / orders,
        "lost": lost / orders,
        "best": float(sum(reward >= best for _, _, reward in trials)),
        "foretold": float(foretold),
        "real": float(real),
    }


def main(arguments: Sequence[str]) -> int:
    """Replay and print."""
    parser = argparse.ArgumentParser(
        prog="donkey-rl bench stopping", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", type=Path, default=Path("runs/whole"), help="folder of the study (runs/whole)")
    parser.add_argument("--orders", type=int, default=20, help="in which the trials are told (20)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(arguments)
    trials = trials_of(Study(args.study))
    if not trials:
        raise UsageError(
            f"There is no trial with a reward in {args.study}; the first lines of --help make such a study."
        )
    rows: list[dict[str, Any]] = []
    for rule in (*RULES, IN_USE):
        rows.append({"rule": dict(zip(NAMES, rule, strict=True)), **replay(trials, rule, args.orders)})
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    grid = table(f"{len(trials)} trials", "worst share", "kin", "above", "after", "stopped", "lost", "foretold", "real")
    for row in rows:
        poor, *others = row["rule"].values()
        figures = (f"{row['stopped']:.1f}", f"{row['lost']:.2f} of {row['best']:.0f}")
        grid.add_row(f"{poor:.2f}", *map(str, others), *figures, f"{row['foretold']:.0f}", f"{row['real']:.0f}")
    console.print(grid)
    return 0
