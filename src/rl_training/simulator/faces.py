"""Draws flat faces: the parts of walls, solids and cars, and the shadows they cast.

A face is an origin O and two edges U, V in the world; a point of it is O + s·U + t·V, and its outline is a polygon in
(s, t) about the unit square. Its shade varies by a pattern in (s, t): bands of a cone, straw, panels of a wall. Faces
hide each other, and are hidden by hills, by nearness (1 / depth).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import NEUTRAL_SHADE, PALETTE_SIZE, Palette
from rl_training.simulator.view import Eye, View

Floats = NDArray[np.float64]

# Columns of a face.
(
    KIND,  # FACE, SHADOW or BOARD
    OX, OY, OZ, UX, UY, UZ, VX, VY, VZ,
    OUTLINE,
    PATTERN,
    RAMP,  # first of 16 shades in the palette, or PALETTE_SIZE + first in `ramps`
    RAMP_ALT,  # colour of a pattern's second parts
    SHADE,  # light's change of the shade
    LENGTH,  # of U and V [u], for patterns
    HEIGHT,
    STEM,  # how wide a tree's trunk is beside its crown
) = range(18)  # fmt: skip
FACE_COLUMNS = 18
FACE, SHADOW, BOARD = range(3)  # a shadow darkens what it covers; a board stands upright and turns to the camera
MOST_FACES = 1200  # a frame shows no more than the first this many
MOST_RAMPS = 64 * 48

# Outlines, as corners (s, t) in order.
SQUARE, SPIKE, ROUND_OFF, CROWN, FAR_ROUND, FAR_CROWN, WHOLE_TREE = range(7)  # the last is for boards only
_ARC = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False) + np.pi / 8
_CORNERS: tuple[list[tuple[float, float]], ...] = (
    [(0, 0), (1, 0), (1, 1), (0, 1)],
    [(0, 0), (1, 0), (0.58, 1), (0.42, 1)],
    [(0.5 + 0.5 * math.cos(arc), 0.5 + 0.5 * math.sin(arc)) for arc in _ARC],
    [(0.36, 0), (0.64, 0), (0.95, 0.2), (1, 0.45), (0.72, 0.85), (0.5, 1), (0.28, 0.85), (0, 0.45), (0.05, 0.2)],
    [(0.5, -0.1), (1.1, 0.5), (0.5, 1.1), (-0.1, 0.5)],
    [(0.2, 0), (0.8, 0), (1.03, 0.36), (0.5, 1.1), (-0.03, 0.36)],
)
_OUTLINES = np.zeros((len(_CORNERS), 9, 2))
for _number, _corners in enumerate(_CORNERS):
    _OUTLINES[_number, : len(_corners)] = _corners
_OUTLINE_SIZES = np.array([len(corners) for corners in _CORNERS])

PLAIN, TUBE, BANDS, LEAVES, STRAW, PANELS = range(6)

FEW = 5.0  # something round that is narrower than this is drawn with fewer corners [pixels]
NEAR = 0.12  # faces are cut off this far before the camera [u]
BIAS = 1.01  # a face this much farther than the ground is still in front of it: ground depth is approximate
_SHADOW_BIAS = 1.06
_HALF_MASK = np.uint32(0x7F7F7F7F)
_EIGHTH_MASK = np.uint32(0x1F1F1F1F)


@kernel
def _speckle(i: int, j: int) -> int:
    """0..3, at random by cell."""
    mixed = np.uint32(i) * np.uint32(0x9E3779B1) ^ np.uint32(j) * np.uint32(0x85EBCA77)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x2C1B3C6D)
    return int(np.int64((mixed >> np.uint32(13)) & np.uint32(3)))


def _leaves() -> NDArray[np.int8]:
    """(2, 44, 45) changes of shade on a crown, by t and s: lit from one side, and in [1] with leaves."""
    s, t = (np.arange(45) + 0.5) / 45.0, (np.arange(44) + 0.5) / 44.0
    lit = 4.5 * (t[:, None] - 0.45) - 3.0 * (s - 0.4)
    speckle: Callable[[int, int], int] = _speckle.py_func  # type: ignore[attr-defined]  # what numba compiled
    with np.errstate(over="ignore"):  # the hash is meant to wrap
        leaves = [[speckle(i, j) for i in range(9)] for j in range(11)]
    spots = np.repeat(np.repeat(np.array(leaves), 4, axis=0), 5, axis=1)
    changes: NDArray[np.int8] = np.floor(np.stack((lit, lit + 1.1 * spots - 1.6))).astype(np.int8)
    return changes


LEAF_SHADES = _leaves()


@kernel
def _pattern(pattern: int, s: float, t: float, length: float, height: float, fine: bool) -> tuple[int, bool]:
    """(change of shade, whether the second colour) at a point; without `fine` nothing smaller than a pixel is drawn."""
    if pattern in (TUBE, BANDS):
        away = s - 0.38
        return int(1.5 - 14.0 * away * away), pattern == BANDS and 0.36 < t < 0.62
    if pattern == LEAVES:
        i, j = min(max(int(45.0 * s), 0), 44), min(max(int(44.0 * t), 0), 43)
        return int(np.int64(LEAF_SHADES[1 if fine else 0, j, i])), False
    if pattern == STRAW:
        if abs(t - 0.28) < 0.045 or abs(t - 0.72) < 0.045:
            return -3, False
        return (_speckle(int(2.5 * s * length), int(9.0 * t * height)) - 2 if fine else -1), False
    return 0, False


@kernel
def _project(face: Floats, eye: Eye, view: View, corners: Floats) -> int:
    """The outline on the picture, cut off before the camera, as rows (x, y) of `corners`; returns their number."""
    x, y, z = face[OX] - eye.x, face[OY] - eye.y, face[OZ] - eye.z
    right = x * eye.right_x + y * eye.right_y + z * eye.right_z
    up = x * eye.up_x + y * eye.up_y + z * eye.up_z
    depth = x * eye.forward_x + y * eye.forward_y + z * eye.forward_z
    right_s = face[UX] * eye.right_x + face[UY] * eye.right_y + face[UZ] * eye.right_z
    up_s = face[UX] * eye.up_x + face[UY] * eye.up_y + face[UZ] * eye.up_z
    depth_s = face[UX] * eye.forward_x + face[UY] * eye.forward_y + face[UZ] * eye.forward_z
    right_t = face[VX] * eye.right_x + face[VY] * eye.right_y + face[VZ] * eye.right_z
    up_t = face[VX] * eye.up_x + face[VY] * eye.up_y + face[VZ] * eye.up_z
    depth_t = face[VX] * eye.forward_x + face[VY] * eye.forward_y + face[VZ] * eye.forward_z
    outline = int(face[OUTLINE])
    if outline >= ROUND_OFF and face[LENGTH] * view.fx < FEW * depth:
        outline += FAR_ROUND - ROUND_OFF
    size = _OUTLINE_SIZES[outline]
    count = 0
    last_s, last_t = _OUTLINES[outline, size - 1]
    last_depth = depth + last_s * depth_s + last_t * depth_t
    for k in range(size):
        s, t = _OUTLINES[outline, k]
        this_depth = depth + s * depth_s + t * depth_t
        if (this_depth < NEAR) != (last_depth < NEAR):
            share = (NEAR - last_depth) / (this_depth - last_depth)
            cut_s, cut_t = last_s + share * (s - last_s), last_t + share * (t - last_t)
            corners[count, 0] = view.cx + view.fx * (right + cut_s * right_s + cut_t * right_t) / NEAR
            corners[count, 1] = view.cy - view.fy * (up + cut_s * up_s + cut_t * up_t) / NEAR
            count += 1
        if this_depth >= NEAR:
            corners[count, 0] = view.cx + view.fx * (right + s * right_s + t * right_t) / this_depth
            corners[count, 1] = view.cy - view.fy * (up + s * up_s + t * up_t) / this_depth
            count += 1
        last_s, last_t, last_depth = s, t, this_depth
    return count


@kernel
def _outline_rows(corners: Floats, count: int, view: View, columns: NDArray[np.int64]) -> tuple[int, int]:
    """Rows whose centres a convex outline covers; `columns` gets the first and the end column of each."""
    top, bottom = math.inf, -math.inf
    left, right = math.inf, -math.inf
    for k in range(count):
        top, bottom = min(top, corners[k, 1]), max(bottom, corners[k, 1])
        left, right = min(left, corners[k, 0]), max(right, corners[k, 0])
    if bottom <= 0.0 or top >= view.height or right <= 0.0 or left >= view.width:
        return 0, 0
    first, end = math.ceil(max(top, 0.0) - 0.5), math.ceil(min(bottom, view.height) - 0.5)
    for row in range(first, end):
        columns[row, 0], columns[row, 1] = view.width, 0
    last_x, last_y = corners[count - 1, 0], corners[count - 1, 1]
    for k in range(count):
        x, y = corners[k, 0], corners[k, 1]
        low, high = max(min(y, last_y), 0.0), min(max(y, last_y), float(view.height))
        slope = (x - last_x) / (y - last_y) if y != last_y else 0.0
        for row in range(math.ceil(low - 0.5), math.ceil(high - 0.5)):
            crossing = min(max(x + (row + 0.5 - y) * slope, 0.0), float(view.width))
            column = math.ceil(crossing - 0.5)
            columns[row, 0] = min(columns[row, 0], column)
            columns[row, 1] = max(columns[row, 1], column)
        last_x, last_y = x, y
    return first, end


@kernel
def _across(face: Floats, eye: Eye) -> tuple[float, float, float, float, float, float, float, float, float, float]:
    """Normal N, and vectors A, B with A·(O + s·U + t·V - O) = s and B likewise t; then N·(O - eye). World axes."""
    ux, uy, uz, vx, vy, vz = face[UX], face[UY], face[UZ], face[VX], face[VY], face[VZ]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    ax, ay, az = vy * nz - vz * ny, vz * nx - vx * nz, vx * ny - vy * nx
    bx, by, bz = ny * uz - nz * uy, nz * ux - nx * uz, nx * uy - ny * ux
    over = 1.0 / max(nx * nx + ny * ny + nz * nz, 1e-12)
    distance = nx * (face[OX] - eye.x) + ny * (face[OY] - eye.y) + nz * (face[OZ] - eye.z)
    return nx, ny, nz, ax * over, ay * over, az * over, bx * over, by * over, bz * over, distance


@kernel
def _on_picture(eye: Eye, view: View, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The dot product of a vector with the ray of a pixel: of the first pixel, its step a column, its step a row."""
    column = (x * eye.right_x + y * eye.right_y + z * eye.right_z) / view.fx
    row = -(x * eye.up_x + y * eye.up_y + z * eye.up_z) / view.fy
    ahead = x * eye.forward_x + y * eye.forward_y + z * eye.forward_z
    return ahead + (0.5 - view.cx) * column + (0.5 - view.cy) * row, column, row


