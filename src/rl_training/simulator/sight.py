"""What a camera may see at all: quick tests of balls and boards against its picture, many at a time.

A ball is (x, y, z, radius) round a wall or solid; a bank holds them as columns, so that one pass over all of them runs
several a machine instruction. What passes may still turn out to lie beside the picture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.jit import kernel
from rl_training.simulator.track import (
    SOLID_BASE,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_HEIGHT,
    SOLID_X,
    SOLID_Z,
    WALL_BASE0,
    WALL_HEIGHT,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
)
from rl_training.simulator.view import Eye, View

SMALLEST = 0.5  # what covers less of the picture is not drawn [pixels]
CHUNK = 256  # balls looked at in one go

Floats = NDArray[np.float64]


def wall_balls(walls: Floats) -> Floats:
    """(4, n): balls round walls."""
    x0, z0, x1, z1 = (walls[:, column] for column in (WALL_X0, WALL_Z0, WALL_X1, WALL_Z1))
    radius = 0.5 * np.hypot(x1 - x0, z1 - z0) + walls[:, WALL_HEIGHT]
    return np.stack((0.5 * (x0 + x1), walls[:, WALL_BASE0], 0.5 * (z0 + z1), radius))


def solid_balls(solids: Floats) -> Floats:
    """(4, n): balls round solids, with some to spare for what stands out of them."""
    half_x, half_z, height = (solids[:, column] for column in (SOLID_HALF_X, SOLID_HALF_Z, SOLID_HEIGHT))
    radius = 1.15 * np.sqrt(half_x * half_x + half_z * half_z + 0.25 * height * height)
    return np.stack((solids[:, SOLID_X], solids[:, SOLID_BASE] + 0.5 * height, solids[:, SOLID_Z], radius))


class Bounds(NamedTuple):
    """The picture's edges, as slopes against the forward axis, and how far a ball reaches over each."""

    widest: float
    above: float
    below: float
    over_side: float
    over_top: float
    over_bottom: float
    least: float  # depth over radius from which a ball is smaller than a pixel


@kernel
def bounds_of(view: View) -> Bounds:
    widest = max(view.cx, view.width - view.cx) / view.fx
    above, below = view.cy / view.fy, (view.height - view.cy) / view.fy
    return Bounds(
        widest,
        above,
        below,
        math.sqrt(1.0 + widest * widest),
        math.sqrt(1.0 + above * above),
        math.sqrt(1.0 + below * below),
        2.0 * view.fx,
    )


@kernel
def in_sight(eye: Eye, bounds: Bounds, x: float, y: float, z: float, radius: float, far: float) -> bool:
    """Whether a ball may show in the picture, and larger than a pixel is wide; without a branch."""
    x, y, z = x - eye.x, y - eye.y, z - eye.z
    depth = x * eye.forward_x + y * eye.forward_y + z * eye.forward_z
    seen = (depth >= -radius) & (depth <= far + radius) & (bounds.least * radius >= depth)
    depth = max(depth, 0.0)
    right = x * eye.right_x + y * eye.right_y + z * eye.right_z
    seen &= abs(right) <= bounds.widest * depth + radius * bounds.over_side
    up = x * eye.up_x + y * eye.up_y + z * eye.up_z
    seen &= (up <= bounds.above * depth + radius * bounds.over_top) & (
        up >= -bounds.below * depth - radius * bounds.over_bottom
    )
    return bool(seen)


@kernel
def mark_in_sight(eye: Eye, bounds: Bounds, balls: Floats, first: int, far: float, marks: NDArray[np.uint8]) -> None:
    """`marks[k]` becomes 1 where ball first + k may show."""
    end = first + len(marks)
    x, y, z, radius = balls[0, first:end], balls[1, first:end], balls[2, first:end], balls[3, first:end]
    for k in range(len(marks)):
        marks[k] = in_sight(eye, bounds, x[k], y[k], z[k], radius[k], far)


@kernel
def board_in_sight(eye: Eye, view: View, x: float, y: float, z: float, half: float, tall: float) -> bool:
    """Whether an upright board may show: a board as wide as 2 · `half`, `tall` above its foot's middle (x, y, z)."""
    x, y, z = x - eye.x, y - eye.y + 0.5 * tall, z - eye.z
    depth = x * eye.forward_x + y * eye.forward_y + z * eye.forward_z
    deep = half + 0.5 * tall * abs(eye.forward_y)
    if depth < deep + 0.5:
        return True  # so near that its own depth counts
    if 2.0 * half * tall * view.fx * view.fy < SMALLEST * depth * depth:
        return False
    above, below = view.cy / view.fy, (view.height - view.cy) / view.fy
    up = x * eye.up_x + y * eye.up_y + z * eye.up_z
    high = 0.5 * tall * abs(eye.up_y) + half * math.sqrt(max(1.0 - eye.up_y * eye.up_y, 0.0))
    return up - high <= above * depth + abs(above) * deep and up + high >= -below * depth - abs(below) * deep
