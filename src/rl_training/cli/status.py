"""How a study stands: who runs it, the running trials, the champion, the best settings, failures by cause."""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rl_training.cli.autoresearch import add_study_argument
from rl_training.cli.console import console, table
from rl_training.cli.results import figure, read_records, setting, with_long_settings

if TYPE_CHECKING:
    from rl_training.autoresearch.ledger import Record
    from rl_training.autoresearch.study import Study

EXAMPLES = """examples:
  donkey-rl status
  donkey-rl status --study agent"""
BEST = 5
BLOCKS = "▁▂▃▄▅▆▇█"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl status`."""
    add_study_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print how the study stands."""
    from rl_training.autoresearch.champion import ChampionTracker
    from rl_training.autoresearch.lock import holder
    from rl_training.autoresearch.narrator import show

    study, rows = read_records(args.study)
    records = [record for _, record in rows]
    pid = holder(study.lock)
    console.print(f"Study {study.root}: {len(records)} trials, " + (f"run by process {pid}" if pid else "not running"))
    _print_running(study, {(origin, record.trial) for origin, record in rows}, pid is not None)
    manifest = ChampionTracker(study.champion).manifest
    if manifest is None:
        console.print("Champion: none yet")
    else:
        fresh = manifest.get("fresh_reward")
        more = "" if fresh is None else f", {fresh:.2f} on fresh seeds"
        verdict = "" if manifest.get("verdict") == "keep" else ", still to be retested"
        console.print(f"Champion: trial {manifest.get('trial')}, {manifest['mean_reward']:.2f}{more}{verdict}")
        console.print(f"  {show(manifest['params'])}")
    _print_best(records)
    failures = Counter(record.run_status for record in records if record.mean_reward is None)
    for status, count in failures.most_common():
        reason = next(record.reason for record in reversed(records) if record.run_status == status)
        console.print(f"{count} {status}, the last: {reason}")
    if pid and study.log.exists():
        lines = study.log.read_text(encoding="utf-8", errors="replace").splitlines()
        progress = [line for line in lines if " at most " in line]
        console.print("".join(progress[-1:])[19:].strip())
    return 0


def _print_running(study: Study, recorded: set[tuple[str, int]], is_run: bool) -> None:
    """Trials that have begun and not ended; of a study that is run, those on other machines too."""
    from rl_training.autoresearch.identity import ProcessIdentity
    from rl_training.autoresearch.job import Task
    from rl_training.autoresearch.narrator import show
    from rl_training.autoresearch.reading import read_json
    from rl_training.autoresearch.study import SEARCH_PREFIX, SWEEP_PREFIX

    for origin, prefix in (("sweep", SWEEP_PREFIX), ("search", SEARCH_PREFIX)):
        for trial, folder in study.run_folders(prefix).items():
            if (origin, trial) in recorded:
                continue
            task = Task.load(folder)
            process = ProcessIdentity.from_dict(read_json(folder / "process.json"))
            is_here = process is not None and process.is_alive
            if task is not None and (is_here or (is_run and not (folder / "result.json").exists())):
                where = f" as process {process.pid}" if process is not None and is_here else ""
                console.print(f"{folder.name} runs{where}{_curve(folder)}")
                console.print(f"  {show(task.params)}")


def _curve(folder: Path) -> str:
    """The learning curve so far, on one line."""
    from rl_training.report.learning_curve import training_curve

    points = training_curve(folder)
    if not points:
        return ""
    rewards = [level for _, level in points]
    low, span = min(rewards), (max(rewards) - min(rewards)) or 1.0
    shown = itertools.islice(rewards, 0, None, -(-len(rewards) // 40))
    line = "".join(BLOCKS[round((reward - low) / span * (len(BLOCKS) - 1))] for reward in shown)
    return f": {line} {rewards[-1]:.1f} at step {points[-1][0]:,.0f}"


def _print_best(records: list[Record]) -> None:
    best = sorted((r for r in records if r.mean_reward is not None), key=lambda r: -(r.mean_reward or 0.0))[:BEST]
    if best:
        grid = with_long_settings(table("Best trials", "trial", "reward", "std", "setting"))
        for record in best:
            grid.add_row(str(record.trial), figure(record.mean_reward), figure(record.std_reward), setting(record))
        console.print(grid)
