"""What a camera may see of walls, solids and other cars, as faces, with the shadows they cast."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.faces import (
    FACE,
    PANELS,
    PLAIN,
    ROUND_OFF,
    SHADOW,
    SPIKE,
    SQUARE,
    STRAW,
)
from rl_training.simulator.hill_view import Terrain, terrain_height
from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import (
    BLUE,
    GREEN,
    OUTDOOR,
    PALETTE_SIZE,
    RED,
    SUN_X,
    SUN_Y,
    SUN_Z,
    Palette,
    light_steps,
    pack_color,
    shade_factor,
)
from rl_training.simulator.parts import (
    ARCH_SHAPE,
    BALE,
    CAR_PARTS,
    CONE_SHAPE,
    CYLINDER_SHAPE,
    FIRST_CAR_RAMP,
    GLASS_RAMP,
    PARTS_OF,
    SKIN_RAMP,
    TYRE_RAMP,
    emit,
    emit_boards,
    emit_boxes,
)
from rl_training.simulator.sight import CHUNK, SMALLEST, Bounds, bounds_of, in_sight, mark_in_sight
from rl_training.simulator.track import (
    SOLID_BASE,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_HEIGHT,
    SOLID_MATERIAL,
    SOLID_SHAPE,
    SOLID_X,
    SOLID_YAW,
    SOLID_Z,
    WALL_BASE0,
    WALL_BASE1,
    WALL_HEIGHT,
    WALL_MATERIAL,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
)
from rl_training.simulator.view import Eye, View

Floats = NDArray[np.float64]

FAR_WALL = 400.0  # walls and solids farther away than this are not drawn [u]
FAR_SOLID = 250.0
FAR_SHADOW = 45.0
FINE = 8.0  # what is lower than this in the picture is drawn as one box [pixels]
_ROUND_LIGHT = 0.55  # how far a board, which stands for something round, faces the sun
MOST_CAST = 3.0  # longest shadow, in heights

# Columns of `others`: cars to be seen. The colour is red · 65536 + green · 256 + blue.
OTHER_X, OTHER_Y, OTHER_Z, OTHER_YAW, OTHER_PITCH, OTHER_ROLL, OTHER_COLOR = range(7)
OTHER_COLUMNS = 7


@kernel
def _fill_ramp(ramps: Palette, start: int, red: float, green: float, blue: float, light: Floats) -> None:
    for shade in range(16):
        factor = shade_factor(shade)
        ramps[start + shade] = pack_color(
            red * light[RED] * factor, green * light[GREEN] * factor, blue * light[BLUE] * factor
        )


@kernel
def _cast(
    faces: Floats,
    count: int,
    terrain: Terrain,
    light: Floats,
    x: float,
    z: float,
    half: float,
    height: float,
    outline: int,
) -> int:
    """The shadow of something `height` high and 2 · `half` wide, as the sun sees it."""
    across = math.sqrt(light[SUN_X] ** 2 + light[SUN_Z] ** 2)
    if light[OUTDOOR] == 0.0 or across < 1e-6 or light[SUN_Y] < 1e-6:
        return count
    away_x, away_z = -light[SUN_X] / across, -light[SUN_Z] / across
    reach = height * min(across / light[SUN_Y], MOST_CAST)
    y = terrain_height(terrain, x, z) + 0.01
    rise = terrain_height(terrain, x + away_x * reach, z + away_z * reach) + 0.01 - y
    return emit(
        faces,
        count,
        (x - half * away_z, y, z + half * away_x),
        (2.0 * half * away_z, 0.0, -2.0 * half * away_x),
        (away_x * reach, rise, away_z * reach),
        outline,
        PLAIN,
        0,
        0,
        0.0,
        SHADOW,
    )


@kernel
def _collect_wall(wall: Floats, eye: Eye, bounds: Bounds, light: Floats, faces: Floats, count: int) -> int:
    length_x, length_z = wall[WALL_X1] - wall[WALL_X0], wall[WALL_Z1] - wall[WALL_Z0]
    x, z = wall[WALL_X0] + 0.5 * length_x, wall[WALL_Z0] + 0.5 * length_z
    half = 0.5 * math.sqrt(length_x * length_x + length_z * length_z)
    height = wall[WALL_HEIGHT]
    facing = (light[SUN_X] * length_z - light[SUN_Z] * length_x) / max(2.0 * half, 1e-9)
    if (eye.x - x) * length_z - (eye.z - z) * length_x < 0.0:
        facing = -facing
    own = int(wall[WALL_MATERIAL]) * 0x1100
    u = (length_x, wall[WALL_BASE1] - wall[WALL_BASE0], length_z)
    origin = (wall[WALL_X0], wall[WALL_BASE0], wall[WALL_Z0])
    shade = light_steps(light, facing)
    count = emit(faces, count, origin, u, (0.0, height, 0.0), SQUARE, PANELS, own, own, shade, FACE)
    if light[OUTDOOR] and light[SUN_Y] > 1e-6 and in_sight(eye, bounds, x, wall[WALL_BASE0], z, half, FAR_SHADOW):
        cast = -height / max(light[SUN_Y], 0.3)
        v = (light[SUN_X] * cast, 0.0, light[SUN_Z] * cast)
        origin = (origin[0], origin[1] + 0.02, origin[2])
        count = emit(faces, count, origin, u, v, SQUARE, PLAIN, 0, 0, 0.0, SHADOW)
    return count


@kernel
def _shadow_shows(eye: Eye, view: View, solid: Floats, depth: float) -> bool:
    """Whether a shadow that deep in the picture, seen so low over the ground, is large enough to be drawn."""
    high = view.fy * max(eye.y - solid[SOLID_BASE], 1.0) * (solid[SOLID_HEIGHT] + solid[SOLID_HALF_X])
    wide = 2.0 * view.fx * (solid[SOLID_HALF_X] + solid[SOLID_HALF_Z])
    square = depth * depth
    return bool(depth < FAR_SHADOW and SMALLEST * square < high and SMALLEST * square * depth < high * wide)


@kernel
def _collect_solid(
    solid: Floats,
    eye: Eye,
    view: View,
    bounds: Bounds,
    light: Floats,
    round_shade: float,
    terrain: Terrain,
    faces: Floats,
    count: int,
    axes: Floats,
) -> int:
    x, z, half_x, half_z, height = (
        solid[SOLID_X],
        solid[SOLID_Z],
        solid[SOLID_HALF_X],
        solid[SOLID_HALF_Z],
        solid[SOLID_HEIGHT],
    )
    shape, material = int(solid[SOLID_SHAPE]), int(solid[SOLID_MATERIAL])
    own = material * 0x1100
    ahead = (x - eye.x) * eye.forward_x + (z - eye.z) * eye.forward_z + (solid[SOLID_BASE] - eye.y) * eye.forward_y
    square = PARTS_OF[0, shape, 1] > 0
    if square:
        far = 1 if view.fy * height < FINE * ahead else 0
        parts = (PARTS_OF[far, shape, 0], PARTS_OF[far, shape, 1])
        count = emit_boxes(
            faces, count, parts, (x, solid[SOLID_BASE], z), (solid[SOLID_YAW], 0.0, 0.0), (half_x, height, half_z),
            own, STRAW if material == BALE else PLAIN, eye, light, axes,
        )  # fmt: skip
    else:
        count = emit_boards(faces, count, shape, solid, own, eye, view, round_shade)
    if shape == ARCH_SHAPE or light[OUTDOOR] == 0.0:
        return count
    radius = 1.15 * math.sqrt(half_x * half_x + half_z * half_z + 0.25 * height * height)
    if _shadow_shows(eye, view, solid, max(ahead - radius, 0.0)) and in_sight(
        eye, bounds, x, solid[SOLID_BASE], z, radius, FAR_SHADOW
    ):
        half = max(half_x, half_z) if not square else 0.7 * (half_x + half_z)
        outline = SPIKE if shape == CONE_SHAPE else (SQUARE if square or shape == CYLINDER_SHAPE else ROUND_OFF)
        count = _cast(faces, count, terrain, light, x, z, half, height, outline)
    return count


@kernel
def collect_faces(
    bank: Bank,
    slot: int,
    eye: Eye,
    view: View,
    light: Floats,
    terrain: Terrain,
    others: Floats,
    faces: Floats,
    ramps: Palette,
    axes: Floats,
    marks: NDArray[np.uint8],
) -> int:
    """Fill `faces` with what may be seen of walls, solids and other cars; returns their number. `marks` is scratch."""
    count = 0
    bounds = bounds_of(view)
    for first in range(0, bank.wall_count[slot], CHUNK):
        some = marks[: min(bank.wall_count[slot] - first, CHUNK)]
        mark_in_sight(eye, bounds, bank.wall_balls[slot], first, FAR_WALL, some)
        for k in range(len(some)):
            if some[k]:
                count = _collect_wall(bank.walls[slot, first + k], eye, bounds, light, faces, count)
    before, round_shade = count, light_steps(light, _ROUND_LIGHT)
    for first in range(0, bank.solid_count[slot], CHUNK):
        some = marks[: min(bank.solid_count[slot] - first, CHUNK)]
        mark_in_sight(eye, bounds, bank.solid_balls[slot], first, FAR_SOLID, some)
        for k in range(len(some)):
            if some[k]:
                solid = bank.solids[slot, first + k]
                count = _collect_solid(solid, eye, view, bounds, light, round_shade, terrain, faces, count, axes)
    if count > before or len(others) > 0:
        _fill_ramp(ramps, TYRE_RAMP, 38.0, 38.0, 42.0, light)
        _fill_ramp(ramps, GLASS_RAMP, 70.0, 88.0, 104.0, light)
        _fill_ramp(ramps, SKIN_RAMP, 206.0, 160.0, 128.0, light)
    ramp = FIRST_CAR_RAMP
    for k in range(len(others)):
        car = others[k]
        x, y, z = car[OTHER_X], car[OTHER_Y], car[OTHER_Z]
        if ramp + 16 > len(ramps) or not in_sight(eye, bounds, x, y, z, 1.3, FAR_SOLID):
            continue
        color = int(car[OTHER_COLOR])
        _fill_ramp(ramps, ramp, float(color >> 16 & 255), float(color >> 8 & 255), float(color & 255), light)
        turned = (car[OTHER_YAW], car[OTHER_PITCH], car[OTHER_ROLL])
        count = emit_boxes(
            faces, count, CAR_PARTS, (x, y, z), turned, (1.0, 1.0, 1.0), PALETTE_SIZE + ramp, PLAIN, eye, light, axes
        )
        count = _cast(faces, count, terrain, light, x, z, 0.7, 0.85, SQUARE)
        ramp += 16
    return count
