"""Draws flat faces: the parts of walls, solids and cars, and the shadows they cast.

A face is an origin O and two edges U, V in the world; a point of it is O + s·U + t·V, and its outline is a polygon in
(s, t) within the unit square. Its shade varies by a pattern in (s, t): bands of a cone, straw, panels of a wall. Faces
hide each other, and are hidden by hills, by nearness (1 / depth).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import NEUTRAL_SHADE, PALETTE_SIZE, Palette
from rl_training.simulator.view import Eye, View

Floats = NDArray[np.float64]

# Columns of a face.
(
    SHADOW,  # 1: darkens what it covers and is painted before all else
    OX, OY, OZ, UX, UY, UZ, VX, VY, VZ,
    OUTLINE,
    PATTERN,
    RAMP,  # first of 16 shades in the palette, or PALETTE_SIZE + first in `ramps`
    RAMP_ALT,  # colour of a pattern's second parts
    SHADE,  # light's change of the shade
    LENGTH,  # of U and V [u], for patterns
    HEIGHT,
) = range(17)  # fmt: skip
FACE_COLUMNS = 17
MOST_FACES = 1200  # a frame shows no more than the first this many
MOST_RAMPS = 64 * 48

# Outlines, as corners (s, t) in order.
SQUARE, SPIKE, ROUND_OFF, CROWN = range(4)
_ARC = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False) + np.pi / 8
_CORNERS: tuple[list[tuple[float, float]], ...] = (
    [(0, 0), (1, 0), (1, 1), (0, 1)],
    [(0, 0), (1, 0), (0.58, 1), (0.42, 1)],
    [(0.5 + 0.5 * math.cos(arc), 0.5 + 0.5 * math.sin(arc)) for arc in _ARC],
    [(0.36, 0), (0.64, 0), (0.95, 0.2), (1, 0.45), (0.72, 0.85), (0.5, 1), (0.28, 0.85), (0, 0.45), (0.05, 0.2)],
)
_OUTLINES = np.zeros((len(_CORNERS), 9, 2))
for _number, _corners in enumerate(_CORNERS):
    _OUTLINES[_number, : len(_corners)] = _corners
_OUTLINE_SIZES = np.array([len(corners) for corners in _CORNERS])

PLAIN, TUBE, BANDS, LEAVES, STRAW, PANELS = range(6)

NEAR = 0.12  # faces are cut off this far before the camera [u]
_BIAS = 1.01  # a face this much farther than the ground is still in front of it: ground depth is approximate
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


@kernel
def _pattern(pattern: int, s: float, t: float, length: float, height: float, fine: bool) -> tuple[int, bool]:
    """(change of shade, whether the second colour) at a point; without `fine` nothing smaller than a pixel is drawn."""
    if pattern in (TUBE, BANDS):
        away = s - 0.38
        return int(1.5 - 14.0 * away * away), pattern == BANDS and 0.36 < t < 0.62
    if pattern == LEAVES:
        lit = 4.5 * (t - 0.45) - 3.0 * (s - 0.4)
        return math.floor(lit + (1.1 * _speckle(int(9.0 * s), int(11.0 * t)) - 1.6 if fine else 0.0)), False
    if pattern == STRAW:
        if abs(t - 0.28) < 0.045 or abs(t - 0.72) < 0.045:
            return -3, False
        return (_speckle(int(2.5 * s * length), int(9.0 * t * height)) - 2 if fine else -1), False
    if pattern == PANELS:
        if t > 0.88:
            return 1, True
        seam = s * length * 0.5
        return (-2 if fine and seam - math.floor(seam) < 0.05 else 0) - int(2.0 * (1.0 - t)), False
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
def _columns(corners: Floats, count: int, y: float, width: int) -> tuple[int, int]:
    """First and end of the columns whose centres lie inside a convex outline at height y of the picture."""
    low, high = math.inf, -math.inf
    last = count - 1
    for k in range(count):
        y0, y1 = corners[last, 1], corners[k, 1]
        if (y0 <= y) != (y1 <= y):
            x = corners[last, 0] + (y - y0) * (corners[k, 0] - corners[last, 0]) / (y1 - y0)
            low, high = min(low, x), max(high, x)
        last = k
    if low > high:
        return 0, 0
    low, high = min(max(low, 0.0), width + 1.0), min(max(high, 0.0), float(width))
    return math.ceil(low - 0.5), math.ceil(high - 0.5)


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
def _fill(
    face: Floats,
    eye: Eye,
    view: View,
    table: Palette,
    corners: Floats,
    count: int,
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
    low, high = math.inf, -math.inf
    for k in range(count):
        low, high = min(low, corners[k, 1]), max(high, corners[k, 1])
    low, high = min(max(low, 0.0), view.height + 1.0), min(max(high, 0.0), float(view.height))
    step = 1.0 / view.fx
    near_step = (nx * eye.right_x + ny * eye.right_y + nz * eye.right_z) * inverse * step
    s_step = (ax * eye.right_x + ay * eye.right_y + az * eye.right_z) * step
    t_step = (bx * eye.right_x + by * eye.right_y + bz * eye.right_z) * step
    ramp = int(face[RAMP]) % PALETTE_SIZE
    change = int(face[RAMP_ALT]) % PALETTE_SIZE - ramp
    pattern, light = int(face[PATTERN]), NEUTRAL_SHADE + math.floor(face[SHADE] + 0.5)
    cell = max(face[LENGTH], face[HEIGHT]) if pattern == LEAVES else 2.0
    for row in range(math.ceil(low - 0.5), math.ceil(high - 0.5)):
        start, end = _columns(corners, count, row + 0.5, view.width)
        across, down = (start + 0.5 - view.cx) * step, (row + 0.5 - view.cy) / view.fy
        dx = eye.forward_x + across * eye.right_x - down * eye.up_x
        dy = eye.forward_y + across * eye.right_y - down * eye.up_y
        dz = eye.forward_z + across * eye.right_z - down * eye.up_z
        near = (nx * dx + ny * dy + nz * dz) * inverse
        s_ray, t_ray = ax * dx + ay * dy + az * dz, bx * dx + by * dy + bz * dz
        fine = near * view.fx * cell > 12.0
        for place in range(row * view.width + start, row * view.width + end):
            if near * _BIAS > nearness[place]:
                depth = 1.0 / near
                more, second = _pattern(
                    pattern, depth * s_ray - s0, depth * t_ray - t0, face[LENGTH], face[HEIGHT], fine
                )
                pixels[place] = table[ramp + (change if second else 0) + min(max(light + more, 0), 15)]
                nearness[place] = near
            near += near_step
            s_ray += s_step
            t_ray += t_step


@kernel
def _darken(
    face: Floats,
    eye: Eye,
    view: View,
    corners: Floats,
    count: int,
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> None:
    """Paint a projected shadow."""
    nx, ny, nz, _, _, _, _, _, _, distance = _across(face, eye)
    if abs(distance) < 1e-9:
        return
    low, high = math.inf, -math.inf
    for k in range(count):
        low, high = min(low, corners[k, 1]), max(high, corners[k, 1])
    low, high = min(max(low, 0.0), view.height + 1.0), min(max(high, 0.0), float(view.height))
    for row in range(math.ceil(low - 0.5), math.ceil(high - 0.5)):
        start, end = _columns(corners, count, row + 0.5, view.width)
        down = (row + 0.5 - view.cy) / view.fy
        for column in range(start, end):
            across = (column + 0.5 - view.cx) / view.fx
            dx = eye.forward_x + across * eye.right_x - down * eye.up_x
            dy = eye.forward_y + across * eye.right_y - down * eye.up_y
            dz = eye.forward_z + across * eye.right_z - down * eye.up_z
            place = row * view.width + column
            if (nx * dx + ny * dy + nz * dz) / distance * _SHADOW_BIAS > nearness[place]:
                pixel = pixels[place]
                pixels[place] = ((pixel >> 1) & _HALF_MASK) + ((pixel >> 3) & _EIGHTH_MASK)


@kernel
def paint_faces(
    faces: Floats,
    eye: Eye,
    view: View,
    palette: Palette,
    ramps: Palette,
    corners: Floats,
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> None:
    """Paint all shadows, then all other faces; `corners` is scratch space."""
    for shadows in range(1, -1, -1):
        for k in range(len(faces)):
            face = faces[k]
            if face[SHADOW] != shadows:
                continue
            count = _project(face, eye, view, corners)
            if count < 3:
                continue
            if shadows:
                _darken(face, eye, view, corners, count, pixels, nearness)
            else:
                table = ramps if face[RAMP] >= PALETTE_SIZE else palette
                _fill(face, eye, view, table, corners, count, pixels, nearness)
