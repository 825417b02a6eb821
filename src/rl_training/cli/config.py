"""List the training configs that come with the package, or show one with everything that it leaves to defaults."""

from __future__ import annotations

import argparse
import json

from rl_training.cli.console import console, table
from rl_training.cli.options import add_config_arguments, config_of
from rl_training.experiment.presets import preset_names, resolve

EXAMPLES = """examples:
  donkey-rl config list
  donkey-rl config show ppo/donkey
  donkey-rl config show ppo/donkey --track warren --set algo_kwargs.n_epochs=8 > mine.yaml
  donkey-rl train --config mine.yaml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl config`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    listing = actions.add_parser("list", help="the presets")
    listing.add_argument("--json", action="store_true", help="print JSON for programs")
    show = actions.add_parser("show", help="one config as YAML, every value spelled out")
    show.add_argument("name", nargs="?", help="preset or file (the preset that fits the flags)")
    show.add_argument("--json", action="store_true", help="print JSON instead of YAML")
    add_config_arguments(show)


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action == "list":
        return _list(args.json)
    args.config = args.name or args.config
    config = config_of(args)
    print(json.dumps(config.to_dict(), indent=2) if args.json else config.to_yaml().rstrip())
    return 0


def _list(as_json: bool) -> int:
    configs = {name: resolve(config=name) for name in preset_names()}
    if as_json:
        print(json.dumps({name: config.to_dict() for name, config in configs.items()}, indent=2))
        return 0
    grid = table("Presets", "name", "env", "steps", "envs")
    for name, config in configs.items():
        grid.add_row(name, config.env_name, f"{config.total_timesteps:,}", str(config.num_envs))
    console.print(grid)
    console.print("Train with one: donkey-rl train --config NAME. See all its values: donkey-rl config show NAME.")
    return 0
