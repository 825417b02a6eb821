"""Takes walls, solids and cars apart into the faces that a camera may see, and casts their shadows.

What is round (cones, cylinders, trees, people) is a board that turns to the camera; what is square is a box, and a car
is a few boxes. Tables below say of which parts a shape consists, in multiples of its own half_x, height and half_z.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import faces as f
from rl_training.simulator.bank import Bank
from rl_training.simulator.boards import LEAST_UP
from rl_training.simulator.faces import (
    BANDS,
    BOARD,
    CROWN,
    FACE,
    LEAVES,
    PANELS,
    PLAIN,
    ROUND_OFF,
    SHADOW,
    SPIKE,
    SQUARE,
    STRAW,
    TUBE,
    WHOLE_TREE,
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
from rl_training.simulator.sight import CHUNK, SMALLEST, Bounds, board_in_sight, bounds_of, in_sight, mark_in_sight
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
    Material,
    Shape,
)
from rl_training.simulator.view import Eye, View, turn

Floats = NDArray[np.float64]

FAR_WALL = 400.0  # walls and solids farther away than this are not drawn [u]
FAR_SOLID = 250.0
FAR_SHADOW = 45.0
MOST_CAST = 3.0  # longest shadow, in heights

# Columns of `others`: cars to be seen. The colour is red · 65536 + green · 256 + blue.
OTHER_X, OTHER_Y, OTHER_Z, OTHER_YAW, OTHER_PITCH, OTHER_ROLL, OTHER_COLOR = range(7)
OTHER_COLUMNS = 7

OWN, TYRE, GLASS, SKIN, TRUNK, WHITE = -1, -2, -3, -4, -5, -6  # colours of parts; OWN is the solid's material

# Parts of boxes: centre and half size (right, up, forward), colour, change of shade.
_BOX = [(0.0, 0.5, 0.0, 1.0, 0.5, 1.0, OWN, 0.0)]
_ARCH = [
    (-1.06, 0.5, 0.0, 0.06, 0.5, 1.0, OWN, 0.0),
    (1.06, 0.5, 0.0, 0.06, 0.5, 1.0, OWN, 0.0),
    (0.0, 0.92, 0.0, 1.0, 0.08, 0.8, OWN, 0.0),
]
_CAR = [  # in u, from the car's origin
    (0.0, -0.10, 0.0, 0.46, 0.15, 0.86, OWN, 0.0),
    (0.0, 0.18, -0.14, 0.36, 0.13, 0.44, GLASS, 0.0),
    (0.0, 0.34, -0.16, 0.34, 0.03, 0.40, OWN, 1.0),
    (-0.60, -0.25, 0.80, 0.13, 0.31, 0.31, TYRE, 0.0),
    (0.60, -0.25, 0.80, 0.13, 0.31, 0.31, TYRE, 0.0),
    (-0.60, -0.25, -0.77, 0.13, 0.31, 0.31, TYRE, 0.0),
    (0.60, -0.25, -0.77, 0.13, 0.31, 0.31, TYRE, 0.0),
]
_PARTS = np.array(_BOX + _ARCH + _CAR)
_BOX_PARTS, _ARCH_PARTS, _CAR_PARTS = (0, 1), (1, 4), (4, 11)

# Boards: half width in half_x and half_z, bottom and top in heights, outline, pattern, colour, second colour.
_CYLINDER = [(1.0, 0.0, 0.0, 1.0, SQUARE, TUBE, OWN, OWN)]
_CONE = [(1.05, 0.0, 0.0, 0.07, SQUARE, PLAIN, OWN, OWN), (0.8, 0.0, 0.05, 1.0, SPIKE, BANDS, OWN, WHITE)]
_TREE = [(1.0, 0.0, 0.0, 0.5, SQUARE, TUBE, TRUNK, TRUNK), (0.0, 1.0, 0.25, 1.0, CROWN, LEAVES, OWN, OWN)]
_PERSON = [
    (0.5, 0.0, 0.0, 0.5, SQUARE, TUBE, TYRE, TYRE),
    (0.85, 0.0, 0.44, 0.83, SQUARE, TUBE, OWN, OWN),
    (0.42, 0.0, 0.82, 1.0, ROUND_OFF, TUBE, SKIN, SKIN),
]
_BOARDS = np.array(_CYLINDER + _CONE + _TREE + _PERSON)
_BOARD_ROWS = np.zeros((6, 2), np.int64)
_BOARD_ROWS[Shape.CYLINDER] = 0, 1
_BOARD_ROWS[Shape.CONE] = 1, 3
_BOARD_ROWS[Shape.TREE] = 3, 5
_BOARD_ROWS[Shape.PERSON] = 5, 8

_BOX_SHAPE, _CYLINDER_SHAPE, _CONE_SHAPE, _ARCH_SHAPE, _TREE_SHAPE = (
    int(Shape.BOX),
    int(Shape.CYLINDER),
    int(Shape.CONE),
    int(Shape.ARCH),
    int(Shape.TREE),
)
_BALE, _FOLIAGE, _WOOD, _LINE_WHITE = (
    int(Material.BALE),
    int(Material.FOLIAGE),
    int(Material.WOOD),
    int(Material.LINE_WHITE),
)
_ROUND_LIGHT = 0.55  # how far a board, which stands for something round, faces the sun
_TYRE_RAMP, _GLASS_RAMP, _SKIN_RAMP, _FIRST_CAR_RAMP = 0, 16, 32, 48  # places in `ramps`


@kernel
def _emit(
    faces: Floats,
    count: int,
    origin: tuple[float, float, float],
    u: tuple[float, float, float],
    v: tuple[float, float, float],
    outline: int,
    pattern: int,
    ramp: int,
    ramp_alt: int,
    shade: float,
    kind: int,
) -> int:
    """Append a face, if there is room; returns the number of faces."""
    if count >= len(faces):
        return count
    face = faces[count]
    face[f.KIND] = kind
    face[f.OX], face[f.OY], face[f.OZ] = origin
    face[f.UX], face[f.UY], face[f.UZ] = u
    face[f.VX], face[f.VY], face[f.VZ] = v
    face[f.OUTLINE], face[f.PATTERN], face[f.RAMP], face[f.RAMP_ALT] = outline, pattern, ramp, ramp_alt
    face[f.SHADE] = shade
    face[f.LENGTH] = math.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2])
    face[f.HEIGHT] = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    return count + 1


@kernel
def _ramp(color: int, own: int) -> int:
    """Where the shades of a part's colour begin."""
    if color == OWN:
        return own
    if color == TYRE:
        return PALETTE_SIZE + _TYRE_RAMP
    if color == GLASS:
        return PALETTE_SIZE + _GLASS_RAMP
    if color == SKIN:
        return PALETTE_SIZE + _SKIN_RAMP
    return (_WOOD if color == TRUNK else _LINE_WHITE) * 0x1100


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
    return _emit(
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
def _emit_boxes(
    faces: Floats,
    count: int,
    parts: tuple[int, int],
    place: tuple[float, float, float],
    turned: tuple[float, float, float],
    scale: tuple[float, float, float],
    own: int,
    pattern: int,
    eye: Eye,
    light: Floats,
    axes: Floats,
) -> int:
    """Faces, seen from the eye, of boxes at `place`, turned by (yaw, pitch, roll)."""
    yaw, pitch, roll = turned
    for k in range(parts[0], parts[1]):
        part = _PARTS[k]
        x, y, z = turn(part[0] * scale[0], part[1] * scale[1], part[2] * scale[2], yaw, pitch, roll)
        x, y, z = x + place[0], y + place[1], z + place[2]
        axes[0, 0], axes[0, 1], axes[0, 2] = turn(part[3] * scale[0], 0.0, 0.0, yaw, pitch, roll)
        axes[1, 0], axes[1, 1], axes[1, 2] = turn(0.0, part[4] * scale[1], 0.0, yaw, pitch, roll)
        axes[2, 0], axes[2, 1], axes[2, 2] = turn(0.0, 0.0, part[5] * scale[2], yaw, pitch, roll)
        ramp = _ramp(int(part[6]), own)
        for side in range(6):
            normal = side >> 1
            sign = 1.0 - 2.0 * (side & 1)
            nx, ny, nz = sign * axes[normal, 0], sign * axes[normal, 1], sign * axes[normal, 2]
            square = nx * nx + ny * ny + nz * nz
            if (eye.x - x) * nx + (eye.y - y) * ny + (eye.z - z) * nz <= square:
                continue
            u = axes[2 if normal == 0 else 0]
            v = axes[2 if normal == 1 else 1]
            facing = (nx * light[SUN_X] + ny * light[SUN_Y] + nz * light[SUN_Z]) / math.sqrt(max(square, 1e-12))
            count = _emit(
                faces,
                count,
                (x + nx - u[0] - v[0], y + ny - u[1] - v[1], z + nz - u[2] - v[2]),
                (2.0 * u[0], 2.0 * u[1], 2.0 * u[2]),
                (2.0 * v[0], 2.0 * v[1], 2.0 * v[2]),
                SQUARE,
                pattern,
                ramp,
                ramp,
                light_steps(light, facing) + part[7],
                FACE,
            )
    return count


@kernel
def _emit_boards(
    faces: Floats, count: int, shape: int, solid: Floats, own: int, eye: Eye, view: View, shade: float
) -> int:
    """The boards of a round solid, turned to the eye."""
    x, z = solid[SOLID_X], solid[SOLID_Z]
    away = max(math.sqrt((x - eye.x) ** 2 + (z - eye.z) ** 2), 1e-6)
    right_x, right_z = (z - eye.z) / away, (eye.x - x) / away
    height = solid[SOLID_HEIGHT]
    if shape == _TREE_SHAPE and eye.up_y > LEAST_UP and away > 4.0 * solid[SOLID_HALF_Z]:
        half, before = solid[SOLID_HALF_Z], count
        count = _emit(
            faces, count, (x - half * right_x, solid[SOLID_BASE], z - half * right_z),
            (2.0 * half * right_x, 0.0, 2.0 * half * right_z), (0.0, height, 0.0),
            WHOLE_TREE, LEAVES, own, _ramp(TRUNK, own), shade, BOARD,
        )  # fmt: skip
        if count > before:
            faces[before, f.STEM] = solid[SOLID_HALF_X] / half
        return count
    for k in range(_BOARD_ROWS[shape, 0], _BOARD_ROWS[shape, 1]):
        board = _BOARDS[k]
        half = board[0] * solid[SOLID_HALF_X] + board[1] * solid[SOLID_HALF_Z]
        foot, tall = solid[SOLID_BASE] + board[2] * height, (board[3] - board[2]) * height
        if not board_in_sight(eye, view, x, foot, z, half, tall):
            continue
        count = _emit(
            faces,
            count,
            (x - half * right_x, foot, z - half * right_z),
            (2.0 * half * right_x, 0.0, 2.0 * half * right_z),
            (0.0, tall, 0.0),
            int(board[4]),
            int(board[5]),
            _ramp(int(board[6]), own),
            _ramp(int(board[7]), own),
            shade,
            BOARD,
        )
    top = solid[SOLID_BASE] + height
    if shape == _CYLINDER_SHAPE and eye.y > top:
        half = solid[SOLID_HALF_X]
        count = _emit(
            faces, count, (x - half, top, z - half), (2.0 * half, 0.0, 0.0), (0.0, 0.0, 2.0 * half),
            ROUND_OFF, PLAIN, own, own, -1.0, FACE,
        )  # fmt: skip
    return count


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
    count = _emit(faces, count, origin, u, (0.0, height, 0.0), SQUARE, PANELS, own, own, shade, FACE)
    if light[OUTDOOR] and light[SUN_Y] > 1e-6 and in_sight(eye, bounds, x, wall[WALL_BASE0], z, half, FAR_SHADOW):
        cast = -height / max(light[SUN_Y], 0.3)
        v = (light[SUN_X] * cast, 0.0, light[SUN_Z] * cast)
        origin = (origin[0], origin[1] + 0.02, origin[2])
        count = _emit(faces, count, origin, u, v, SQUARE, PLAIN, 0, 0, 0.0, SHADOW)
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
    square = shape in (_BOX_SHAPE, _ARCH_SHAPE)
    if square:
        parts = _BOX_PARTS if shape == _BOX_SHAPE else _ARCH_PARTS
        count = _emit_boxes(
            faces, count, parts, (x, solid[SOLID_BASE], z), (solid[SOLID_YAW], 0.0, 0.0), (half_x, height, half_z),
            own, STRAW if material == _BALE else PLAIN, eye, light, axes,
        )  # fmt: skip
    else:
        count = _emit_boards(faces, count, shape, solid, own, eye, view, round_shade)
    if shape == _ARCH_SHAPE or light[OUTDOOR] == 0.0:
        return count
    radius = 1.15 * math.sqrt(half_x * half_x + half_z * half_z + 0.25 * height * height)
    ahead = (x - eye.x) * eye.forward_x + (z - eye.z) * eye.forward_z + (solid[SOLID_BASE] - eye.y) * eye.forward_y
    if _shadow_shows(eye, view, solid, max(ahead - radius, 0.0)) and in_sight(
        eye, bounds, x, solid[SOLID_BASE], z, radius, FAR_SHADOW
    ):
        half = max(half_x, half_z) if not square else 0.7 * (half_x + half_z)
        outline = SPIKE if shape == _CONE_SHAPE else (SQUARE if square or shape == _CYLINDER_SHAPE else ROUND_OFF)
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
        _fill_ramp(ramps, _TYRE_RAMP, 38.0, 38.0, 42.0, light)
        _fill_ramp(ramps, _GLASS_RAMP, 70.0, 88.0, 104.0, light)
        _fill_ramp(ramps, _SKIN_RAMP, 206.0, 160.0, 128.0, light)
    ramp = _FIRST_CAR_RAMP
    for k in range(len(others)):
        car = others[k]
        x, y, z = car[OTHER_X], car[OTHER_Y], car[OTHER_Z]
        if ramp + 16 > len(ramps) or not in_sight(eye, bounds, x, y, z, 1.3, FAR_SOLID):
            continue
        color = int(car[OTHER_COLOR])
        _fill_ramp(ramps, ramp, float(color >> 16 & 255), float(color >> 8 & 255), float(color & 255), light)
        turned = (car[OTHER_YAW], car[OTHER_PITCH], car[OTHER_ROLL])
        count = _emit_boxes(
            faces, count, _CAR_PARTS, (x, y, z), turned, (1.0, 1.0, 1.0), PALETTE_SIZE + ramp, PLAIN, eye, light, axes
        )
        count = _cast(faces, count, terrain, light, x, z, 0.7, 0.85, SQUARE)
        ramp += 16
    return count
