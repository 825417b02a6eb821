"""Plays peers against problems, and tables who finds what in how many trials.

    donkey-rl bench search [play|table] [--set noisy|exact|checking|…] [--peers ours optuna-tpe …] [--seeds 3] [--json]

`play` appends one line per (problem, peer, seed) to the results file and skips those that are there, so it can be
stopped and started at will, and several may run side by side on different peers. `table` compares `ours` with each peer
on the runs both have: mean normalised regret, paired difference with its standard error, wins and losses. Without
either word, both are done in turn. Peers that this Python lacks are played by the one of `.venv-peers`, which
`benchmarks/search/peers.sh` makes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import numpy.typing as npt
from families import generated
from peers import NEEDS, PEERS
from problems import Problem, standard

from rl_training.errors import DonkeyRLError, UsageError

Key = tuple[str, str, int]

HERE = Path(__file__).resolve()
PEERS_PYTHON = HERE.parents[2] / ".venv-peers" / "bin" / "python"
CHEAP = ["ours", "random", "optuna-tpe", "optuna-cma"]  # a second a run or less


def problem_set(name: str) -> dict[str, Problem]:
    if name in ("standard", "noisy", "exact"):
        return {k: v for k, v in standard().items() if name == "standard" or k.endswith("-exact") == (name == "exact")}
    return generated(name)


def load(path: Path, trials: int) -> dict[Key, dict[str, Any]]:
    """Rows of studies of this many trials; a torn last line, of a run that was killed, does not count."""
    lines = path.read_text().splitlines() if path.exists() else []
    try:
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        return {(row["problem"], row["peer"], row["seed"]): row for row in rows if row["trials"] == trials}
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is not a results file of this benchmark; name another with --results.") from error


def is_here(peer: str) -> bool:
    """Whether this Python has what the peer needs."""
    return NEEDS.get(peer) is None or importlib.util.find_spec(NEEDS[peer]) is not None


def play(args: argparse.Namespace) -> None:
    args.results.parent.mkdir(parents=True, exist_ok=True)
    away = [peer for peer in args.peers if not is_here(peer)]
    if away and (not PEERS_PYTHON.exists() or Path(sys.prefix) == PEERS_PYTHON.parents[1]):
        raise UsageError(
            f"This Python lacks what {', '.join(away)} needs; benchmarks/search/peers.sh makes one that has it."
        )
    problems = problem_set(args.set)
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for name, problem in problems.items():
            for peer in args.peers:
                if peer not in away and (name, peer, seed) not in load(args.results, args.trials):
                    play_one(problem, peer, seed, args)
        if away:
            play_away(away, seed, args)


def play_one(problem: Problem, peer: str, seed: int, args: argparse.Namespace) -> None:
    start = time.process_time()
    game = PEERS[peer](problem, seed, args.trials)
    row = {
        "problem": problem.name,
        "peer": peer,
        "seed": seed,
        "trials": args.trials,
        "regret": problem.regret(game.chosen),
        "regret_best_tried": min(problem.regret(u) for u in game.tried),
        "cpu_seconds": round(time.process_time() - start, 3),
    }
    with args.results.open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    print(f"{problem.name:16s} {peer:14s} seed {seed:3d}  regret {row['regret']:.3f}", file=sys.stderr, flush=True)


def play_away(peers: list[str], seed: int, args: argparse.Namespace) -> None:
    """One seed of the peers that live in the other environment, by this script under its Python."""
    words = [str(PEERS_PYTHON), str(HERE), "play", "--set", args.set, "--trials", str(args.trials)]
    words += ["--results", str(args.results), "--first-seed", str(seed), "--seeds", "1", "--peers", *peers]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(HERE.parents[2] / "src")}, check=False)
    if done.returncode:
        raise DonkeyRLError(
            f"The Python of .venv-peers ended with code {done.returncode} while playing {', '.join(peers)}."
        )


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
    if not comparisons:
        raise UsageError(f"{args.results} holds no run of set '{args.set}' with {args.trials} trials; play some first.")
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


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="donkey-rl bench search", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=["play", "table"], help="only this half")
    parser.add_argument("--set", choices=["standard", "noisy", "exact", "tuning", "checking"], default="noisy")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), help=f"which ({' '.join(CHEAP)}; table: all)")
    parser.add_argument("--seeds", type=int, default=3, help="how many (3)")
    parser.add_argument("--first-seed", type=int, default=200, help="the first of them (200)")
    parser.add_argument("--trials", type=int, default=50, help="trials of a study (50)")
    parser.add_argument("--metric", choices=["regret", "regret_best_tried"], default="regret")
    parser.add_argument("--results", type=Path, default=Path("runs/bench-search.jsonl"), help="where runs are kept")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(arguments)
    for name, least in (("seeds", 1), ("first_seed", 0), ("trials", 5)):
        if getattr(args, name) < least:
            raise UsageError(f"--{name.replace('_', '-')} must be {least} or more, got {getattr(args, name)}.")
    if args.command != "table":
        play(argparse.Namespace(**{**vars(args), "peers": args.peers or CHEAP}))
    if args.command != "play":
        table(argparse.Namespace(**{**vars(args), "peers": args.peers or list(PEERS)}))
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except DonkeyRLError as problem:
        print(f"error: {problem}", file=sys.stderr)
        raise SystemExit(problem.exit_code) from None
