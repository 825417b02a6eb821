"""Let a scripted driver lap a track: lap times, and a film if wanted."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from rl_training.cli.console import console, table
from rl_training.cli.values import seed
from rl_training.errors import UsageError

EXAMPLES = """examples:
  donkey-rl drive --track mini_monaco --driver pursuit --laps 3
  donkey-rl drive --track mountain_track --laps 1 --film lap.gif
  donkey-rl drive --track random:validation:3@0.9 --json"""

MAX_SECONDS_A_LAP = 400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl drive`."""
    parser.add_argument("--track", default="generated_track", help="scene, random road or track file (generated_track)")
    parser.add_argument("--driver", default="pursuit", help="which scripted driver (pursuit)")
    parser.add_argument("--laps", type=int, default=3, help="how many laps (3)")
    parser.add_argument("--seed", type=seed, default=0, help="seed of the scene (0)")
    parser.add_argument("--randomization", default="none", choices=("none", "light", "strong"), help="of looks and car")
    parser.add_argument("--film", "--gif", "--video", dest="film", help="save what the camera saw: a .gif or .mp4 file")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Drive; exit code 1 when the laps were not completed."""
    if args.laps < 1:
        raise UsageError(f"--laps is {args.laps}; expected 1 or more.")
    if args.film:
        from rl_training.report.film import film_path, save_film

        film_path(args.film)  # a wrong name is said before the drive and not after it
    result, frames = drive(args.track, args.driver, args.laps, args.seed, args.randomization, bool(args.film))
    if args.film:
        result["film"] = str(save_film(frames, args.film))
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)
    return 0 if result["completed"] else 1


def drive(
    track_name: str, driver_name: str, laps: int, seed: int, randomization: str, filming: bool
) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Drive until the laps are done or the episode ends; an open road counts as one lap."""
    from rl_training.envs.donkey_env import DonkeyEnv
    from rl_training.evaluation.drivers import make_driver
    from rl_training.report.film import captioned, enlarged

    env = DonkeyEnv(track_name, randomization=randomization, max_steps=int(MAX_SECONDS_A_LAP * 20 * laps))
    frame, info = env.reset(seed=seed)
    track = env.simulator.track  # type: ignore[attr-defined]
    driver = make_driver(driver_name, track)
    times: list[float] = []
    frames: list[np.ndarray[Any, Any]] = []
    speeds: list[float] = []
    ended = False
    while not ended and len(times) < laps:
        frame, _, terminated, truncated, info = env.step(driver(info))
        ended = terminated or truncated
        speeds.append(info["speed"])
        if info["lap_count"] > len(times):
            times.append(info["last_lap_time"])
        if filming and len(speeds) % 2 == 0:  # ten frames a second are enough to watch
            caption = f"{track.name}  lap {len(times) + 1}  {info['speed']:.1f} m/s  cte {info['cte']:+.1f}"
            frames.append(captioned(enlarged(frame, 2), caption))
    env.close()
    cause = info.get("end_cause", "")
    completed = len(times) >= laps or (not track.closed and cause == "end_of_road")
    result = {
        "track": track.name,
        "driver": driver_name,
        "completed": completed,
        "lap_times": [round(time, 3) for time in times],
        "best_lap": round(min(times), 3) if times else None,
        "laps": round(info["laps"], 3),
        "distance_m": round(info["progress"], 2),
        "mean_speed": round(float(np.mean(speeds)), 3),
        "steps": len(speeds),
        "end": cause if not completed or cause == "end_of_road" else "laps done",
    }
    return result, frames


def _print(result: dict[str, Any]) -> None:
    grid = table(f"{result['driver']} on {result['track']}", "lap", "time s")
    for k, time in enumerate(result["lap_times"], 1):
        grid.add_row(str(k), f"{time:.2f}{'  best' if time == result['best_lap'] else ''}")
    console.print(grid)
    verdict = "completed" if result["completed"] else "NOT completed"
    console.print(
        f"{verdict}: {result['laps']:.2f} laps, {result['distance_m']:.1f} m in {result['steps'] / 20:.1f} s, "
        f"mean speed {result['mean_speed']:.2f} m/s, end: {result['end']}"
    )
    if "film" in result:
        console.print(f"Film: {result['film']}")
