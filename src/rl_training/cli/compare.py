"""The champion's setting against a config that a person tuned: trained with the same budget, env and seeds."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rl_training.cli.autoresearch import add_study_argument
from rl_training.cli.console import console, table
from rl_training.cli.options import require_at_least
from rl_training.errors import TrialError, UsageError

if TYPE_CHECKING:
    from rl_training.autoresearch.training import TrainingTrials

EXAMPLES = """examples:
  donkey-rl compare --with ppo/donkey --seeds 5"""
FIRST_SEED = 1000  # none that a study has used


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl compare`."""
    add_study_argument(parser)
    parser.add_argument("--with", dest="other", required=True, metavar="CONFIG", help="preset or YAML file")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each (5)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time (1)")
    parser.add_argument("--timeout", type=float, default=360.0, help="seconds one training may take (360)")


def run(args: argparse.Namespace) -> int:
    """Train both on every seed, and say which is better."""
    from rl_training.autoresearch.champion import ChampionTracker
    from rl_training.autoresearch.comparison import compare_paired
    from rl_training.autoresearch.study import Study
    from rl_training.autoresearch.training import TrainingTrials
    from rl_training.experiment.checkpoint import find_checkpoint
    from rl_training.experiment.presets import resolve

    require_at_least(args, {"seeds": 1, "jobs": 1, "timeout": 0})
    study = Study(Path(args.study))
    model, _ = ChampionTracker(study.champion).load()
    champion = find_checkpoint(model).config
    if champion is None:
        raise UsageError(f"There is no config.yaml beside {model}, so the champion cannot be trained again.")
    asked = resolve(config=args.other)
    # Both drive the same env, but for the actions that an algorithm needs.
    donkey = replace(champion.donkey, action=asked.donkey.action) if champion.is_donkey else asked.donkey
    other = replace(
        asked,
        env=champion.env,
        donkey=donkey,
        total_timesteps=champion.total_timesteps,
        eval_episodes=champion.eval_episodes,
        eval_interval=champion.eval_interval,
    )
    rewards = [
        _train(TrainingTrials(replace(config, checkpoint_interval=0)), study.models / f"compare-{name}", args)
        for name, config in (("champion", champion), ("other", other))
    ]
    grid = table(f"{champion.total_timesteps} steps each", "seed", "champion", args.other)
    for seed, pair in enumerate(zip(*rewards, strict=True), start=FIRST_SEED):
        grid.add_row(str(seed), *(f"{reward:.2f}" for reward in pair))
    console.print(grid)
    console.print(compare_paired(*rewards).sentence)
    return 0


def _train(trials: TrainingTrials, root: Path, args: argparse.Namespace) -> list[float]:
    """Rewards by seed. TrialError if a training fails: a comparison with holes would flatter one side."""
    from rl_training.autoresearch.job import Task
    from rl_training.autoresearch.outcome import outcome_of
    from rl_training.autoresearch.training import PRELOAD
    from rl_training.autoresearch.workers import Limits, WorkerPool

    shutil.rmtree(root, ignore_errors=True)
    waiting = list(range(FIRST_SEED, FIRST_SEED + args.seeds))
    rewards: dict[int, float] = {}
    pool = WorkerPool(trials, args.jobs, Limits(seconds=args.timeout), PRELOAD)
    try:
        while waiting or pool.running:
            while waiting and pool.has_room:
                seed = waiting.pop(0)
                pool.start(Task(seed, {}, seed, ""), root / f"seed-{seed}")
            for ended in pool.wait(1.0):
                outcome = outcome_of(ended.folder, ended.ending)
                if outcome.mean_reward is None:
                    raise TrialError(f"Training in {ended.folder} failed ({outcome.run_status}): {outcome.reason}.")
                rewards[ended.task.seed] = outcome.mean_reward
                console.print(f"{root.name} seed {ended.task.seed}: {outcome.mean_reward:.2f}")
    finally:
        pool.stop_all("the comparison was stopped")
    return [rewards[seed] for seed in sorted(rewards)]
