"""The trials of a study as a table, as CSV or JSON, or as a picture."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rl_training.cli.autoresearch import add_study_argument
from rl_training.cli.console import console, table
from rl_training.cli.options import require_at_least
from rl_training.errors import StudyError

if TYPE_CHECKING:
    from rich.table import Table

    from rl_training.autoresearch.ledger import Record
    from rl_training.autoresearch.study import Study

EXAMPLES = """examples:
  donkey-rl results --sort reward --limit 10
  donkey-rl results --study agent --csv > trials.csv
  donkey-rl results --picture study.png"""
SORTS = ("trial", "reward", "time", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl results`."""
    add_study_argument(parser)
    parser.add_argument("--sort", choices=SORTS, default="trial", help="by what (trial)")
    parser.add_argument("--limit", type=int, default=0, help="rows to show (all)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV with every column")
    form.add_argument("--json", action="store_true", help="print the records for programs")
    form.add_argument(
        "--picture", metavar="FILE", help="draw rewards by trial, and what the model makes of each parameter (PNG)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the trials."""
    require_at_least(args, {"limit": 0})
    found = read_records(args.study)[1]
    if args.picture:
        from rl_training.report.study_picture import save_study_picture

        console.print(f"Picture: {save_study_picture([record for _, record in found], args.picture)}")
        return 0
    rows = sorted(found, key=lambda row: _key(args.sort, row[1]))
    rows = rows[: args.limit] if args.limit else rows
    if args.csv:
        _write_csv(rows)
        return 0
    if args.json:
        print(json.dumps([{"origin": origin, **asdict(record)} for origin, record in rows], indent=2))
        return 0
    columns = ("trial", "reward", "std", "status", "seconds", "champion", "setting")
    grid = with_long_settings(table(f"Trials of {args.study}", *columns))
    for origin, record in rows:
        crown = record.verdict if record.champion else ""
        grid.add_row(
            f"{origin} {record.trial}", figure(record.mean_reward), figure(record.std_reward), record.run_status,
            f"{record.elapsed_sec:.1f}", crown, setting(record),
        )  # fmt: skip
    console.print(grid)
    return 0


def read_records(folder: str) -> tuple[Study, list[tuple[str, Record]]]:
    """All records of a study, each with its origin: sweep or search. A running study may be read."""
    from rl_training.autoresearch.ledger import Ledger
    from rl_training.autoresearch.study import Study

    study = Study(Path(folder))
    if not study.results.parent.is_dir():
        raise StudyError(f"There is no study in '{folder}'; run `donkey-rl autoresearch --study {folder}` first.")
    origins = (("sweep", study.sweep_results), ("search", study.results))
    return study, [(origin, record) for origin, path in origins for record in Ledger(path).records]


def figure(value: float | None) -> str:
    """A reward in a table."""
    return "-" if value is None else f"{value:.2f}"


def with_long_settings(grid: Table) -> Table:
    """The last column takes several lines, so that the others keep their width."""
    last = grid.columns[-1]
    last.justify, last.no_wrap = "left", False
    return grid


def setting(record: Record) -> str:
    """A setting in a table, without what is the same in all of a study."""
    from rl_training.autoresearch.narrator import show

    return show({key: value for key, value in record.params.items() if key not in ("eval_episodes", "reward_shaping")})


def _key(sort: str, record: Record) -> tuple[float | str, ...]:
    if sort == "reward":
        return (-record.mean_reward if record.mean_reward is not None else float("inf"),)
    if sort == "time":
        return (-record.elapsed_sec,)
    return (record.run_status,) if sort == "status" else ()


def _write_csv(rows: list[tuple[str, Record]]) -> None:
    names = list(dict.fromkeys(name for _, record in rows for name in record.params))
    extras = list(dict.fromkeys(name for _, record in rows for name in record.extra))
    columns = (
        "trial", "timestamp", "run_status", "mean_reward", "std_reward", "elapsed_sec", "champion", "verdict",
        "retest_of", "fresh_reward", "own_fresh_reward", "continues", "interrupted", "seed", "env_set",
        "reward_version", "model_path", "reason",
    )  # fmt: skip
    writer = csv.writer(sys.stdout)
    writer.writerow(["origin", *columns, *(f"params.{name}" for name in names), *(f"extra.{name}" for name in extras)])
    for origin, record in rows:
        own = [getattr(record, column) for column in columns]
        settings, told = (record.params.get(name) for name in names), (record.extra.get(name) for name in extras)
        writer.writerow([origin, *own, *settings, *told])
