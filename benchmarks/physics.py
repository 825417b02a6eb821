"""Control steps per second of the car physics alone, in four places, and the lidar. Run: python -m benchmarks.physics

Process time, the best of many short runs: other work on the machine disturbs it little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

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


def main() -> None:
    """Print the figures."""
    beside = [wall(0.6, 200.0 * k, 0.6, 200.0 * k + 200.0) for k in range(200)]
    places = {
        "flat, nothing near": (flat_bank(), 0.3),
        "hill": (flat_bank(slope=(0.1, 0.1)), 0.3),
        "sliding along a wall": (flat_bank(beside), 0.01),
        "pressed against a wall": (flat_bank([wall(-300.0, 5.0, 300.0, 5.0)]), 0.0),
    }
    for name, (bank, steer) in places.items():
        cars = make_car()

        def work(bank: Any = bank, steer: float = steer, start: Any = cars) -> None:
            drive(bank, start.copy(), SUBSTEPS_A_RUN, steer=steer, throttle=0.3)

        seconds = best(work) / SUBSTEPS_A_RUN
        print(f"{name:24s} {seconds * 1e9:7.0f} ns/substep {1.0 / (seconds * SUBSTEPS):12,.0f} control steps/s")
    walls = np.array([wall(x, z, x + 2.0, z + 2.0) for x, z in np.random.default_rng(0).uniform(0, 200, (500, 2))])
    solids = np.zeros((0, 12))
    print(f"{'grid of 500 walls':24s} {best(lambda: build_grid(walls, solids)) * 1e3:7.2f} ms")
    bank, car, config = flat_bank(walls.tolist()), make_car(100.0, 100.0), LidarConfig()
    out, nobody = np.zeros(config.shape), np.zeros((0, len(car)))
    seconds = best(lambda: scan(bank, 0, car, nobody, CarParams(), config, out))
    print(f"{'lidar, 25 x 180 rays':24s} {seconds * 1e3:7.2f} ms {seconds / out.size * 1e9:7.0f} ns/ray")


if __name__ == "__main__":
    main()