@kernel
def _fill(
    face: Floats,
    eye: Eye,
    view: View,
    table: Palette,
    rows: tuple[int, int],
    columns: NDArray[np.int64],
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> None:
    """Paint a projected face where it is the nearest."""
    nx, ny, nz, ax, ay, az, bx, by, bz, distance = _across(face, eye)
    if abs(distance) < 1e-9:
        return  # seen from its very edge
    inverse = 1.0 / distance
    x, y, z = face[OX] - eye.x, face[OY] - eye.y, face[OZ] - eye.z
    s0, t0 = ax * x + ay * y + az * z, bx * x + by * y + bz * z
    near_0, near_step, near_down = _on_picture(eye, view, nx * inverse, ny * inverse, nz * inverse)
    s_0, s_step, s_down = _on_picture(eye, view, ax, ay, az)
    t_0, t_step, t_down = _on_picture(eye, view, bx, by, bz)
    ramp = int(face[RAMP]) % PALETTE_SIZE
    change = int(face[RAMP_ALT]) % PALETTE_SIZE - ramp
    pattern, light = int(face[PATTERN]), NEUTRAL_SHADE + math.floor(face[SHADE] + 0.5)
    cell = max(face[LENGTH], face[HEIGHT]) if pattern == LEAVES else 2.0
    for row in range(rows[0], rows[1]):
        start, end = columns[row, 0], columns[row, 1]
        near = near_0 + start * near_step + row * near_down
        here, before = (
            pixels[row * view.width + start : row * view.width + end],
            nearness[row * view.width + start : row * view.width + end],
        )
        if pattern == PLAIN:
            _even_row(table[ramp + min(max(light, 0), 15)], near, near_step, here, before)
            continue
        s_ray, t_ray = s_0 + start * s_step + row * s_down, t_0 + start * t_step + row * t_down
        fine = near * view.fx * cell > 12.0
        if pattern == PANELS:
            rays = near, near_step, s_ray, s_step, t_ray, t_step
            _panel_row(table, ramp, change, light, rays, (s0, t0), 0.5 * face[LENGTH], fine, here, before)
            continue
        for k in range(len(here)):
            if near * BIAS > before[k]:
                depth = 1.0 / near
                more, second = _pattern(
                    pattern, depth * s_ray - s0, depth * t_ray - t0, face[LENGTH], face[HEIGHT], fine
                )
                here[k] = table[ramp + (change if second else 0) + min(max(light + more, 0), 15)]
                before[k] = near
            near += near_step
            s_ray += s_step
            t_ray += t_step


@kernel
def _even_row(
    pixel: np.uint32, near: float, near_step: float, pixels: NDArray[np.uint32], nearness: NDArray[np.float32]
) -> None:
    """A row of one colour, where it is the nearest."""
    first, step, biased = np.float32(near), np.float32(near_step), np.float32(BIAS)
    for k in range(len(pixels)):
        here, before = first + np.float32(np.int32(k)) * step, nearness[k]
        nearer = here * biased > before
        pixels[k] = pixel if nearer else pixels[k]
        nearness[k] = here if nearer else before


@kernel
def _panel_row(
    table: Palette,
    ramp: int,
    change: int,
    light: int,
    rays: tuple[float, float, float, float, float, float],
    origin: tuple[float, float],
    panels: float,
    fine: bool,
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> None:
    """A row of a wall, where it is the nearest: a rim, two shades below it, and seams between its panels.

    Five colours, chosen by comparing: several pixels a machine instruction.
    """
    rim = table[ramp + change + min(max(light + 1, 0), 15)]
    high, low = table[ramp + min(max(light, 0), 15)], table[ramp + min(max(light - 1, 0), 15)]
    high_seam, low_seam = table[ramp + min(max(light - 2, 0), 15)], table[ramp + min(max(light - 3, 0), 15)]
    near, near_step = np.float32(rays[0]), np.float32(rays[1])
    s, s_step = np.float32(rays[2] * panels), np.float32(rays[3] * panels)
    t, t_step = np.float32(rays[4]), np.float32(rays[5])
    s0, t0 = np.float32(origin[0] * panels), np.float32(origin[1])
    seam = np.float32(0.05 if fine else -1.0)
    one, biased, half, rim_at = np.float32(1.0), np.float32(BIAS), np.float32(0.5), np.float32(0.88)
    for k in range(len(pixels)):
        along = np.float32(np.int32(k))
        here = near + along * near_step
        depth = one / here
        across, up = depth * (s + along * s_step) - s0, depth * (t + along * t_step) - t0
        upper = up > half
        plain, seamed = high if upper else low, high_seam if upper else low_seam
        color = seamed if across - np.floor(across) < seam else plain
        color = rim if up > rim_at else color
        old, before = pixels[k], nearness[k]
        nearer = here * biased > before
        pixels[k] = color if nearer else old
        nearness[k] = here if nearer else before


@kernel
def _darken(
    face: Floats,
    eye: Eye,
    view: View,
    rows: tuple[int, int],
    columns: NDArray[np.int64],
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
    on_level: bool,
) -> None:
    """Paint a projected shadow; nothing hides it on level ground."""
    nx, ny, nz, _, _, _, _, _, _, distance = _across(face, eye)
    if abs(distance) < 1e-9:
        return
    inverse = _SHADOW_BIAS / distance
    near_0, near_column, near_down = _on_picture(eye, view, nx * inverse, ny * inverse, nz * inverse)
    near_step = np.float32(near_column)
    for row in range(rows[0], rows[1]):
        start, end = columns[row, 0], columns[row, 1]
        near = np.float32(near_0 + start * near_column + row * near_down)
        first = row * view.width
        here, before = pixels[first + start : first + end], nearness[first + start : first + end]
        if on_level:
            for k in range(len(here)):
                here[k] = ((here[k] >> 1) & _HALF_MASK) + ((here[k] >> 3) & _EIGHTH_MASK)
            continue
        for k in range(len(here)):
            pixel = here[k]
            dark = ((pixel >> 1) & _HALF_MASK) + ((pixel >> 3) & _EIGHTH_MASK)
            here[k] = dark if near + np.float32(np.int32(k)) * near_step > before[k] else pixel


@kernel
def paint_face(
    face: Floats,
    eye: Eye,
    view: View,
    table: Palette,
    corners: Floats,
    columns: NDArray[np.int64],
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
    on_level: bool,
) -> None:
    """Paint one face or shadow; `corners` and `columns` are scratch space."""
    count = _project(face, eye, view, corners)
    if count < 3:
        return
    rows = _outline_rows(corners, count, view, columns)
    if rows[0] >= rows[1]:
        return
    if face[KIND] == SHADOW:
        _darken(face, eye, view, rows, columns, pixels, nearness, on_level)
    else:
        _fill(face, eye, view, table, rows, columns, pixels, nearness)
