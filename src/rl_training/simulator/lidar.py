"""The lidar: full turns of rays at several levels, against walls, solids, other cars and the ground.

A ray is (x, y, z, dx, dy, dz): origin and unit direction in the world. Distances run along the ray [u]. As Unity's
raycasts do, a ray sees solids that a car passes through, and does not see from inside what it starts in. Solids are
seen as the outlines they collide with. The collision grid is walked cell by cell until the nearest hit is certain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rl_training.simulator.bank import Bank
from rl_training.simulator.contact import ARCH, FAR, SQUARE
from rl_training.simulator.ground import height_at
from rl_training.simulator.jit import kernel
from rl_training.simulator.state import BOX_HALF_HEIGHT, PITCH, ROLL, YAW, CarParams, X, Y, Z
from rl_training.simulator.track import (
    SOLID_BASE,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_HEIGHT,
    SOLID_SHAPE,
    SOLID_X,
    SOLID_YAW,
    SOLID_Z,
    WALL_BASE0,
    WALL_BASE1,
    WALL_HEIGHT,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
    Floats,
)

Ray = tuple[float, float, float, float, float, float]
Vector = tuple[float, float, float]

NO_HIT = -1.0
RESOLUTION = 0.01  # of a reported distance [u]
HALVINGS = 24  # of the interval in which a ray enters a hill


class LidarConfig(NamedTuple):
    """As the message `lidar_config` sets it; angles in degrees. Level k looks `ang_down + k · ang_delta` down."""

    offset_x: float = 0.0  # of the sensor from the car origin: right, up, forward [u]
    offset_y: float = 0.5
    offset_z: float = 0.5
    rot_x: float = 0.0  # tilt of the whole sensor, + = nose down
    deg_per_sweep_inc: float = 2.0  # between two rays of a turn, clockwise from ahead
    deg_ang_down: float = 25.0
    deg_ang_delta: float = -1.0
    max_range: float = 50.0
    num_sweeps_levels: int = 25

    @property
    def shape(self) -> tuple[int, int]:
        """(levels, rays of a turn): the shape of `out` in `scan`."""
        return int(self.num_sweeps_levels), int(360.0 / self.deg_per_sweep_inc)


@kernel
def turn_about_x(vector: Vector, angle: float) -> Vector:
    """Nose down: forward (0, 0, 1) goes to (0, -sin, cos)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    return vector[0], vector[1] * cosine - vector[2] * sine, vector[1] * sine + vector[2] * cosine


@kernel
def turn_about_y(vector: Vector, angle: float) -> Vector:
    """Clockwise from above: forward (0, 0, 1) goes to (sin, 0, cos)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    return vector[0] * cosine + vector[2] * sine, vector[1], vector[2] * cosine - vector[0] * sine


@kernel
def turn_about_z(vector: Vector, angle: float) -> Vector:
    """Left side down: right (1, 0, 0) goes to (cos, sin, 0)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    return vector[0] * cosine - vector[1] * sine, vector[0] * sine + vector[1] * cosine, vector[2]


@kernel
def to_world(car: Floats, vector: Vector) -> Vector:
    """A direction from the car's axes (right, up, forward) into the world's."""
    return turn_about_y(turn_about_x(turn_about_z(vector, car[ROLL]), car[PITCH]), car[YAW])


@kernel
def hit_wall(ray: Ray, wall: Floats) -> float:
    """Distance to a row of `Track.walls`, FAR if it is missed."""
    ex, ez = wall[WALL_X1] - wall[WALL_X0], wall[WALL_Z1] - wall[WALL_Z0]
    px, pz = wall[WALL_X0] - ray[0], wall[WALL_Z0] - ray[2]
    cross = ray[3] * ez - ray[5] * ex
    if abs(cross) < 1e-12:
        return FAR
    distance = (px * ez - pz * ex) / cross
    along = (px * ray[5] - pz * ray[3]) / cross
    if distance <= 0.0 or along < 0.0 or along > 1.0:
        return FAR
    height = ray[1] + distance * ray[4] - wall[WALL_BASE0] - along * (wall[WALL_BASE1] - wall[WALL_BASE0])
    return distance if 0.0 <= height <= wall[WALL_HEIGHT] else FAR


