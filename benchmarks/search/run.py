"""Plays peers against problems, and tables who finds what in how many trials.

    python benchmarks/search/run.py play --set standard --peers ours optuna-tpe --seeds 20
    python benchmarks/search/run.py table --set standard [--json]

`play` appends one line per (problem, peer, seed) to the results file and skips those that are there, so it can be
stopped and started at will, and several may run side by side on different peers. `table` compares `ours` with each peer
on the runs both have: mean normalised regret, paired difference with its standard error, wins and losses.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import numpy.typing as npt
from families import generated
from peers import PEERS
from problems import Problem, standard

Key = tuple[str, str, int]


def problem_set(name: str) -> dict[str, Problem]:
    if name in ("standard", "noisy", "exact"):
        return {k: v for k, v in standard().items() if name == "standard" or k.endswith("-exact") == (name == "exact")}
    return generated(name)


def load(path: Path, trials: int) -> dict[Key, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return {(row["problem"], row["peer"], row["seed"]): row for row in rows if row["trials"] == trials}


def play(args: argparse.Namespace) -> None:
    problems = problem_set(args.set)
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for name, problem in problems.items():
            for peer in args.peers:
                if (name, peer, seed) in load(args.results, args.trials):
                    continue
                start = time.process_time()
                game = PEERS[peer](problem, seed, args.trials)
                row = {
                    "problem": name,
                    "peer": peer,
                    "seed": seed,
                    "trials": args.trials,
                    "regret": problem.regret(game.chosen),
                    "regret_best_tried": min(problem.regret(u) for u in game.tried),
                    "cpu_seconds": round(time.process_time() - start, 3),
                }
                with args.results.open("a") as stream:
                    stream.write(json.dumps(row) + "\n")
                print(f"{name:16s} {peer:14s} seed {seed:3d}  regret {row['regret']:.3f}", flush=True)


def record(difference: npt.NDArray[np.float64]) -> list[int]:
    """Wins and losses of ours."""
    return [int((difference > 1e-6).sum()), int((difference < -1e-6).sum())]


def compare(rows: dict[Key, dict[str, Any]], names: list[str], peer: str, metric: str) -> dict[str, Any]:
    """One peer against ours: means over problems of means over seeds, and differences on the runs both have."""
    mine = {(p, s): row[metric] for (p, who, s), row in rows.items() if who == "ours" and p in names}
    theirs = {(p, s): row[metric] for (p, who, s), row in rows.items() if who == peer and p in names}
    shared = sorted(set(mine) & set(theirs))
    difference = np.array([theirs[key] - mine[key] for key in shared], dtype=float)
    per_problem = {n: [theirs[key] for key in theirs if key[0] == n] for n in names}
    means = {n: float(np.mean(values)) for n, values in per_problem.items() if values}
    cpu = [row["cpu_seconds"] for (p, who, _), row in rows.items() if who == peer and p in names]
    return {
        "peer": peer,
        "runs": len(theirs),
        "mean": float(np.mean(list(means.values()))) if means else None,
        "problems": means,
        "paired": len(shared),
        "ours_on_paired": float(np.mean([mine[key] for key in shared])) if shared else None,
        "difference": float(difference.mean()) if shared else None,
        "standard_error": float(difference.std(ddof=1) / np.sqrt(len(shared))) if len(shared) > 1 else None,
        "our_wins": record(difference)[0],
        "our_losses": record(difference)[1],
        "wins_per_problem": {
            n: record(difference[np.array([key[0] == n for key in shared], dtype=bool)]) for n in names
        },
        "cpu_seconds_a_run": float(np.mean(cpu)) if cpu else None,
    }


def mean_ranks(comparisons: list[dict[str, Any]], names: list[str]) -> dict[str, float]:
    """Rank of each peer's mean regret, averaged over the problems, among the peers that played them all."""
    full = [c for c in comparisons if len(c["problems"]) == len(names)]
    if not full:
        return {}
    means = np.array([[c["problems"][n] for n in names] for c in full])
    ranks = (means[:, None, :] > means[None]).sum(axis=1) + ((means[:, None, :] == means[None]).sum(axis=1) + 1) / 2
    return {c["peer"]: float(rank) for c, rank in zip(full, ranks.mean(axis=1), strict=True)}


def row_of(c: dict[str, Any], rank: float | None) -> str:
    """One peer's line: its mean over problems, and on the runs shared with ours their means and difference."""
    paired, record = "", ""
    if c["peer"] != "ours" and c["paired"]:
        error = "" if c["standard_error"] is None else f" ± {c['standard_error']:.3f}"
        theirs = c["ours_on_paired"] + c["difference"]
        paired = f"{theirs:.3f} vs {c['ours_on_paired']:.3f}: {c['difference']:+.3f}{error}"
        record = f"{c['our_wins']}/{c['our_losses']}"
    shown = "" if rank is None else f"{rank:.2f}"
    cells = [c["peer"], c["runs"], f"{c['mean']:.3f}", shown, paired, record, f"{c['cpu_seconds_a_run']:.1f}"]
    return f"| {' | '.join(map(str, cells))} |"


def table(args: argparse.Namespace) -> None:
    names = list(problem_set(args.set))
    rows = load(args.results, args.trials)
    comparisons = [compare(rows, names, peer, args.metric) for peer in args.peers]
    comparisons = sorted((c for c in comparisons if c["runs"]), key=lambda c: c["mean"])
    ranks = mean_ranks(comparisons, names)
    if args.json:
        result = {"set": args.set, "metric": args.metric, "mean_ranks": ranks, "peers": comparisons}
        print(json.dumps(result, indent=1))
        return
    print("| peer | runs | mean | rank | theirs vs ours on shared runs | our wins/losses | CPU s a run |")
    print("|---" * 7 + "|")
    for c in comparisons:
        print(row_of(c, ranks.get(c["peer"])))
    print("\n| problem | " + " | ".join(c["peer"] for c in comparisons) + " |")
    print("|---" * (1 + len(comparisons)) + "|")
    for n in names:
        cells = []
        for c in comparisons:
            cell = f"{c['problems'][n]:.3f}" if n in c["problems"] else ""
            if c["peer"] != "ours" and sum(c["wins_per_problem"][n]):
                cell += " ({}/{})".format(*c["wins_per_problem"][n])
            cells.append(cell)
        print(f"| {n} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["play", "table"])
    parser.add_argument("--set", choices=["standard", "noisy", "exact", "tuning", "checking"], default="noisy")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--metric", choices=["regret", "regret_best_tried"], default="regret")
    parser.add_argument("--results", type=Path, required=True, help="a JSONL file outside the repository")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    (play if args.command == "play" else table)(args)


if __name__ == "__main__":
    main()
