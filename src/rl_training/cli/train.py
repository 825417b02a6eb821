"""Train a policy: on a DonkeyCar track from its camera, or on any Gymnasium env.

What is not said by flags comes from the preset that fits the agent and the env (`donkey-rl config list`). The run
folder holds everything: config, metrics, models, result.json. Ctrl-C stops; `donkey-rl resume RUN` goes on from the
last resume point.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rl_training.cli.options import add_config_arguments, config_of, given_config_flags
from rl_training.errors import UsageError

EXAMPLES = """examples:
  donkey-rl train
  donkey-rl train --agent ppo --track warren --timesteps 60000
  donkey-rl train --agent ppg --env CartPole-v1 --seed 3
  donkey-rl train --config drq/donkey --set algo_kwargs.learning_rate=5e-4 --save-dir runs/drq
  donkey-rl train --resume runs/drq"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl train`."""
    add_config_arguments(parser)
    parser.add_argument(
        "--save-dir", "--output-dir", dest="save_dir", help="the run's folder (one of its own in runs/)"
    )
    parser.add_argument("--study", help=argparse.SUPPRESS)  # the folder that holds models/, for scripts in agent/
    parser.add_argument("--resume", metavar="RUN", help="continue this run folder instead of beginning one")
    add_output_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """What is printed."""
    parser.add_argument("--quiet", action="store_true", help="no progress")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--print-steps", action="store_true", help="every step's reward instead of a progress bar")
    kind.add_argument("--json", action="store_true", help="print result.json and nothing else")


def run(args: argparse.Namespace) -> int:
    """Train; exit code 0 when the run came to its end, whether or not the policy is any good."""
    from rl_training.api import verbs

    if args.resume:
        unheard = [*given_config_flags(args), *(["--save-dir"] if args.save_dir else [])]
        if unheard:
            raise UsageError(
                f"A resumed run keeps its config and folder, so {unheard[0]} cannot be given with --resume."
            )
        return resume(args.resume, args)
    config = config_of(args)
    folder = Path(args.save_dir) if args.save_dir else None
    if folder is None:
        from rl_training.experiment.run_folder import new_run_path

        folder = new_run_path(config, Path(args.study) / "models" if args.study else verbs.RUNS)
    if not args.json:
        reward = f", reward {config.donkey.reward}" if config.is_donkey else ""
        print(f"Training {config.algo} on {config.env_name} for {config.total_timesteps} steps{reward}.", flush=True)
        print(f"Run folder: {folder}", flush=True)
    try:
        result = verbs.train(config, folder, quiet=args.quiet or args.json, print_steps=args.print_steps)
    except KeyboardInterrupt:
        say_how_to_go_on(folder)
        raise
    return report(result, folder, args.json)


def say_how_to_go_on(folder: Path) -> None:
    """After Ctrl-C: whether there is a point to resume from."""
    saved = any((folder / "checkpoints").glob("[0-9]*"))
    hint = f"'donkey-rl resume {folder}' goes on from its last checkpoint" if saved else "it had no checkpoint yet"
    print(f"\nStopped; {hint}.", file=sys.stderr)


def resume(folder: str, args: argparse.Namespace) -> int:
    """Continue a run."""
    from rl_training.api import verbs

    try:
        result = verbs.resume(
            folder, total_timesteps=args.timesteps, quiet=args.quiet or args.json, print_steps=args.print_steps
        )
    except KeyboardInterrupt:
        say_how_to_go_on(Path(folder))
        raise
    return report(result, Path(folder), args.json)


def report(result: dict[str, Any], folder: Path, as_json: bool) -> int:
    """Say what came of a run."""
    if as_json:
        print(json.dumps(result, indent=2))
        return 0
    from rl_training.runtime.scoring import summary

    print("\n".join(summary(result)))
    baseline = result.get("baseline")
    if baseline:
        ratio = "" if baseline["ratio"] is None else f", {baseline['ratio']:.2f} times the better of them"
        print(f"Random policy {baseline['random']:.2f}, untrained policy {baseline['untrained']:.2f}{ratio}.")
    if result["run_status"] == "no_learning":
        print(f"Status no_learning: below {result['margin']:g} times the better of them; train longer.")
    if result["run_status"] == "invalid":
        print("Status invalid: the env's rewards are no finite numbers.")
    print(f"Model: {folder / result['model']}", flush=True)
    return 0