@kernel
def slab(origin: float, direction: float, low: float, high: float) -> tuple[float, float]:
    """Where a ray is between two parallel planes: (enters, leaves), the first above the second if nowhere."""
    if abs(direction) < 1e-12:
        return (-FAR, FAR) if low <= origin <= high else (FAR, -FAR)
    a, b = (low - origin) / direction, (high - origin) / direction
    return min(a, b), max(a, b)


@kernel
def hit_box(ray: Ray, x: float, z: float, yaw: float, half_x: float, half_z: float, base: float, top: float) -> float:
    """Distance to an upright box, FAR if it is missed or the ray starts inside."""
    sine, cosine = math.sin(yaw), math.cos(yaw)
    dx, dz = ray[0] - x, ray[2] - z
    across = slab(dx * cosine - dz * sine, ray[3] * cosine - ray[5] * sine, -half_x, half_x)
    along = slab(dx * sine + dz * cosine, ray[3] * sine + ray[5] * cosine, -half_z, half_z)
    level = slab(ray[1], ray[4], base, top)
    enters = max(across[0], along[0], level[0])
    leaves = min(across[1], along[1], level[1])
    return enters if 0.0 < enters <= leaves else FAR


@kernel
def hit_cylinder(ray: Ray, x: float, z: float, radius: float, base: float, top: float) -> float:
    """Distance to an upright cylinder, FAR if it is missed or the ray starts inside."""
    dx, dz = ray[0] - x, ray[2] - z
    level = slab(ray[1], ray[4], base, top)
    square = ray[3] * ray[3] + ray[5] * ray[5]
    inside = dx * dx + dz * dz - radius * radius
    if square < 1e-12:
        return level[0] if inside < 0.0 and 0.0 < level[0] <= level[1] else FAR
    middle = -(dx * ray[3] + dz * ray[5]) / square
    reach = middle * middle - inside / square
    if reach < 0.0:
        return FAR
    half = math.sqrt(reach)
    enters, leaves = max(middle - half, level[0]), min(middle + half, level[1])
    return enters if 0.0 < enters <= leaves else FAR


@kernel
def hit_solid(ray: Ray, solid: Floats) -> float:
    """Distance to a row of `Track.solids`, FAR if it is missed."""
    shape = int(solid[SOLID_SHAPE])
    if shape == ARCH:
        return FAR
    x, z, half_x, half_z = solid[SOLID_X], solid[SOLID_Z], solid[SOLID_HALF_X], solid[SOLID_HALF_Z]
    base, top = solid[SOLID_BASE], solid[SOLID_BASE] + solid[SOLID_HEIGHT]
    if shape in SQUARE:
        return hit_box(ray, x, z, solid[SOLID_YAW], half_x, half_z, base, top)
    return hit_cylinder(ray, x, z, half_x, base, top)


@kernel
def hit_ground(bank: Bank, slot: int, ray: Ray, limit: float) -> float:
    """Distance to the ground, FAR if it is farther than `limit`."""
    if bank.height_shape[slot, 0] == 0:
        distance: float = (bank.ground_y[slot] - ray[1]) / ray[4] if ray[4] < 0.0 else FAR
        return distance if 0.0 <= distance <= limit else FAR
    level = math.sqrt(ray[3] * ray[3] + ray[5] * ray[5])
    step: float = 0.5 * bank.height_origin[slot, 2] / max(level, 0.05)
    before = 0.0
    while before < limit:
        after = min(before + step, limit)
        if above_ground(bank, slot, ray, after) < 0.0:
            for _ in range(HALVINGS):
                half = 0.5 * (before + after)
                if above_ground(bank, slot, ray, half) < 0.0:
                    after = half
                else:
                    before = half
            return after
        before = after
    return FAR


@kernel
def above_ground(bank: Bank, slot: int, ray: Ray, distance: float) -> float:
    """Height of a point of the ray above the ground under it."""
    ground = height_at(bank, slot, ray[0] + distance * ray[3], ray[2] + distance * ray[5])
    above: float = ray[1] + distance * ray[4] - ground
    return above


