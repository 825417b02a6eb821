"""Height, slope and grip of the ground under a point. A point outside a height field sees its nearest edge."""

from __future__ import annotations

import math

from rl_training.simulator.bank import Bank
from rl_training.simulator.jit import kernel
from rl_training.simulator.track import (
    DEFAULT_FRICTION,
    ZONE_FRICTION,
    ZONE_HALF_X,
    ZONE_HALF_Z,
    ZONE_X,
    ZONE_YAW,
    ZONE_Z,
)


@kernel
def height_at(bank: Bank, slot: int, x: float, z: float) -> float:
    """Ground height at (x, z), bilinear [u]."""
    rows = bank.height_shape[slot, 0]
    if rows == 0:
        return float(bank.ground_y[slot])
    columns = bank.height_shape[slot, 1]
    inverse = 1.0 / bank.height_origin[slot, 2]
    column = (x - bank.height_origin[slot, 0]) * inverse
    row = (z - bank.height_origin[slot, 1]) * inverse
    column = min(max(column, 0.0), columns - 1.001)
    row = min(max(row, 0.0), rows - 1.001)
    i = int(row)
    j = int(column)
    b = row - i
    a = column - j
    near = bank.heights[slot, i, j] * (1.0 - a) + bank.heights[slot, i, j + 1] * a
    far = bank.heights[slot, i + 1, j] * (1.0 - a) + bank.heights[slot, i + 1, j + 1] * a
    return float(near * (1.0 - b) + far * b)


@kernel
def slope_at(bank: Bank, slot: int, x: float, z: float) -> tuple[float, float]:
    """(dy/dx, dy/dz) of the ground, over half a unit to each side."""
    if bank.height_shape[slot, 0] == 0:
        return 0.0, 0.0
    step = 0.5
    along_x = height_at(bank, slot, x + step, z) - height_at(bank, slot, x - step, z)
    along_z = height_at(bank, slot, x, z + step) - height_at(bank, slot, x, z - step)
    return along_x / (2.0 * step), along_z / (2.0 * step)


@kernel
def friction_at(bank: Bank, slot: int, x: float, z: float) -> float:
    """Tyre friction of the ground at (x, z)."""
    friction = DEFAULT_FRICTION
    for k in range(bank.zone_count[slot]):
        dx = x - bank.zones[slot, k, ZONE_X]
        dz = z - bank.zones[slot, k, ZONE_Z]
        sine = math.sin(bank.zones[slot, k, ZONE_YAW])
        cosine = math.cos(bank.zones[slot, k, ZONE_YAW])
        across = dx * cosine - dz * sine
        along = dx * sine + dz * cosine
        if abs(across) <= bank.zones[slot, k, ZONE_HALF_X] and abs(along) <= bank.zones[slot, k, ZONE_HALF_Z]:
            friction = bank.zones[slot, k, ZONE_FRICTION]
    return friction
