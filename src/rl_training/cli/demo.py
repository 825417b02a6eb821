"""The main job in minutes: train a car from its camera, try it on tracks it never saw, film it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from rl_training.cli.console import console, table

EXAMPLES = """examples:
  donkey-rl demo
  donkey-rl demo --steps 120000 --seed 3 --out my-demo"""

TRAINED_ON = "generated_track"
UNSEEN = ("warehouse", "random:validation:1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl demo`."""
    parser.add_argument("--out", default="demo-out", help="folder for the run, films and pictures (demo-out)")
    parser.add_argument("--steps", type=int, default=60_000, help="env steps of training (60000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything (0)")


def run(args: argparse.Namespace) -> int:
    """Train, evaluate, film; exit code 1 when the car did not lap its own track."""
    from rl_training import api
    from rl_training.experiment.presets import resolve
    from rl_training.experiment.run_folder import new_run_path

    out = Path(args.out)
    console.print(f"1/3  PPO learns {TRAINED_ON} from an 80x40 grey camera, {args.steps:,} steps")
    started = time.perf_counter()
    config = resolve(config="ppo/donkey", over={"seed": args.seed, "total_timesteps": args.steps})
    folder = new_run_path(config, out)
    api.train(config, folder, quiet=False)
    console.print(f"     trained in {time.perf_counter() - started:.0f} s; the run is in {folder}")
    console.print("2/3  It drives its own track, and two that it never saw")
    lapped = _films(folder, config, out)
    console.print("3/3  The tracks there are")
    from rl_training.report.track_sheet import save_contact_sheet
    from rl_training.simulator.track_file import load_track, track_names

    sheet = save_contact_sheet([load_track(name) for name in track_names()], out / "tracks.png")
    console.print(f"     picture: {sheet}")
    console.print("Next: donkey-rl tracks list | donkey-rl train --help | donkey-rl sim --help")
    return 0 if lapped else 1


def _films(folder: Path, config: Any, out: Path) -> bool:
    """Film an episode on each track; whether the car lapped the track it was trained on."""
    from rl_training.experiment.checkpoint import find_checkpoint
    from rl_training.experiment.registry import algorithm_spec
    from rl_training.report.film import save_film
    from rl_training.runtime.showing import show

    grid = table("Greedy policy, one episode of 25 s from the start", "track", "laps", "best lap s", "end", "film")
    lapped = False
    algorithm = algorithm_spec(config.algo)
    policy = algorithm.load(algorithm.algorithm(), find_checkpoint(folder).model, None, config.device)
    for name in (TRAINED_ON, *UNSEEN):
        showing = show(policy, config.donkey, name, seconds=25.0)
        film = save_film(showing.frames, out / f"{name.replace(':', '-')}.gif", fps=10.0)
        info = showing.info
        lap = f"{info['last_lap_time']:.1f}" if info["lap_count"] else "-"
        end = info.get("end_cause", "") if showing.ended else "still driving"
        grid.add_row(name, f"{info['laps']:.2f}", lap, end, str(film))
        lapped = lapped or (name == TRAINED_ON and info["lap_count"] >= 1)
    console.print(grid)
    return lapped
