"""Hand-made worlds for tests: a plane, flat or tilted or given as heights, with a few walls, solids and zones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import state as st
from rl_training.simulator.bank import Bank
from rl_training.simulator.collision import build_grid
from rl_training.simulator.ground import height_at, slope_at
from rl_training.simulator.jit import kernel
from rl_training.simulator.sight import solid_balls, wall_balls
from rl_training.simulator.track import LINE_COLUMNS, SOLID_COLUMNS, WALL_COLUMNS, ZONE_COLUMNS, HeightField, Shape
from rl_training.simulator.vehicle import substep

Rows = Sequence[Sequence[float]]


def wall(
    x0: float,
    z0: float,
    x1: float,
    z1: float,
    *,
    base: float = 0.0,
    height: float = 2.0,
    friction: float = 0.1,
    name: int = 0,
) -> list[float]:
    """A row of `Track.walls`."""
    return [x0, z0, x1, z1, base, base, height, 9, friction, name]


def solid(
    shape: Shape,
    x: float,
    z: float,
    *,
    yaw: float = 0.0,
    half_x: float = 0.5,
    half_z: float = 0.5,
    base: float = 0.0,
    height: float = 2.0,
    friction: float = 0.1,
    name: int = 0,
    blocks: bool = True,
) -> list[float]:
    """A row of `Track.solids`."""
    return [shape, x, z, yaw, half_x, half_z, base, height, 12, friction, name, float(blocks)]


def plane(slope_x: float, slope_z: float, *, half: float = 200.0) -> HeightField:
    """Heights of a tilted plane through the origin."""
    along = np.array([-half, half])
    grid = slope_x * along[None, :] + slope_z * along[:, None]
    return HeightField(-half, -half, 2.0 * half, grid.astype(np.float32))


def flat_bank(
    walls: Rows = (),
    solids: Rows = (),
    zones: Rows = (),
    *,
    slope: tuple[float, float] = (0.0, 0.0),
    heights: HeightField | None = None,
) -> Bank:
    """One slot: a plane at height 0 (or with `slope` dy/dx, dy/dz, or `heights`) and a path of two nodes along +z."""
    if heights is None and slope != (0.0, 0.0):
        heights = plane(*slope)
    wall_rows = np.array(walls, float).reshape(-1, WALL_COLUMNS)
    solid_rows = np.array(solids, float).reshape(-1, SOLID_COLUMNS)
    zone_rows = np.array(zones, float).reshape(-1, ZONE_COLUMNS)
    shape, origin, start, items = build_grid(wall_rows, solid_rows)
    line = np.array([[0.0, 0.0, 0.0], [0.0, 1000.0, 1000.0]])
    fields: dict[str, Any] = {
        "closed": np.zeros(1, np.uint8),
        "length": np.array([1000.0]),
        "node_count": _count(line),
        "nodes": line[None, :, [0, 0, 1]].copy(),
        "line_count": _count(line),
        "line": line[None],
        "reach": np.array([12.0]),
        "ground_y": np.zeros(1),
        "height_shape": np.array([heights.grid.shape if heights else (0, 0)], np.int32),
        "height_origin": np.array([[heights.x0, heights.z0, heights.cell] if heights else [0.0, 0.0, 1.0]]),
        "heights": heights.grid[None] if heights else np.zeros((1, 1, 1), np.float32),
        "height_top": np.array([float(heights.grid.max()) if heights else 0.0]),
        "zone_count": _count(zone_rows),
        "zones": zone_rows[None],
        "tile_shape": np.zeros((1, 2), np.int32),
        "tile_origin": np.array([[0.0, 0.0, 8.0]]),
        "tile_map": np.zeros((1, 1, 1), np.int32),
        "tile_base": np.zeros(1, np.int32),
        "tiles": np.zeros((1, 1), np.uint16),
        "wall_count": _count(wall_rows),
        "walls": wall_rows[None],
        "wall_balls": wall_balls(wall_rows)[None],
        "solid_count": _count(solid_rows),
        "solids": solid_rows[None],
        "solid_balls": solid_balls(solid_rows)[None],
        "grid_shape": np.array([shape], np.int32),
        "grid_origin": np.array([origin]),
        "grid_start": start[None],
        "grid_items": items[None],
        "start_line_count": np.zeros(1, np.int32),
        "start_lines": np.zeros((1, 1, LINE_COLUMNS)),
    }
    return Bank(**fields)


def _count(rows: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.array([len(rows)], np.int32)


def make_car(
    x: float = 0.0, z: float = 0.0, yaw: float = 0.0, *, forward: float = 0.0, bank: Bank | None = None
) -> NDArray[np.float64]:
    """A row of the state array: a car on the ground of `bank` (height 0 without one), rolling straight ahead."""
    car = np.zeros(st.STATE_COLUMNS)
    car[[st.X, st.Y, st.Z, st.YAW, st.FORWARD]] = x, st.RIDE_HEIGHT, z, yaw, forward
    car[[st.HIT, st.TOUCHING, st.TOUCHING_TOO]] = -1.0
    if bank is not None and bank.height_shape[0, 0]:
        slope_x, slope_z = slope_at(bank, 0, x, z)
        car[st.Y] += height_at(bank, 0, x, z)
        car[st.PITCH] = -math.atan(slope_x * math.sin(yaw) + slope_z * math.cos(yaw))
        car[st.ROLL] = math.atan(slope_x * math.cos(yaw) - slope_z * math.sin(yaw))
    return car


def world_velocity(car: NDArray[np.float64]) -> tuple[float, float]:
    """(x, z) velocity of the centre of mass on level ground."""
    sine, cosine = math.sin(car[st.YAW]), math.cos(car[st.YAW])
    return car[st.FORWARD] * sine + car[st.LATERAL] * cosine, car[st.FORWARD] * cosine - car[st.LATERAL] * sine


def energy(car: NDArray[np.float64], params: st.CarParams | None = None) -> float:
    """Kinetic energy of the body, without its wheels' spin."""
    p = params or st.CarParams()
    return float(p.mass * (car[st.FORWARD] ** 2 + car[st.LATERAL] ** 2) + p.yaw_inertia * car[st.YAW_RATE] ** 2) / 2.0


@kernel
def _drive(bank: Bank, car: Any, params: st.CarParams, substeps: int) -> None:
    for _ in range(substeps):
        substep(bank, 0, car, params)


def drive(
    bank: Bank,
    car: NDArray[np.float64],
    substeps: int,
    *,
    steer: float = 0.0,
    throttle: float = 0.0,
    brake: float = 0.0,
    params: st.CarParams | None = None,
) -> None:
    """Hold the controls for a number of substeps of 0.01 s."""
    car[[st.STEER, st.THROTTLE, st.BRAKE]] = steer, throttle, brake
    _drive(bank, car, params or st.CarParams(), substeps)
