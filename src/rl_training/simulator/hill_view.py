"""Draws ground that is hilly, or seen by a camera that leans: a row has no single depth there.

Rays are followed at knots, KNOT pixels apart, and the ground between two knots is taken to be straight. Where the depth
jumps or ends between them, a silhouette lies there: it is found to the pixel by bisection. Rows are traced from the
ground upwards, since a ray never meets the ground nearer than the ray below it does. Tracing yields spans, which are
painted in a second pass.

    t      depth of a point: its distance along the camera's forward axis [u]; inf = sky
    shade  light's change of a texel's shade, in steps
    along  how much ground a pixel covers along the view [u]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.ground_view import FAR, Line, Surface, fixed, line_between, mip_level, shaded_run, sky_step
from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import SUN_X, SUN_Y, SUN_Z, Palette, light_steps
from rl_training.simulator.view import Eye, View

KNOT = 8  # pixels from knot to knot
JUMP = 1.8  # two depths farther apart than this factor have a silhouette between them
NEAREST = 0.2  # rays start here [u]
HILLS_END = 800.0  # as far as the Unity camera sees [u]
STRIDE = 0.04  # steps along a ray, relative to depth, where the ground is close below it
BACK = 0.98  # a ray is followed from this share of the depth below it, since a leaning camera's rows are no cuts
MOST_SHADE = 3.5  # steps by which light may change a texel's shade, so that dithering stays within 4
SLOPE_REACH = 1.5  # slopes are taken over this length [u]

# Columns of a span: ground that is T deep at column AT and T_END deep at AT_END, painted from AT to END.
ROW, AT, T, SHADE, AT_END, T_END, SHADE_END, END, ALONG = range(9)
SPAN_COLUMNS = 9

Floats = NDArray[np.float64]


class Terrain(NamedTuple):
    """The height field of one slot; rows = 0 means level ground at `level`."""

    grid: NDArray[np.float32]
    rows: int
    columns: int
    x0: float
    z0: float
    per_unit: float
    level: float
    top: float  # the highest point of the field


@kernel
def terrain_of(bank: Bank, slot: int) -> Terrain:
    cell = bank.height_origin[slot, 2]
    return Terrain(
        bank.heights[slot],
        np.int64(bank.height_shape[slot, 0]),
        np.int64(bank.height_shape[slot, 1]),
        bank.height_origin[slot, 0],
        bank.height_origin[slot, 1],
        1.0 / cell if cell > 0.0 else 0.0,
        bank.ground_y[slot],
        bank.height_top[slot],
    )


@kernel
def terrain_height(terrain: Terrain, x: float, z: float) -> float:
    """What `ground.height_at` tells, without a bank to pass along."""
    if terrain.rows == 0:
        return terrain.level
    column = min(max((x - terrain.x0) * terrain.per_unit, 0.0), terrain.columns - 1.001)
    row = min(max((z - terrain.z0) * terrain.per_unit, 0.0), terrain.rows - 1.001)
    i, j = int(row), int(column)
    a, b = column - j, row - i
    near = terrain.grid[i, j] * (1.0 - a) + terrain.grid[i, j + 1] * a
    far = terrain.grid[i + 1, j] * (1.0 - a) + terrain.grid[i + 1, j + 1] * a
    return near * (1.0 - b) + far * b


@kernel
def _meet_hills(terrain: Terrain, eye: Eye, dx: float, dy: float, dz: float, start: float) -> float:
    """Depth where a ray meets the height field, looked for from `start` on."""
    t = start
    gap = eye.y + t * dy - terrain_height(terrain, eye.x + t * dx, eye.z + t * dz)
    if gap <= 0.0:
        t, gap = NEAREST, 1e-3
    end = HILLS_END if dy <= 0.0 else min(HILLS_END, (terrain.top - eye.y) / dy)
    while t < end:
        before, gap_before = t, gap
        t += max(0.8 * gap, STRIDE * t)
        gap = eye.y + t * dy - terrain_height(terrain, eye.x + t * dx, eye.z + t * dz)
        if gap <= 0.0:
            middle = before + (t - before) * gap_before / (gap_before - gap)
            left = eye.y + middle * dy - terrain_height(terrain, eye.x + middle * dx, eye.z + middle * dz)
            if left > 0.0:
                return middle + (t - middle) * left / (left - gap)
            return before + (middle - before) * gap_before / (gap_before - left)
    return math.inf


@kernel
def meet(terrain: Terrain, eye: Eye, view: View, column: float, row: float, start: float) -> float:
    """Depth of the ground behind a picture point, inf for the sky."""
    across = (column - view.cx) / view.fx
    down = (row - view.cy) / view.fy
    dy = eye.forward_y + across * eye.right_y - down * eye.up_y
    if terrain.rows == 0:
        t = (terrain.level - eye.y) / min(dy, -1e-9)
        return t if t < FAR else math.inf
    dx = eye.forward_x + across * eye.right_x - down * eye.up_x
    dz = eye.forward_z + across * eye.right_z - down * eye.up_z
    return _meet_hills(terrain, eye, dx, dy, dz, start)


@kernel
def _knot_shade(terrain: Terrain, eye: Eye, view: View, light: Floats, column: float, row: float, t: float) -> float:
    """Light on the ground that a knot's ray meets."""
    across = (column - view.cx) / view.fx
    down = (row - view.cy) / view.fy
    x = eye.x + t * (eye.forward_x + across * eye.right_x - down * eye.up_x)
    z = eye.z + t * (eye.forward_z + across * eye.right_z - down * eye.up_z)
    here = terrain_height(terrain, x, z)
    slope_x = (terrain_height(terrain, x + SLOPE_REACH, z) - here) / SLOPE_REACH
    slope_z = (terrain_height(terrain, x, z + SLOPE_REACH) - here) / SLOPE_REACH
    facing = light[SUN_Y] - slope_x * light[SUN_X] - slope_z * light[SUN_Z]
    facing /= math.sqrt(1.0 + slope_x * slope_x + slope_z * slope_z)
    return min(max(light_steps(light, facing), -MOST_SHADE), MOST_SHADE)


