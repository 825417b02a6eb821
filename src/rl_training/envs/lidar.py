"""A lidar scan as the wire tells it: a list of points, with `conf`'s words for the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl_training.simulator.lidar import LidarConfig, scan
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
    return [
        {
            "d": round(float(out[level, k]), 2),
            "rx": k * lidar.deg_per_sweep_inc,
            "ry": level * lidar.deg_ang_delta + 0.0,
        }
        for level, k in np.argwhere(out >= 0.0)
    ]
