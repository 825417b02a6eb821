"""Draws boards: upright pictures of round things (trunks, crowns, cones, tyres, people) that always face the camera.

Seen by a camera that does not lean much, a board is as wide as its outline says at a height and equally near all along
a row of the picture. So a row takes one division, and a pixel one look into a table of shades, where a general face
(`faces`) takes several of each.

    s, t    place on the board, from left to right and from the foot up, 0..1
    near    1 / depth; along the board's axis it runs straight from the picture of the foot to that of the top
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import faces as f
from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import NEUTRAL_SHADE, PALETTE_SIZE, Palette
from rl_training.simulator.view import Eye, View

SIDE = 64  # of the tables below
STEM_ROWS = SIDE // 4  # of a tree are trunk
LEAST_UP = 0.85  # how upright the camera must be

# Columns of `rows`, scratch space: what a row of the picture shows of a board.
START, STOP, S, S_STEP, AT = range(5)
ROW_COLUMNS = 5

Floats = NDArray[np.float64]


def _profiles() -> NDArray[np.float64]:
    """(outlines, SIDE) half width of each outline, in halves of the board, by t."""
    t = (np.arange(SIDE) + 0.5) / SIDE
    profiles = np.zeros((f.WHOLE_TREE + 1, SIDE))
    profiles[f.SQUARE] = 1.0
    profiles[f.SPIKE] = 1.0 - 0.84 * t
    profiles[f.ROUND_OFF] = np.sqrt(1.0 - (2.0 * t - 1.0) ** 2)
    crown = (0.0, 0.2, 0.45, 0.85, 1.0), (0.28, 0.9, 1.0, 0.44, 0.0)
    profiles[f.CROWN] = np.interp(t, *crown)
    profiles[f.WHOLE_TREE, STEM_ROWS:] = np.interp(t[STEM_ROWS:], 0.25 + 0.75 * np.array(crown[0]), crown[1])
    return profiles


def _shades() -> NDArray[np.int8]:
    """(6, SIDE, SIDE) changes of shade by t and s: even, round, a crown from afar and with leaves, trees likewise."""
    place = (np.arange(SIDE) + 0.5) / SIDE
    tube = np.trunc(1.5 - 14.0 * (place - 0.38) ** 2)
    rows, columns = (np.minimum((size * place).astype(int), size - 1) for size in f.LEAF_SHADES.shape[1:])
    leaves = f.LEAF_SHADES[:, rows][:, :, columns]
    trees = np.tile(tube, (2, SIDE, 1))
    crown = np.linspace(0, SIDE - 1, SIDE - STEM_ROWS).astype(int)
    trees[:, STEM_ROWS:] = leaves[:, crown]
    return np.stack((np.zeros((SIDE, SIDE)), np.tile(tube, (SIDE, 1)), *leaves, *trees)).astype(np.int8)


_PROFILES = _profiles()
_SHADES = _shades()
_EVEN, _ROUND, _AFAR, _LEAFY, _TREE_AFAR, _TREE_LEAFY = range(6)
_BAND = 23, 40  # part of a cone's height that is white, in rows of a table
_FIXED = 32
_IN_TABLE = 32 - 6  # from a fixed-point place on the board to its place in a table


@kernel
def paint_board(
    face: Floats,
    eye: Eye,
    view: View,
    table: Palette,
    rows: NDArray[np.int64],
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> bool:
    """Paint a board where it is the nearest; false if the camera is too close or leans, and a face must be drawn."""
    if eye.up_y < LEAST_UP:
        return False
    x, y, z = face[f.OX] + 0.5 * face[f.UX] - eye.x, face[f.OY] - eye.y, face[f.OZ] + 0.5 * face[f.UZ] - eye.z
    tall = face[f.HEIGHT]
    depth = x * eye.forward_x + y * eye.forward_y + z * eye.forward_z
    top_depth = depth + tall * eye.forward_y
    if depth < f.NEAR or top_depth < f.NEAR:
        return False
    near, top_near = 1.0 / depth, 1.0 / top_depth
    right = x * eye.right_x + y * eye.right_y + z * eye.right_z
    up = x * eye.up_x + y * eye.up_y + z * eye.up_z
    column = view.cx + view.fx * near * right
    top_column = view.cx + view.fx * top_near * (right + tall * eye.right_y)
    foot = view.cy - view.fy * near * up
    top = view.cy - view.fy * top_near * (up + tall * eye.up_y)
    if foot - top < 1e-3:
        return True
    first, end = math.ceil(max(top, 0.0) - 0.5), math.ceil(min(foot, float(view.height)) - 0.5)
    away = math.sqrt(x * x + z * z)  # seen askew, what is round is drawn wider
    ahead = (x * eye.forward_x + z * eye.forward_z) / math.sqrt(max(1.0 - eye.forward_y * eye.forward_y, 1e-6))
    half = 0.5 * face[f.LENGTH] * view.fx * min(away / max(ahead, 1e-6), 3.0)
    outline, pattern = int(face[f.OUTLINE]), int(face[f.PATTERN])
    banded = pattern == f.BANDS
    trunk = STEM_ROWS if outline == f.WHOLE_TREE else 0
    stem = face[f.STEM]
    kind = _ROUND if banded or pattern == f.TUBE else _EVEN
    if pattern == f.LEAVES:
        kind = _LEAFY if near * view.fx * max(face[f.LENGTH], tall) > 12.0 else _AFAR
        kind += _TREE_AFAR - _AFAR if outline == f.WHOLE_TREE else 0
    ramp, second = int(face[f.RAMP]) % PALETTE_SIZE, int(face[f.RAMP_ALT]) % PALETTE_SIZE
    light = NEUTRAL_SHADE + math.floor(face[f.SHADE] + 0.5)
    per_row, stretch = 1.0 / (foot - top), top_near * depth - 1.0
    wide, lean, rise = half * near, top_column - column, top_near - near
    step, shrink = (1 << _FIXED) * 0.5 / half, tall * eye.forward_y
    for row in range(first, end):  # what each row shows, before any is painted: a loop without branches
        share = (foot - row - 0.5) * per_row  # of the way up in the picture
        t = share * (1.0 + stretch * (1.0 - share))
        at = min(max(int(SIDE * t), 0), SIDE - 1)
        reach = (wide + share * rise * half) * (stem if at < trunk else _PROFILES[outline, at])
        middle = column + share * lean
        start = math.ceil(max(middle - reach, 0.0) - 0.5)
        rows[row, START] = start
        rows[row, STOP] = math.ceil(min(middle + reach, float(view.width)) - 0.5)
        per_column = step * (depth + t * shrink)
        per_column /= stem if at < trunk else 1.0
        rows[row, S] = int(np.int64((1 << (_FIXED - 1)) + (start + 0.5 - middle) * per_column))
        rows[row, S_STEP] = int(np.int64(per_column))
        rows[row, AT] = at
    for row in range(first, end):
        start, stop, at = rows[row, START], rows[row, STOP], rows[row, AT]
        if start < stop:
            colors = second if (banded and _BAND[0] <= at < _BAND[1]) or at < trunk else ramp
            here = near + (foot - row - 0.5) * per_row * rise
            _paint_row(
                table, np.uint64(colors), _SHADES[kind, at], light, np.uint32(rows[row, S]),
                np.uint32(rows[row, S_STEP]), np.float32(here), np.uint64(row * view.width + start),
                np.uint64(stop - start), pixels, nearness,
            )  # fmt: skip
    return True


@kernel
def _paint_row(
    table: Palette,
    colors: np.uint64,
    shades: NDArray[np.int8],
    light: int,
    s: np.uint32,
    step: np.uint32,
    near: np.float32,
    first: np.uint64,
    count: np.uint64,
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> None:
    """`count` pixels of a board from `first` on, `near` all along; unsigned, so that no index is taken for negative."""
    biased = near * np.float32(f.BIAS)
    for k in range(count):
        place = np.uint64(first + k)
        shade = light + shades[s >> np.uint32(_IN_TABLE)]
        color = table[np.uint64(colors + np.uint64(min(max(shade, 0), 15)))]
        before = nearness[place]
        nearer = biased > before
        pixels[place] = color if nearer else pixels[place]
        nearness[place] = near if nearer else before
        s = np.uint32(s + step)