@kernel
def _alike(t: float, other: float) -> bool:
    """Whether two neighbouring rays meet the same piece of ground."""
    if math.isinf(t) or math.isinf(other):
        return math.isinf(t) and math.isinf(other)
    return t < JUMP * other and other < JUMP * t


@kernel
def _belongs_left(t: float, left: float, right: float) -> bool:
    """Whether depth t belongs to what is seen on the left."""
    if math.isinf(left) or math.isinf(right):
        return math.isinf(t) == math.isinf(left)
    return (t * t < left * right) == (left < right)


@kernel
def _put(
    span: Floats,
    row: int,
    at: int,
    t: float,
    shade: float,
    at_end: int,
    t_end: float,
    shade_end: float,
    end: int,
    along: float,
) -> None:
    """Write one span; it is painted from `at` to `end`."""
    span[ROW], span[AT], span[T], span[SHADE] = row, at, t, shade
    span[AT_END], span[T_END], span[SHADE_END] = at_end, t_end, shade_end
    span[END] = end
    span[ALONG] = max(along, 0.0)


@kernel
def _trace_knots(terrain: Terrain, eye: Eye, view: View, light: Floats, row: int, knots: Floats) -> None:
    """Depths and light at a row's knots, from those of the row before; these are kept as the third line of `knots`."""
    cells = (view.width + KNOT - 1) // KNOT
    for knot in range(cells + 1):
        before = knots[0, knot]
        knots[2, knot] = before
        if math.isinf(before):
            continue
        column = min(knot * KNOT, view.width) + 0.5
        t = meet(terrain, eye, view, column, row + 0.5, max(BACK * before, NEAREST))
        knots[0, knot] = t
        if terrain.rows > 0 and t < FAR and (row & 1 == 0 or t > 1.2 * before):
            knots[1, knot] = _knot_shade(terrain, eye, view, light, column, row + 0.5, t)


@kernel
def _find_silhouette(
    terrain: Terrain, eye: Eye, view: View, row: int, at: int, t: float, at_end: int, t_end: float, start: float
) -> tuple[int, float, float]:
    """First column that belongs to the right knot, and the depths on either side of it."""
    low, high = at, at_end
    low_t, high_t = t, t_end
    while high - low > 1:
        middle = (low + high) // 2
        depth = meet(terrain, eye, view, middle + 0.5, row + 0.5, start)
        if math.isinf(depth) and t < FAR and t_end < FAR:
            depth = max(t, t_end)  # a gap of sky narrower than a cell is closed
        if _belongs_left(depth, t, t_end):
            low, low_t = middle, depth
        else:
            high, high_t = middle, depth
    return high, low_t, high_t


