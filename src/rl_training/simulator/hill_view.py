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
STRIDE = 0.06  # steps along a ray, relative to depth, where the ground is close below it
BACK = 0.98  # a ray is followed from this share of the depth below it, since a leaning camera's rows are no cuts
PLANE = 0.12  # the ground is a plane for this share of a cell along the view: rows so close need no look at the field
NARROW = 0.8  # every second knot is left out where two spans are narrower than this share of a cell
MOST_SHADE = 3.5  # steps by which light may change a texel's shade, so that dithering stays within 4

# Columns of a span: ground that is T deep at column AT and T_END deep at AT_END, painted from AT to END.
ROW, AT, T, SHADE, AT_END, T_END, SHADE_END, END, ALONG = range(9)
SPAN_COLUMNS = 9

# Rows of the knots' array: depth here and in the row before; slopes and light of the ground, the depth where they were
# looked up, how high the eye stands over that piece of ground continued as a plane; 1 = straight between neighbours.
DEPTH, BEFORE, SLOPE_X, SLOPE_Z, LIGHT, LOOKED, OVER, STRAIGHT = range(8)
KNOT_ROWS = 8

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
        int(np.int64(bank.height_shape[slot, 0])),
        int(np.int64(bank.height_shape[slot, 1])),
        bank.height_origin[slot, 0],
        bank.height_origin[slot, 1],
        1.0 / cell if cell > 0.0 else 0.0,
        bank.ground_y[slot],
        bank.height_top[slot],
    )


@kernel
def terrain_sample(terrain: Terrain, x: float, z: float) -> tuple[float, float, float]:
    """Height and slopes (dy/dx, dy/dz); the height is what `ground.height_at` tells, without a bank to pass along."""
    if terrain.rows == 0:
        return terrain.level, 0.0, 0.0
    column = min(max((x - terrain.x0) * terrain.per_unit, 0.0), terrain.columns - 1.001)
    row = min(max((z - terrain.z0) * terrain.per_unit, 0.0), terrain.rows - 1.001)
    i, j = int(row), int(column)
    a, b = column - j, row - i
    corner, right = float(terrain.grid[i, j]), float(terrain.grid[i, j + 1])
    ahead, across = float(terrain.grid[i + 1, j]), float(terrain.grid[i + 1, j + 1])
    near, far = corner + a * (right - corner), ahead + a * (across - ahead)
    along_x = right - corner + b * (across - ahead - right + corner)
    return near + b * (far - near), along_x * terrain.per_unit, (far - near) * terrain.per_unit


@kernel
def terrain_height(terrain: Terrain, x: float, z: float) -> float:
    """Height of the ground."""
    height, _, _ = terrain_sample(terrain, x, z)
    return height


@kernel
def _leaves_at(terrain: Terrain, eye: Eye, dx: float, dz: float) -> float:
    """Depth at which a ray leaves the height field, where the ground goes on as level as it is at the edge."""
    end_x = terrain.x0 + (terrain.columns - 1) / terrain.per_unit
    end_z = terrain.z0 + (terrain.rows - 1) / terrain.per_unit
    out_x = ((end_x if dx > 0.0 else terrain.x0) - eye.x) / dx if abs(dx) > 1e-9 else HILLS_END
    out_z = ((end_z if dz > 0.0 else terrain.z0) - eye.z) / dz if abs(dz) > 1e-9 else HILLS_END
    return max(min(out_x, out_z, HILLS_END), 0.0)


@kernel
def _march(terrain: Terrain, eye: Eye, dx: float, dy: float, dz: float, start: float) -> float:
    """Depth where a ray meets the height field, looked for from `start` on; inf for the sky."""
    leaves = _leaves_at(terrain, eye, dx, dz)
    end = leaves if dy <= 0.0 else min(leaves, (terrain.top - eye.y) / dy)
    t = start
    gap = eye.y + t * dy - terrain_height(terrain, eye.x + t * dx, eye.z + t * dz)
    if gap <= 0.0:
        t, gap = NEAREST, 1e-3
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
    if dy > -1e-6 or end < leaves:
        return math.inf
    edge = terrain_height(terrain, eye.x + leaves * dx, eye.z + leaves * dz)
    t = max((edge - eye.y) / dy, leaves)
    return t if t < FAR else math.inf


