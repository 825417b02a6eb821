"""Worlds of one arena on a track by name, for tests, and the places of its cars."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import path
from rl_training.simulator import state as s
from rl_training.simulator.world import World, named_track


def world_on(name: str, cars: int = 1) -> World:
    world = World(1, cars)
    world.load(0, named_track(name))
    world.dress(0)
    world.place_at_start(0)
    return world


def drive(world: World, steps: int, steer: float, throttle: float) -> None:
    controls = np.tile([steer, throttle, 0.0], (world.size, 1))
    for _ in range(steps):
        world.step(controls)


def along(world: World, arc: float, offset: float = 0.0, reverse: bool = False) -> tuple[float, float, float]:
    """(x, z, yaw) at an arc length of the track's line, `offset` to its right."""
    track = world.track(0)
    i = int(arc / track.length * len(track.line)) % len(track.line)
    ahead = track.line[(i + 1) % len(track.line)] - track.line[i]
    yaw = math.atan2(ahead[0], ahead[2])
    x = track.line[i, 0] + offset * math.cos(yaw)
    z = track.line[i, 2] - offset * math.sin(yaw)
    return float(x), float(z), yaw + (math.pi if reverse else 0.0)


def carry(world: World, places: NDArray[np.float64], seconds: float) -> list[float]:
    """Carry the car to `places` (K, 2), each `seconds` after the last; the times of the laps that were counted."""
    car = world.state[0]
    laps: list[float] = []
    for x, z in places:
        car[s.FORWARD] = np.hypot(x - car[s.X], z - car[s.Z]) / seconds
        car[[s.X, s.Z]] = x, z
        car[s.TIME] += seconds
        path.follow_line(world.bank, int(world.slots[0]), car)
        if car[s.LAPS] > len(laps):
            laps.append(float(car[s.LAST_LAP]))
    return laps