@kernel
def trace(terrain: Terrain, eye: Eye, view: View, light: Floats, knots: Floats, spans: Floats) -> int:
    """Fill `spans` with the whole picture and return their number; `knots` (3, knots of a row) is scratch space."""
    knots[0, :] = NEAREST
    knots[1, :] = 0.0
    count = 0
    for k in range(view.height):
        row = view.height - 1 - k if eye.up_y >= 0.0 else k
        _trace_knots(terrain, eye, view, light, row, knots)
        for cell in range((view.width + KNOT - 1) // KNOT):
            at, at_end = cell * KNOT, min(cell * KNOT + KNOT, view.width)
            t, t_end, shade, shade_end = knots[0, cell], knots[0, cell + 1], knots[1, cell], knots[1, cell + 1]
            before, before_end = knots[2, cell], knots[2, cell + 1]
            along = t - before if k > 0 and t < FAR else 0.0
            if _alike(t, t_end):
                _put(spans[count], row, at, t, shade, at_end, t_end, shade_end, at_end, along)
                count += 1
                continue
            start = max(BACK * min(before, before_end), NEAREST)
            split, left_t, right_t = _find_silhouette(terrain, eye, view, row, at, t, at_end, t_end, start)
            _put(spans[count], row, at, t, shade, split - 1, left_t, shade, split, along)
            along = t_end - before_end if k > 0 and t_end < FAR else 0.0
            _put(spans[count + 1], row, split, right_t, shade_end, at_end, t_end, shade_end, at_end, along)
            count += 2
    return count


@kernel
def paint(
    spans: Floats,
    surface: Surface,
    eye: Eye,
    view: View,
    palette: Palette,
    pixels: NDArray[np.uint32],
    nearness: NDArray[np.float32],
) -> None:
    """Paint spans and note how near each pixel is (1 / t, 0 for the sky)."""
    for k in range(len(spans)):
        span = spans[k]
        row = int(span[ROW])
        first, last = row * view.width + int(span[AT]), row * view.width + int(span[END])
        near = nearness[first:last]
        target = pixels[first:last]
        down = (row + 0.5 - view.cy) / view.fy
        left = (span[AT] + 0.5 - view.cx) / view.fx
        if math.isinf(span[T]):
            slope = eye.forward_y + left * eye.right_y - down * eye.up_y
            for place in range(len(target)):
                target[place] = palette[sky_step(slope)]
                near[place] = 0.0
                slope += eye.right_y / view.fx
            continue
        line = _span_line(span, eye, left, (span[AT_END] + 0.5 - view.cx) / view.fx, down, surface)
        level = mip_level(max(span[T], span[T_END]) / view.fx, span[ALONG], surface.per_unit)
        share = 1.0 / max(span[AT_END] - span[AT], 1.0)
        shade, shade_step = fixed(span[SHADE] + 0.25), fixed((span[SHADE_END] - span[SHADE]) * share)
        shaded_run(surface, line, level, shade, shade_step, first + row & 1, palette, target)
        nearest, step = 1.0 / span[T], (1.0 / span[T_END] - 1.0 / span[T]) * share
        for place in range(len(near)):
            near[place] = nearest + place * step


@kernel
def _span_line(span: Floats, eye: Eye, left: float, right: float, down: float, surface: Surface) -> Line:
    """Texture coordinates of a span whose ends look `left` and `right` across and `down`."""
    t, t_end = span[T], span[T_END]
    x = t * (eye.forward_x + left * eye.right_x - down * eye.up_x)
    z = t * (eye.forward_z + left * eye.right_z - down * eye.up_z)
    x_end = t_end * (eye.forward_x + right * eye.right_x - down * eye.up_x)
    z_end = t_end * (eye.forward_z + right * eye.right_z - down * eye.up_z)
    count = max(span[AT_END] - span[AT], 1.0)
    return line_between(surface, eye.x + x, eye.z + z, eye.x + x_end, eye.z + z_end, count)