@kernel
def meet(terrain: Terrain, eye: Eye, dx: float, dy: float, dz: float, start: float) -> float:
    """Depth of the ground along a ray, inf for the sky."""
    if terrain.rows == 0:
        t = (terrain.level - eye.y) / min(dy, -1e-9)
        return t if t < FAR else math.inf
    return _march(terrain, eye, dx, dy, dz, start)


@kernel
def _ray(eye: Eye, view: View, column: float, row: float) -> tuple[float, float, float]:
    """Direction of a picture point, 1 along the forward axis."""
    across = (column - view.cx) / view.fx
    down = (row - view.cy) / view.fy
    return (
        eye.forward_x + across * eye.right_x - down * eye.up_x,
        eye.forward_y + across * eye.right_y - down * eye.up_y,
        eye.forward_z + across * eye.right_z - down * eye.up_z,
    )


@kernel
def _next_depth(
    terrain: Terrain, eye: Eye, dx: float, dy: float, dz: float, before: float, slope_x: float, slope_z: float
) -> tuple[float, float, float]:
    """Depth of the next row's ground, and its slopes, from the depth and slopes at the same knot of the row before.

    The ground there is continued as a plane; where it proves not to be one, the ray is followed step by step.
    """
    start = max(BACK * before, NEAREST)
    height, _, _ = terrain_sample(terrain, eye.x + start * dx, eye.z + start * dz)
    closing = slope_x * dx + slope_z * dz - dy
    gap = eye.y + start * dy - height
    guess = start + gap / closing if closing > 1e-3 else math.inf
    if gap > 0.0 and guess < 1.2 * before:
        height, slope_x, slope_z = terrain_sample(terrain, eye.x + guess * dx, eye.z + guess * dz)
        closing = max(slope_x * dx + slope_z * dz - dy, 1e-3)
        miss = (eye.y + guess * dy - height) / closing
        if abs(miss) < 0.01 * guess:
            return guess + miss, slope_x, slope_z
    t = _march(terrain, eye, dx, dy, dz, start)
    if t < FAR:
        _, slope_x, slope_z = terrain_sample(terrain, eye.x + t * dx, eye.z + t * dz)
    return t, slope_x, slope_z


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
def _trace_knot(terrain: Terrain, eye: Eye, view: View, light: Floats, row: int, knots: Floats, knot: int) -> None:
    """Depth, slopes and light at a knot, from those of the row before."""
    before = knots[BEFORE, knot]
    if math.isinf(before):
        return
    dx, dy, dz = _ray(eye, view, min(knot * KNOT, view.width) + 0.5, row + 0.5)
    if terrain.rows == 0:
        knots[DEPTH, knot] = meet(terrain, eye, dx, dy, dz, NEAREST)
        return
    slope_x, slope_z = knots[SLOPE_X, knot], knots[SLOPE_Z, knot]
    t = knots[OVER, knot] / max(slope_x * dx + slope_z * dz - dy, 1e-6)
    if before <= t < knots[LOOKED, knot] + PLANE / terrain.per_unit:
        knots[DEPTH, knot] = t
        return
    t, slope_x, slope_z = _next_depth(terrain, eye, dx, dy, dz, before, slope_x, slope_z)
    knots[DEPTH, knot], knots[SLOPE_X, knot], knots[SLOPE_Z, knot] = t, slope_x, slope_z
    knots[LOOKED, knot], knots[OVER, knot] = t, t * (slope_x * dx + slope_z * dz - dy)
    facing = light[SUN_Y] - slope_x * light[SUN_X] - slope_z * light[SUN_Z]
    facing /= math.sqrt(1.0 + slope_x * slope_x + slope_z * slope_z)
    knots[LIGHT, knot] = min(max(light_steps(light, facing), -MOST_SHADE), MOST_SHADE)


@kernel
def _straighten(knots: Floats, knot: int) -> None:
    """Take a knot for straight between its neighbours: 1 / depth is, on a plane."""
    knots[STRAIGHT, knot] = 1.0
    knots[LOOKED, knot] = -1.0  # it is looked up when it is needed again
    t, t_end = knots[DEPTH, knot - 1], knots[DEPTH, knot + 1]
    knots[DEPTH, knot] = 2.0 * t * t_end / (t + t_end)
    knots[SLOPE_X, knot] = 0.5 * (knots[SLOPE_X, knot - 1] + knots[SLOPE_X, knot + 1])
    knots[SLOPE_Z, knot] = 0.5 * (knots[SLOPE_Z, knot - 1] + knots[SLOPE_Z, knot + 1])
    knots[LIGHT, knot] = 0.5 * (knots[LIGHT, knot - 1] + knots[LIGHT, knot + 1])


