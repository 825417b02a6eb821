"""The champion of a study: what it is, and how it drives."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rl_training.cli.autoresearch import add_study_argument
from rl_training.cli.console import console, table
from rl_training.errors import ModelError

EXAMPLES = """examples:
  donkey-rl champion
  donkey-rl champion show --track mini_monaco --gif champion.gif"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl champion`."""
    parser.add_argument(
        "action", nargs="?", choices=("info", "show"), default="info", help="say what it is, or drive it"
    )
    add_study_argument(parser)
    parser.add_argument("--track", help="where it drives (the first track of its training)")
    parser.add_argument("--seconds", type=float, default=25.0, help="how long it drives (25)")
    parser.add_argument("--gif", default="champion.gif", help="where to save the film (champion.gif)")
    parser.add_argument("--json", action="store_true", help="print the manifest for programs")


def run(args: argparse.Namespace) -> int:
    """Check the model against its manifest, then print or drive it."""
    from rl_training.autoresearch.champion import ChampionTracker
    from rl_training.autoresearch.study import Study

    study = Study(Path(args.study))
    model, manifest = ChampionTracker(study.champion).load()
    if args.action == "show":
        return _show(args, model)
    if args.json:
        print(json.dumps(manifest, indent=2))
        return 0
    grid = table(f"Champion of {study.name}", "what", "figure")
    for key, value in manifest.items():
        if key == "params":
            for name, setting in value.items():
                grid.add_row(f"  {name}", str(setting))
        else:
            grid.add_row(key, str(value))
    console.print(grid)
    console.print(f"Model: {study.champion / 'model.zip'}")
    return 0


def _show(args: argparse.Namespace, model: Path) -> int:
    from rl_training.experiment.checkpoint import find_checkpoint
    from rl_training.experiment.registry import algorithm_spec
    from rl_training.report.film import save_film
    from rl_training.runtime.showing import show

    config = find_checkpoint(model).config
    if config is None or not config.is_donkey:
        raise ModelError("The champion's config.yaml says nothing of a car, so there is nothing to show.")
    spec = algorithm_spec(config.algo)
    policy = spec.load(spec.algorithm(), model, None, config.device)
    track = args.track or config.donkey.tracks[0]
    showing = show(policy, config.donkey, track, seconds=args.seconds)
    info = showing.info
    lap = f", last lap {info['last_lap_time']:.1f} s" if info["lap_count"] else ""
    end = info.get("end_cause", "") if showing.ended else "still driving"
    console.print(f"{track}: {info['laps']:.2f} laps{lap}, {end}")
    console.print(f"Film: {save_film(showing.frames, args.gif, fps=10.0)}")
    return 0
