"""Minutes of training on random roads, and how many roads and scenes never seen the policy then comes round.

    donkey-rl bench generalisation [--seeds 3] [--config ppo/donkey_anywhere] [--json]
    donkey-rl bench generalisation --set 'donkey.tracks=[generated_track]' --out runs/one

Each seed trains the config once; the run is kept below --out, so that a benchmark that was ended goes on. The policy
kept is the best on episodes of the training's own roads. It then drives one episode on each of 100 validation roads and
five on each named scene, from the scene's start, within the simulator's own bounds (8 u from the line, no hit) and
`MOST_STEPS` of time. A road or scene counts as completed when the car came round, or to the end of an open road.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rl_training import api
from rl_training.cli.console import console, table
from rl_training.envs.spec import EnvSpec, StartSpec
from rl_training.evaluation.evaluation import Evaluation
from rl_training.experiment.checkpoint import find_checkpoint
from rl_training.experiment.config import assignment, merged
from rl_training.experiment.presets import resolve
from rl_training.experiment.registry import algorithm_spec
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.evaluation import evaluate
from rl_training.simulator.track_file import track_names

ROADS = 100
EPISODES = 5  # on each named scene
MAX_CTE = 8.0
MOST_STEPS = 6000  # five minutes of driving: thunderhill is 2,825 u long
UNSEEN_ROADS = tuple(f"random:validation:{index}" for index in range(ROADS))
SCENES = tuple(name for name in track_names() if not name.startswith("random"))


def trained(folder: Path, config: str, over: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """The run's result; trained unless it is there already."""
    run = RunFolder(folder)
    if run.result_file.exists():
        return dict(json.loads(run.result_file.read_text(encoding="utf-8")))
    if folder.exists():
        return api.resume(folder, quiet=quiet)
    return api.train(resolve(config=config, over=over), folder, quiet=quiet)


def driven(folder: Path, tracks: Sequence[str], episodes: int) -> Evaluation:
    """Deterministic episodes of the run's best policy."""
    found = find_checkpoint(folder)
    assert found.config is not None
    algorithm = algorithm_spec(found.config.algo)
    model = algorithm.load(algorithm.algorithm(), found.model, None, found.config.device)
    spec: EnvSpec = found.config.donkey
    limits = replace(spec.limits, max_cte=MAX_CTE, max_steps=MOST_STEPS)
    plain = resolve(config="ppo/donkey").donkey.randomization
    spec = replace(spec, start=StartSpec(), limits=limits, randomization=plain)
    return evaluate(model, spec, episodes=episodes, tracks=tracks)


def measure(folder: Path, config: str, over: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """One seed: what it took, and what it comes round."""
    result = trained(folder, config, over, quiet)
    roads, scenes = driven(folder, UNSEEN_ROADS, 1), driven(folder, SCENES, EPISODES)
    laps = [episode.lap_times[0] for episode in roads.episodes if episode.lap_times]
    return {
        "steps": result["timesteps"],
        "minutes": result["train_sec"] / 60.0,
        "cpu_minutes": result["train_cpu_sec"] / 60.0,
        "roads": sum(episode.completed for episode in roads.episodes),
        "roads_mean_laps": sum(min(episode.laps, 1.0) for episode in roads.episodes) / ROADS,
        "road_lap_seconds": median(laps) if laps else None,
        "scenes": {name: summary.completed for name, summary in scenes.by_track().items()},
        "scene_laps": {name: summary.mean_laps for name, summary in scenes.by_track().items()},
        "ends": {name: summary.ends for name, summary in scenes.by_track().items()},
    }


def show(found: Sequence[dict[str, Any]]) -> None:
    """Two tables: the roads by seed, the scenes by name."""
    grid = table(
        f"{ROADS} validation roads", "seed", "steps", "min", "CPU min", "came round", "share driven", "median lap s"
    )
    for seed, row in enumerate(found):
        lap = "-" if row["road_lap_seconds"] is None else f"{row['road_lap_seconds']:.1f}"
        figures = [
            f"{row['steps']:,}",
            f"{row['minutes']:.1f}",
            f"{row['cpu_minutes']:.1f}",
            f"{row['roads']} of {ROADS}",
        ]
        grid.add_row(str(seed), *figures, f"{row['roads_mean_laps']:.2f}", lap)
    console.print(grid)
    grid = table(
        f"Scenes: share of {EPISODES} episodes that came round (laps driven)", "scene", *map(str, range(len(found)))
    )
    for name in SCENES:
        grid.add_row(name, *(f"{100 * row['scenes'][name]:.0f} % ({row['scene_laps'][name]:.2f})" for row in found))
    console.print(grid)
    console.print(f"Load average at the end: {os.getloadavg()[0]:.1f}.")


def main(arguments: Sequence[str]) -> int:
    """Train, drive and print."""
    parser = argparse.ArgumentParser(
        prog="donkey-rl bench generalisation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many trainings (3)")
    parser.add_argument("--config", default="ppo/donkey_anywhere", help="preset or file (ppo/donkey_anywhere)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change the config")
    parser.add_argument("--out", default="runs/bench-generalisation", help="folder of the runs")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(arguments)
    over: dict[str, Any] = {}
    for text in args.set:
        over = merged(over, assignment(text))
    found = []
    for seed in range(args.seeds):
        found.append(measure(Path(args.out) / f"seed-{seed}", args.config, {**over, "seed": seed}, args.json))
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return 0
