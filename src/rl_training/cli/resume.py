"""Continue a training run from its last resume point, as if it had never stopped."""

from __future__ import annotations

import argparse

from rl_training.cli import train

EXAMPLES = """examples:
  donkey-rl resume runs/ppo-generated_track-seed0-20260101-120000
  donkey-rl resume runs/drq --timesteps 12000     (further than it was meant to go)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl resume`."""
    parser.add_argument("folder", metavar="RUN", help="the run's folder")
    parser.add_argument("--timesteps", "--total-timesteps", dest="timesteps", type=int, help="new total of env steps")
    train.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Continue; exit code 0 when the run came to its end."""
    return train.resume(args.folder, args)
