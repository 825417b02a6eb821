"""Train every point of a grid: the baseline that the search starts from and is compared with.

The results go to clean_sweep_results.jsonl of the study; `donkey-rl autoresearch` reads them when it starts.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rl_training.cli.autoresearch import add_loop_arguments, check_flags, run_loop, trials_of
from rl_training.errors import UsageError

if TYPE_CHECKING:
    from rl_training.autoresearch.training import TrainingTrials

EXAMPLES = """examples:
  donkey-rl sweep --agent dqn
  donkey-rl sweep --agent ppo --grid learning_rate=1e-4,4e-4 --grid timesteps=10000,30000"""

GRIDS: dict[str, dict[str, list[Any]]] = {
    "dqn": {"n_steer": [3, 5, 7], "n_throttle": [2, 3], "learning_rate": [1e-3, 5e-4, 1e-4]},
}
DEFAULT_GRID: dict[str, list[Any]] = {"learning_rate": [1e-3, 4e-4, 1e-4], "timesteps": [10_000, 20_000, 30_000]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl sweep`."""
    add_loop_arguments(parser)
    parser.add_argument("--grid", action="append", default=[], metavar="NAME=V,V", help="values of one parameter")


def run(args: argparse.Namespace) -> int:
    """Train the whole grid, or what is left of it."""
    from rl_training.autoresearch.strategy import Grid

    check_flags(args)
    trials = trials_of(args)
    axes = dict(map(_axis, args.grid)) or GRIDS.get(trials.base.algo, DEFAULT_GRID)
    for name, values in axes.items():
        _check_axis(trials, name, values)
    fixed = dict(trials.fixed)
    if "timesteps" not in axes:
        fixed["timesteps"] = trials.base.total_timesteps
    grid = Grid(axes, fixed)
    return run_loop(args, trials, grid, trials_cap=len(grid.points), guard=False, sweep=True)


def _check_axis(trials: TrainingTrials, name: str, values: list[Any]) -> None:
    """UsageError for values that no training can have, or that all train the same."""
    configs = []
    for value in values:
        try:
            configs.append(trials.config({name: value}, trials.base.seed).to_dict())
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name} cannot be '{value}'; give --grid numbers as --help shows them.") from error
    if len(values) > 1 and all(config == configs[0] for config in configs):
        raise UsageError(f"--grid {name} changes nothing in a training of {trials.base.algo}; leave it out.")


def _axis(text: str) -> tuple[str, list[Any]]:
    from rl_training.experiment.yaml_text import yaml_load

    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise UsageError(f"'{text}' is no axis of a grid; expected NAME=VALUE,VALUE, such as learning_rate=1e-4,4e-4.")
    return name, [yaml_load(value, f"a value of {name}") for value in values.split(",")]
