"""Control steps per second of the car physics alone, in four places, and the lidar.

    donkey-rl bench physics [--json]

Process time, the best of many short runs: other work on the machine disturbs it little.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rl_training.cli.console import console, table
from rl_training.simulator.collision import build_grid
from rl_training.simulator.lidar import LidarConfig, scan
from rl_training.simulator.state import SUBSTEPS, CarParams
from tests.simulator.worlds import drive, flat_bank, make_car, wall

RUNS, SUBSTEPS_A_RUN = 40, 10_000


def best(work: Callable[[], Any]) -> float:
    """Least process time of one call [s]; the first, which compiles, does not count."""
    work()
    times = []
    for _ in range(RUNS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def measure() -> dict[str, Any]:
    """By place the seconds of a substep; a collision grid's and a lidar scan's [s]."""
    beside = [wall(0.6, 200.0 * k, 0.6, 200.0 * k + 200.0) for k in range(200)]
    places = {
        "flat, nothing near": (flat_bank(), 0.3),
        "hill": (flat_bank(slope=(0.1, 0.1)), 0.3),
        "sliding along a wall": (flat_bank(beside), 0.01),
        "pressed against a wall": (flat_bank([wall(-300.0, 5.0, 300.0, 5.0)]), 0.0),
    }
    substeps = {}
    for name, (bank, steer) in places.items():
        cars = make_car()

        def work(bank: Any = bank, steer: float = steer, start: Any = cars) -> None:
            drive(bank, start.copy(), SUBSTEPS_A_RUN, steer=steer, throttle=0.3)

        substeps[name] = best(work) / SUBSTEPS_A_RUN
    walls = np.array([wall(x, z, x + 2.0, z + 2.0) for x, z in np.random.default_rng(0).uniform(0, 200, (500, 2))])
    solids = np.zeros((0, 12))
    bank, car, config = flat_bank(walls.tolist()), make_car(100.0, 100.0), LidarConfig()
    out, nobody = np.zeros(config.shape), np.zeros((0, len(car)))
    return {
        "substeps": substeps,
        "grid": best(lambda: build_grid(walls, solids)),
        "lidar": best(lambda: scan(bank, 0, car, nobody, CarParams(), config, out)),
        "lidar_rays": out.size,
    }


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench physics", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    found = measure()
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    grid = table("Car physics alone, one thread", "place", "ns/substep", "control steps/s")
    for name, seconds in found["substeps"].items():
        grid.add_row(name, f"{1e9 * seconds:.0f}", f"{1.0 / (seconds * SUBSTEPS):,.0f}")
    console.print(grid)
    console.print(f"Collision grid of 500 walls: {1e3 * found['grid']:.2f} ms.")
    rays = found["lidar_rays"]
    console.print(f"Lidar of {rays} rays: {1e3 * found['lidar']:.2f} ms, {1e9 * found['lidar'] / rays:.0f} ns a ray.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