@kernel
def hit_things(bank: Bank, slot: int, ray: Ray, limit: float) -> float:
    """Distance to the nearest wall or solid, `limit` if none is nearer."""
    cell = bank.grid_origin[slot, 2]
    x, z = ray[0] - bank.grid_origin[slot, 0], ray[2] - bank.grid_origin[slot, 1]
    columns, rows = bank.grid_shape[slot, 1], bank.grid_shape[slot, 0]
    across = slab(x, ray[3], 0.0, columns * cell)
    along = slab(z, ray[5], 0.0, rows * cell)
    distance, leaves = max(across[0], along[0], 0.0), min(across[1], along[1], limit)
    if distance > leaves or columns == 0:
        return limit
    column = min(max(int((x + distance * ray[3]) / cell), 0), columns - 1)
    row = min(max(int((z + distance * ray[5]) / cell), 0), rows - 1)
    step_column, step_row = (1 if ray[3] > 0.0 else -1), (1 if ray[5] > 0.0 else -1)
    nearest = limit
    while 0 <= column < columns and 0 <= row < rows and distance <= min(nearest, leaves):
        index = row * columns + column
        for k in range(bank.grid_start[slot, index], bank.grid_start[slot, index + 1]):
            item = bank.grid_items[slot, k]
            if item < bank.wall_count[slot]:
                nearest = min(nearest, hit_wall(ray, bank.walls[slot, item]))
            else:
                nearest = min(nearest, hit_solid(ray, bank.solids[slot, item - bank.wall_count[slot]]))
        next_column, next_row = FAR, FAR  # distances at which the ray leaves the cell
        if abs(ray[3]) > 1e-12:
            next_column = ((column + (step_column > 0)) * cell - x) / ray[3]
        if abs(ray[5]) > 1e-12:
            next_row = ((row + (step_row > 0)) * cell - z) / ray[5]
        distance = min(next_column, next_row)
        if next_column <= next_row:
            column += step_column
        else:
            row += step_row
    return nearest


@kernel
def cast(bank: Bank, slot: int, car: Floats, others: Floats, params: CarParams, ray: Ray, limit: float) -> float:
    """Distance to whatever the ray meets first, `limit` or more if that is nothing."""
    nearest = min(hit_ground(bank, slot, ray, limit), limit)
    nearest = hit_things(bank, slot, ray, nearest)
    for k in range(len(others)):
        x, y, z = others[k, X], others[k, Y], others[k, Z]
        if x == car[X] and z == car[Z]:
            continue  # the car itself
        base, top = y - BOX_HALF_HEIGHT, y + BOX_HALF_HEIGHT
        distance = hit_box(ray, x, z, others[k, YAW], params.half_width, params.half_length, base, top)
        nearest = min(nearest, distance)
    return nearest


@kernel
def scan(
    bank: Bank, slot: int, car: Floats, others: Floats, params: CarParams, config: LidarConfig, out: Floats
) -> None:
    """Fill `out` (`config.shape`) with distances rounded to 0.01, `NO_HIT` where a ray meets nothing in range.

    `others` are rows of the state array; the car's own row may be among them.
    """
    mount = to_world(car, (config.offset_x, config.offset_y, config.offset_z))
    x, y, z = car[X] + mount[0], car[Y] + mount[1], car[Z] + mount[2]
    for level in range(out.shape[0]):
        down = math.radians(config.deg_ang_down + level * config.deg_ang_delta)
        for k in range(out.shape[1]):
            bearing = math.radians(k * config.deg_per_sweep_inc)
            aim = (math.cos(down) * math.sin(bearing), -math.sin(down), math.cos(down) * math.cos(bearing))
            aim = to_world(car, turn_about_x(aim, math.radians(config.rot_x)))
            distance = cast(bank, slot, car, others, params, (x, y, z, aim[0], aim[1], aim[2]), config.max_range)
            hit = distance < config.max_range
            out[level, k] = math.floor(distance / RESOLUTION + 0.5) * RESOLUTION if hit else NO_HIT
