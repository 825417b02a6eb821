"""Of which faces things consist: tables of parts, and their places in the world.

What is round (cones, cylinders, trees, people) is a board that turns to the camera; what is square is one box or a few.
The tables give parts in multiples of a solid's own half_x, height and half_z.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import faces as f
from rl_training.simulator.boards import LEAST_UP
from rl_training.simulator.faces import (
    BANDS,
    BOARD,
    CROWN,
    FACE,
    LEAVES,
    PLAIN,
    ROUND_OFF,
    SPIKE,
    SQUARE,
    TUBE,
    WHOLE_TREE,
)
from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import (
    PALETTE_SIZE,
    SUN_X,
    SUN_Y,
    SUN_Z,
    light_steps,
)
from rl_training.simulator.sight import board_in_sight
from rl_training.simulator.track import (
    SOLID_BASE,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_HEIGHT,
    SOLID_X,
    SOLID_Z,
    Material,
    Shape,
)
from rl_training.simulator.view import Eye, View, turn

Floats = NDArray[np.float64]

OWN, TYRE, GLASS, SKIN, TRUNK, WHITE = -1, -2, -3, -4, -5, -6  # colours of parts; OWN is the solid's material

# Parts of boxes: centre and half size (right, up, forward), colour, change of shade.
_BOX = [(0.0, 0.5, 0.0, 1.0, 0.5, 1.0, OWN, 0.0)]
_ARCH = [
    (-1.06, 0.5, 0.0, 0.06, 0.5, 1.0, OWN, 0.0),
    (1.06, 0.5, 0.0, 0.06, 0.5, 1.0, OWN, 0.0),
    (0.0, 0.92, 0.0, 1.0, 0.08, 0.8, OWN, 0.0),
]
_CHAIR = [
    (0.0, 0.22, 0.0, 0.75, 0.22, 0.75, TYRE, 0.0),  # the legs, as the dark below the seat
    (0.0, 0.47, 0.0, 1.0, 0.04, 1.0, OWN, 0.0),
    (0.0, 0.75, -0.9, 0.95, 0.25, 0.1, OWN, 0.0),
]
_TABLE = [
    (0.0, 0.93, 0.0, 1.0, 0.07, 1.0, OWN, 0.0),
    (0.0, 0.43, 0.85, 0.85, 0.43, 0.05, OWN, -1.0),
    (0.0, 0.43, -0.85, 0.85, 0.43, 0.05, OWN, -1.0),
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
_FAR_CHAIR = [(0.0, 0.45, -0.2, 0.9, 0.45, 0.75, OWN, 0.0)]
_FAR_TABLE = [(0.0, 0.9, 0.0, 1.0, 0.1, 1.0, OWN, 0.0)]
_PARTS = np.array(_BOX + _ARCH + _CHAIR + _TABLE + _FAR_CHAIR + _FAR_TABLE + _CAR)
CAR_PARTS = (12, 19)
PARTS_OF = np.zeros((2, 8, 2), np.int64)  # first and end row of each square shape, near and [1] far
PARTS_OF[:, Shape.BOX] = 0, 1
PARTS_OF[:, Shape.ARCH] = 1, 4
PARTS_OF[:, Shape.CHAIR] = (4, 7), (10, 11)
PARTS_OF[:, Shape.TABLE] = (7, 10), (11, 12)

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

CYLINDER_SHAPE, CONE_SHAPE, ARCH_SHAPE, TREE_SHAPE = (
    int(Shape.CYLINDER),
    int(Shape.CONE),
    int(Shape.ARCH),
    int(Shape.TREE),
)
BALE, _WOOD, _LINE_WHITE = int(Material.BALE), int(Material.WOOD), int(Material.LINE_WHITE)
TYRE_RAMP, GLASS_RAMP, SKIN_RAMP, FIRST_CAR_RAMP = 0, 16, 32, 48  # places in `ramps`


@kernel
def emit(
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
        return PALETTE_SIZE + TYRE_RAMP
    if color == GLASS:
        return PALETTE_SIZE + GLASS_RAMP
    if color == SKIN:
        return PALETTE_SIZE + SKIN_RAMP
    return (_WOOD if color == TRUNK else _LINE_WHITE) * 0x1100


@kernel
def emit_boxes(
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
            count = emit(
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
def emit_boards(
    faces: Floats, count: int, shape: int, solid: Floats, own: int, eye: Eye, view: View, shade: float
) -> int:
    """The boards of a round solid, turned to the eye."""
    x, z = solid[SOLID_X], solid[SOLID_Z]
    away = max(math.sqrt((x - eye.x) ** 2 + (z - eye.z) ** 2), 1e-6)
    right_x, right_z = (z - eye.z) / away, (eye.x - x) / away
    height = solid[SOLID_HEIGHT]
    if shape == TREE_SHAPE and eye.up_y > LEAST_UP and away > 4.0 * solid[SOLID_HALF_Z]:
        half, before = solid[SOLID_HALF_Z], count
        count = emit(
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
        count = emit(
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
    if shape == CYLINDER_SHAPE and eye.y > top:
        half = solid[SOLID_HALF_X]
        count = emit(
            faces, count, (x - half, top, z - half), (2.0 * half, 0.0, 0.0), (0.0, 0.0, 2.0 * half),
            ROUND_OFF, PLAIN, own, own, -1.0, FACE,
        )  # fmt: skip
    return count
