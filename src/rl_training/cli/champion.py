"""The champion of a study: what it is, and how it drives."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_training.cli.autoresearch import add_study_argument
from rl_training.cli.console import console, table
from rl_training.cli.options import require_at_least, use_threads_of
from rl_training.errors import ModelError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from rl_training.runtime.showing import Showing

EXAMPLES = """examples:
  donkey-rl champion
  donkey-rl champion show --track mini_monaco --film champion.gif
  donkey-rl champion show --seconds 60 --film champion.mp4"""
REDRAWN = 10  # times a second, on a terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl champion`."""
    parser.add_argument(
        "action", nargs="?", choices=("info", "show"), default="info", help="say what it is, or drive it"
    )
    add_study_argument(parser)
    parser.add_argument("--track", help="where it drives (the first track of its training)")
    parser.add_argument("--seconds", type=float, default=25.0, help="how long it drives (25)")
    parser.add_argument("--film", "--gif", default="champion.gif", help="where to save it, .gif or .mp4 (champion.gif)")
    parser.add_argument("--json", action="store_true", help="print the manifest for programs")


def run(args: argparse.Namespace) -> int:
    """Check the model against its manifest, then print or drive it."""
    from rl_training.autoresearch.champion import ChampionTracker
    from rl_training.autoresearch.study import Study

    require_at_least(args, {"seconds": 1})
    if args.action == "show" and Path(args.film).suffix not in (".gif", ".mp4"):
        raise UsageError(f"A film cannot be saved as '{args.film}'; use a name that ends in .gif or .mp4.")
    study = Study(Path(args.study))
    model, manifest = ChampionTracker(study.champion).load()
    if args.action == "show":
        return _show(args, model)
    if args.json:
        print(json.dumps(manifest, indent=2))
        return 0
    grid = table(f"Champion of {study.name}", "what", "figure")
    for key, value in manifest.items():
        if isinstance(value, dict):
            if key != "env_spec":  # long; --json has it
                grid.add_row(key, "")
                for name, setting in value.items():
                    grid.add_row(f"  {name}", str(setting))
        else:
            grid.add_row(key, str(value))
    console.print(grid)
    console.print(f"Model: {study.champion / 'model.zip'}")
    return 0


def _show(args: argparse.Namespace, model: Path) -> int:
    """A table that is alive while it drives, on a terminal; then the same for a log, and the film."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=True) as live:
        redrawn = 0.0

        def watch(seconds: float, info: dict[str, Any]) -> None:
            nonlocal redrawn
            if console.is_terminal and seconds >= redrawn:
                redrawn = seconds + 1.0 / REDRAWN
                live.update(instruments(seconds, info), refresh=True)

        showing, film = drive(model, args.track, args.seconds, args.film, watch)
    grid = table(f"One episode of at most {args.seconds:g} s from the start", "track", *TOLD)
    grid.add_row(showing.info["track"], *told(showing))
    console.print(grid)
    console.print(f"Film: {film}")
    return 0


def instruments(seconds: float, info: dict[str, Any]) -> Table:
    """How the car drives at this moment."""
    columns = ("time s", "laps", "last lap s", "speed m/s", "cte", "steering", "throttle")
    grid = table(f"The champion on {info['track']}", *columns)
    lap = f"{info['last_lap_time']:.2f}" if info["lap_count"] else "-"
    grid.add_row(
        f"{seconds:.1f}", f"{info['laps']:.2f}", lap, f"{info['speed']:.1f}", f"{info['cte']:+.2f}",
        f"{info['steering']:+.2f}", f"{info['throttle']:+.2f}",
    )  # fmt: skip
    return grid


TOLD = ("laps", "best lap s", "mean lap s", "end")


def told(showing: Showing) -> tuple[str, str, str, str]:
    """Laps, lap times and end of an episode."""
    times = showing.lap_times
    best, mean = (f"{min(times):.2f}", f"{sum(times) / len(times):.2f}") if times else ("-", "-")
    end = str(showing.info.get("end_cause", "ended")) if showing.ended else "still driving"
    return f"{showing.info['laps']:.2f}", best, mean, end


def drive(model: Path, track: str | None, seconds: float, film: str | Path, watch: Any = None) -> tuple[Showing, Path]:
    """Drive a model one episode, on the first track of its training unless told, and film it."""
    from rl_training.experiment.checkpoint import find_checkpoint
    from rl_training.experiment.registry import algorithm_spec
    from rl_training.report.film import save_film
    from rl_training.runtime.showing import show

    config = find_checkpoint(model).config
    if config is None or not config.is_donkey:
        raise ModelError("The champion's config.yaml says nothing of a car, so there is nothing to show.")
    use_threads_of(config)
    spec = algorithm_spec(config.algo)
    policy = spec.load(spec.algorithm(), model, None, config.device)
    showing = show(policy, config.donkey, track or config.donkey.tracks[0], seconds=seconds, watch=watch)
    return showing, save_film(showing.frames, film, fps=10.0)