@kernel
def _trace_knots(terrain: Terrain, eye: Eye, view: View, light: Floats, row: int, knots: Floats) -> None:
    """The knots of a row, from those of the row before, whose depths are kept as BEFORE."""
    cells = (view.width + KNOT - 1) // KNOT
    for knot in range(cells + 1):
        knots[BEFORE, knot] = knots[DEPTH, knot]
    for knot in range(0, cells + 1, 2):
        _trace_knot(terrain, eye, view, light, row, knots, knot)
    narrow = NARROW * view.fx / (2 * KNOT * terrain.per_unit) if terrain.rows > 0 else 0.0
    for knot in range(1, cells + 1, 2):
        knots[STRAIGHT, knot] = 0.0
        near = knot < cells and max(knots[DEPTH, knot - 1], knots[DEPTH, knot + 1]) < narrow
        if near and _alike(knots[DEPTH, knot - 1], knots[DEPTH, knot + 1]):
            _straighten(knots, knot)
        else:
            _trace_knot(terrain, eye, view, light, row, knots, knot)


@kernel
def _find_silhouette(
    terrain: Terrain, eye: Eye, view: View, row: int, at: int, t: float, at_end: int, t_end: float, start: float
) -> tuple[int, float, float]:
    """First column that belongs to the right knot, and the depths on either side of it."""
    low, high = at, at_end
    low_t, high_t = t, t_end
    while high - low > 1:
        middle = (low + high) // 2
        dx, dy, dz = _ray(eye, view, middle + 0.5, row + 0.5)
        depth = meet(terrain, eye, dx, dy, dz, start)
        if math.isinf(depth) and t < FAR and t_end < FAR:
            depth = max(t, t_end)  # a gap of sky narrower than a cell is closed
        if _belongs_left(depth, t, t_end):
            low, low_t = middle, depth
        else:
            high, high_t = middle, depth
    return high, low_t, high_t


@kernel
def trace(terrain: Terrain, eye: Eye, view: View, light: Floats, knots: Floats, spans: Floats) -> int:
    """Fill `spans` with the whole picture and return their number; `knots` (KNOT_ROWS, n) is scratch space."""
    knots[:] = 0.0
    knots[DEPTH, :] = NEAREST
    count = 0
    for k in range(view.height):
        row = view.height - 1 - k if eye.up_y >= 0.0 else k
        _trace_knots(terrain, eye, view, light, row, knots)
        right = 0
        while right * KNOT < view.width:
            left = right
            right = left + (2 if knots[STRAIGHT, left + 1] else 1)
            at, at_end = left * KNOT, min(right * KNOT, view.width)
            t, t_end, shade, shade_end = (
                knots[DEPTH, left],
                knots[DEPTH, right],
                knots[LIGHT, left],
                knots[LIGHT, right],
            )
            before, before_end = knots[BEFORE, left], knots[BEFORE, right]
            along = t - before if k > 0 and t < FAR else 0.0
            if left > 0 and math.isinf(t) and math.isinf(t_end) and math.isinf(spans[count - 1, T]):
                spans[count - 1, END] = at_end  # more of the same sky
                continue
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
    with_nearness: bool,
) -> None:
    """Paint spans and, if asked for, note how near each pixel is (1 / t, 0 for the sky)."""
    for k in range(len(spans)):
        span = spans[k]
        row = int(span[ROW])
        first, last = row * view.width + int(span[AT]), row * view.width + int(span[END])
        near = nearness[first : last if with_nearness else first]
        target = pixels[first:last]
        down = (row + 0.5 - view.cy) / view.fy
        left = (span[AT] + 0.5 - view.cx) / view.fx
        if math.isinf(span[T]):
            slope = eye.forward_y + left * eye.right_y - down * eye.up_y
            near[:] = 0.0
            for place in range(len(target)):
                target[place] = palette[sky_step(slope)]
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
