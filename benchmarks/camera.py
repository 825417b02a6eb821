"""Microseconds per frame by view and kind of track, of baking and palettes.

    donkey-rl bench camera [--json]

Process time of one thread, the best of many short runs. Next to each frame stands the share of it that writing and
reading its pixels once would take at the speed this machine copies memory: how far drawing is from that limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.cli.console import console, table
from rl_training.simulator.bank import Bank
from rl_training.simulator.camera import OTHER_COLUMNS, Scratch, draw
from rl_training.simulator.ground import height_at
from rl_training.simulator.jit import kernel
from rl_training.simulator.packing import TrackBank, prepare
from rl_training.simulator.palette import light_row, palette
from rl_training.simulator.random_road import random_road
from rl_training.simulator.state import RIDE_HEIGHT
from rl_training.simulator.texture import bake
from rl_training.simulator.track import Track
from rl_training.simulator.track_file import load_track, track_names
from rl_training.simulator.view import View, mount_row

VIEWS = {
    "160x120 RGB": View.full(),
    "160x120 planes": View.full().planes(),
    "84x84 grey": View.full(84, 84).grey(),
    "80x40 grey": View.full().cropped(40, 120).resized(80, 40).grey(),
}
FRAMES, RUNS, POSES = 64, 12, 16


@kernel
def _draw_many(
    count: int,
    bank: Bank,
    poses: NDArray[np.float64],
    mount: NDArray[np.float64],
    view: View,
    colors: NDArray[np.uint32],
    light: NDArray[np.float64],
    others: NDArray[np.float64],
    scratch: Scratch,
    out: NDArray[np.uint8],
) -> None:
    for k in range(count):
        draw(bank, 0, poses[k % len(poses)], mount, view, colors, light, others, scratch, out[k % len(out)])


def best(work: Callable[[], Any], runs: int = RUNS) -> float:
    """Least process time of one call [s]; the first, which compiles, does not count."""
    work()
    times = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def poses_along(track: Track, bank: Bank) -> NDArray[np.float64]:
    """Places all along the path."""
    poses = np.zeros((POSES, 6))
    for pose, at in zip(poses, np.linspace(0, len(track.line) - 3, POSES).astype(int)):
        step = track.line[at + 2] - track.line[at]
        x, _, z = track.line[at]
        pose[:4] = x, height_at(bank, 0, x, z) + RIDE_HEIGHT, z, np.arctan2(step[0], step[2])
    return poses


def frame_time(track: Track, view: View, bank: Bank) -> float:
    """Seconds per frame in a batch of 16."""
    size = int(np.prod(view.shape))
    arguments = (
        bank, poses_along(track, bank), mount_row(), view, palette(track.colors, track.light), light_row(track.light),
        np.zeros((0, OTHER_COLUMNS)), Scratch.of(view), np.zeros((16, size), np.uint8),
    )  # fmt: skip
    return best(lambda: _draw_many(FRAMES, *arguments)) / FRAMES


def copy_rate() -> float:
    """Bytes per second of a copy that fits the second-level cache, read and written."""
    source, target = np.ones(1 << 17, np.uint8), np.zeros(1 << 17, np.uint8)
    return 2.0 * source.nbytes * 100 / best(lambda: [np.copyto(target, source) for _ in range(100)])


def measure() -> dict[str, Any]:
    """Copy rate [bytes/s], by track and view (seconds per frame, share of the limit), baking and palette [s], bytes."""
    rate = copy_rate()
    frames: dict[str, dict[str, tuple[float, float]]] = {}
    for name in ("random", *track_names()):
        track = random_road(0) if name == "random" else load_track(name)
        slots = TrackBank(1)
        slots.put(0, prepare(track))
        frames[name] = {}
        for label, view in VIEWS.items():
            seconds = frame_time(track, view, slots.bank)
            touched = 4 * view.width * view.height * 2 + int(np.prod(view.shape))
            frames[name][label] = seconds, touched / rate / seconds
    roads = [random_road(seed) for seed in range(8)]
    slots = TrackBank(8)
    for k, road in enumerate(roads):
        slots.put(k, prepare(road))
    return {
        "copy_rate": rate,
        "frames": frames,
        "bake": {f"{road.length:.0f} u": best(lambda road=road: bake(road)) for road in roads[:3]},
        "palette": best(lambda: palette(roads[0].colors, roads[0].light)),
        "road_bytes": slots.nbytes / 8,
        "palette_bytes": palette(roads[0].colors, roads[0].light).nbytes,
    }


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench camera", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    found = measure()
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    grid = table("µs per frame (share of the limit)", "track", *VIEWS)
    for name, cells in found["frames"].items():
        grid.add_row(name, *(f"{1e6 * seconds:.1f} ({share:4.0%})" for seconds, share in cells.values()))
    console.print(grid)
    console.print(f"The limit: this machine copies {found['copy_rate'] / 1e9:.1f} GB/s.")
    for length, seconds in found["bake"].items():
        console.print(f"Bake a random road of {length}: {1e3 * seconds:.2f} ms.")
    console.print(f"Palette: {1e6 * found['palette']:.0f} µs.")
    console.print(
        f"Memory: {found['road_bytes'] / 1e6:.2f} MB a road, {found['palette_bytes'] / 1e6:.2f} MB a palette."
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
