"""A lidar scan as the wire tells it, a list of points, and as gym-donkeycar's `info` does, an array of distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.lidar import NO_HIT, LidarConfig, scan
from rl_training.simulator.world import World

# conf's key -> field; a key that conf leaves out keeps the simulator's default.
_FIELDS = {
    "degPerSweepInc": "deg_per_sweep_inc",
    "degAngDown": "deg_ang_down",
    "degAngDelta": "deg_ang_delta",
    "maxRange": "max_range",
    "numSweepsLevels": "num_sweeps_levels",
    "offset_x": "offset_x",
    "offset_y": "offset_y",
    "offset_z": "offset_z",
    "rot_x": "rot_x",
}


def lidar_of(conf: Mapping[str, Any]) -> LidarConfig:
    """`lidar_config` as gym-donkeycar has it."""
    given = {_FIELDS[key]: float(value) for key, value in conf.items() if key in _FIELDS}
    levels = int(given.pop("num_sweeps_levels", LidarConfig().num_sweeps_levels))
    return LidarConfig(num_sweeps_levels=levels, **given)


def scan_points(world: World, car: int, lidar: LidarConfig) -> list[Mapping[str, float]]:
    """Points of one scan; rays that meet nothing are left out. Heights count from the first level, as Unity has it.

    The 0.0 that is added makes the first level's angle 0.0 where the step is negative, and not -0.0.
    """
    arena = car // world.cars
    out = np.empty(lidar.shape)
    scan(
        world.bank, int(world.slots[arena]), world.state[car], world.state[world.rows(arena)], world.params, lidar, out
    )
    levels, rays = np.nonzero(out >= 0.0)
    around = (rays * lidar.deg_per_sweep_inc).tolist()
    up = (levels * lidar.deg_ang_delta + 0.0).tolist()
    return [
        {"d": round(distance, 2), "rx": rx, "ry": ry}
        for distance, rx, ry in zip(out[levels, rays].tolist(), around, up, strict=True)
    ]


def distances(points: Sequence[Mapping[str, float]] | None, lidar: LidarConfig) -> NDArray[np.float64]:
    """A scan's distances [u], turn by turn from the first level on, clockwise from the nose; -1 where nothing was met.

    Points that the settings leave no room for are passed over: a simulator elsewhere may count its rays otherwise.
    """
    levels, rays = lidar.shape
    found = np.full((levels, rays), NO_HIT)
    for point in points or ():
        level = round(abs(point["ry"] / lidar.deg_ang_delta)) if lidar.deg_ang_delta else 0
        ray = round(abs(point["rx"] / lidar.deg_per_sweep_inc))
        if level < levels and ray < rays:
            found[level, ray] = point["d"]
    return found.ravel()
