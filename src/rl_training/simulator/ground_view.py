"""Draws ground and sky: rays meet the ground exactly at knots of a row, texture coordinates run straight between them.

    t          depth of a point: its distance along the camera's forward axis [u]
    u, v       ground coordinates in texels, x and z from the tile map's origin, as fixed point with 16 binary places
    level      mip level: 0 = texels as painted, 1 = two by two as one …
    knot       a column of a row where a ray is followed; KNOT pixels apart

Level ground seen without roll needs no knots: a row has one depth. Near the horizon, where a pixel is much longer than
it is wide, each pixel is the mean of two samples along the view.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import CODES, SKY_SLOPE, SKY_STEPS, Palette
from rl_training.simulator.texture import LEVEL_START, TILE_SIDE, tile_variant
from rl_training.simulator.view import Eye, View

FIXED = 16  # binary places of texture coordinates
TILE_SHIFT = FIXED + 6  # from a coordinate to its tile
TWICE = 2.5  # a pixel longer than this many texels of its level is sampled twice
FAR = 1500.0  # the ground ends here [u]
SHORT_RUN = 5  # pixels a tile from which runs inside tiles pay
_STARTS = np.array(LEVEL_START, np.int64)
_HALF = 1 << (FIXED - 1)
_HALF_MASK = np.uint32(0x7F7F7F7F)
_LOW_BITS = np.uint32(0x01010101)


class Surface(NamedTuple):
    """The ground texture of one slot, as the inner loops need it."""

    tile_map: NDArray[np.int32]
    rows: int
    columns: int
    tiles: NDArray[np.uint16]
    base: int  # first of the slot's bare ground tiles
    row0: int  # world tile of the map's first row and column
    column0: int
    x0: float
    z0: float
    per_unit: float  # texels per u


@kernel
def surface_of(bank: Bank, slot: int) -> Surface:
    side = bank.tile_origin[slot, 2]
    return Surface(
        bank.tile_map[slot],
        int(np.int64(bank.tile_shape[slot, 0])),
        int(np.int64(bank.tile_shape[slot, 1])),
        bank.tiles,
        int(np.int64(bank.tile_base[slot])),
        int(np.int64(np.rint(bank.tile_origin[slot, 1] / side))),
        int(np.int64(np.rint(bank.tile_origin[slot, 0] / side))),
        bank.tile_origin[slot, 0],
        bank.tile_origin[slot, 1],
        TILE_SIDE / side,
    )


class Line(NamedTuple):
    """Texture coordinates along part of a row: the first pixel's, and the step from one pixel to the next."""

    u: int
    v: int
    du: int
    dv: int


@kernel
def fixed(texels: float) -> int:
    return int(np.int64(texels * (1 << FIXED)))


@kernel
def line_between(surface: Surface, x: float, z: float, x_end: float, z_end: float, count: int) -> Line:
    """The line from ground point (x, z) to (x_end, z_end), `count` pixels on."""
    u = (x - surface.x0) * surface.per_unit
    v = (z - surface.z0) * surface.per_unit
    scale = surface.per_unit / count
    return Line(fixed(u), fixed(v), fixed((x_end - x) * scale), fixed((z_end - z) * scale))


@kernel
def mip_level(across: float, along: float, per_unit: float) -> int:
    """Level for a pixel that covers across × along of the ground [u]; long pixels are sampled twice."""
    size = max(across, 0.35 * along) * per_unit
    level, least = 0, math.sqrt(2.0)
    while size > least and level < 6:
        level, least = level + 1, 2.0 * least
    return level


@kernel
def _tile(surface: Surface, u: int, v: int) -> int:
    """The tile under a coordinate."""
    column, row = u >> TILE_SHIFT, v >> TILE_SHIFT
    if 0 <= row < surface.rows and 0 <= column < surface.columns:
        return int(np.int64(surface.tile_map[row, column]))
    return surface.base + tile_variant(row + surface.row0, column + surface.column0)


@kernel
def _place(u: int, v: int, level: int) -> int:
    """Where in its tile the texel of a mip level lies under a coordinate, from that level's start."""
    mask = 63 >> level
    return ((v >> (FIXED + level) & mask) << (6 - level)) + (u >> (FIXED + level) & mask)


@kernel
def code_at(surface: Surface, u: int, v: int, level: int) -> int:
    """The texture code under a coordinate."""
    return int(np.int64(surface.tiles[_tile(surface, u, v), _STARTS[level] + _place(u, v, level)]))


@kernel
def _pixels_left(at: int, step: int, pixels_per_step: float) -> float:
    """Steps that a coordinate may take without leaving its tile."""
    if step == 0:
        return math.inf
    inside = at & ((1 << TILE_SHIFT) - 1)
    gap = (1 << TILE_SHIFT) - 1 - inside if step > 0 else -inside
    return gap * pixels_per_step


@kernel
def _run_in_tile(
    surface: Surface,
    tile: int,
    line: Line,
    level: int,
    palette: Palette,
    pixels: NDArray[np.uint32],
    start: int,
    end: int,
) -> None:
    """Pixels start..end-1 from one tile's level; 32 bits hold a place in the tile, its texel on top, and wrap for free.

    Indices are unsigned, so that none is looked at for being negative.
    """
    own, first = np.uint64(tile), np.uint64(_STARTS[level])
    column_shift, row_shift = np.uint32(26 + level), np.uint32(20 + 2 * level)
    row_mask = np.uint32((63 >> level) << (6 - level))
    u, v = np.uint32(line.u << 10), np.uint32(line.v << 10)
    du, dv = np.uint32(line.du << 10), np.uint32(line.dv << 10)
    place, stop = np.uint64(start), np.uint64(end)
    while place < stop:
        texel = first + np.uint64(((v >> row_shift) & row_mask) + (u >> column_shift))
        pixels[place] = palette[surface.tiles[own, texel]]
        u, v, place = np.uint32(u + du), np.uint32(v + dv), place + np.uint64(1)


@kernel
def _single_pixels(
    surface: Surface, line: Line, level: int, palette: Palette, pixels: NDArray[np.uint32], start: int, end: int
) -> None:
    """Pixels start..end-1 along `line`, each looked up by itself: quicker where a tile is as short as a few of them."""
    u, v, du, dv = line
    for place in range(start, end):
        pixels[place] = palette[code_at(surface, u, v, level)]
        u, v = u + du, v + dv


@kernel
def texture_run(
    surface: Surface, line: Line, level: int, palette: Palette, pixels: NDArray[np.uint32], start: int, end: int
) -> None:
    """Pixels start..end-1 along `line`, tile by tile."""
    u, v, du, dv = line
    if (abs(du) + abs(dv)) * SHORT_RUN > 1 << TILE_SHIFT:
        _single_pixels(surface, line, level, palette, pixels, start, end)
        return
    per_u, per_v = 1.0 / (du if du != 0 else 1), 1.0 / (dv if dv != 0 else 1)
    while start < end:
        left = min(_pixels_left(u, du, per_u), _pixels_left(v, dv, per_v), end - start - 1.0)
        count = int(np.int64(left)) + 1
        _run_in_tile(surface, _tile(surface, u, v), Line(u, v, du, dv), level, palette, pixels, start, start + count)
        u, v, start = u + du * count, v + dv * count, start + count


@kernel
def texture_run_twice(
    surface: Surface,
    line: Line,
    second: Line,
    level: int,
    palette: Palette,
    pixels: NDArray[np.uint32],
    start: int,
    end: int,
) -> None:
    """Pixels start..end-1, each the mean of two samples; `pixels` ends with a spare row for the second."""
    spare = len(pixels) - (end - start)
    texture_run(surface, line, level, palette, pixels, start, end)
    texture_run(surface, second, level, palette, pixels, spare, len(pixels))
    row, extra = pixels[start:end], pixels[spare:]
    for k in range(len(row)):
        one, two = row[k], extra[k]
        row[k] = ((one >> 1) & _HALF_MASK) + ((two >> 1) & _HALF_MASK) + (one & two & _LOW_BITS)


@kernel
def shaded_run(
    surface: Surface,
    line: Line,
    level: int,
    shade: int,
    shade_step: int,
    odd: int,
    palette: Palette,
    pixels: NDArray[np.uint32],
) -> None:
    """A short run along `line`, brighter or darker by a fixed-point shade; steps of shade are dithered."""
    u, v, du, dv = line
    first = _STARTS[level]
    last = len(pixels) - 1
    dither = odd << (FIXED - 1)
    if ((u ^ (u + du * last)) | (v ^ (v + dv * last))) >> TILE_SHIFT == 0:
        texels = surface.tiles[_tile(surface, u, v), first:]
        column_shift, row_shift = np.uint32(26 + level), np.uint32(20 + 2 * level)
        row_mask = np.uint32((63 >> level) << (6 - level))
        column, row = np.uint32(u << 10), np.uint32(v << 10)
        columns, rows = np.uint32(du << 10), np.uint32(dv << 10)
        for k in range(len(pixels)):
            code = texels[((row >> row_shift) & row_mask) + (column >> column_shift)]
            pixels[k] = palette[np.uint32(code + ((shade + dither) >> FIXED))]
            column, row = np.uint32(column + columns), np.uint32(row + rows)
            shade, dither = shade + shade_step, dither ^ _HALF
    else:
        for k in range(len(pixels)):
            pixels[k] = palette[code_at(surface, u, v, level) + ((shade + dither) >> FIXED)]
            u, v, shade, dither = u + du, v + dv, shade + shade_step, dither ^ _HALF


@kernel
def sky_step(slope: float) -> int:
    """Index of the sky's colour for a ray that rises by `slope` per unit forward."""
    return CODES + min(max(int(np.int64(slope * ((SKY_STEPS - 1) / SKY_SLOPE))), 0), SKY_STEPS - 1)


@kernel
def _row_line(eye: Eye, view: View, surface: Surface, height: float, row: float) -> Line:
    """Where a row of level ground, seen without roll, runs."""
    down = (row - view.cy) / view.fy
    depth = min(height / max(eye.up_y * down - eye.forward_y, 1e-9), FAR)
    left, right = -view.cx / view.fx, (view.width - view.cx) / view.fx
    middle_x = eye.x + depth * (eye.forward_x - down * eye.up_x)
    middle_z = eye.z + depth * (eye.forward_z - down * eye.up_z)
    line = line_between(
        surface,
        middle_x + depth * left * eye.right_x,
        middle_z + depth * left * eye.right_z,
        middle_x + depth * right * eye.right_x,
        middle_z + depth * right * eye.right_z,
        view.width,
    )
    return Line(line.u + (line.du >> 1), line.v + (line.dv >> 1), line.du, line.dv)


@kernel
def draw_level(
    eye: Eye, view: View, height: float, surface: Surface, palette: Palette, pixels: NDArray[np.uint32]
) -> None:
    """Level ground `height` below a camera without roll, and the sky above it."""
    for row in range(view.height):
        start, end = row * view.width, (row + 1) * view.width
        down = (row + 0.5 - view.cy) / view.fy
        slope = eye.forward_y - eye.up_y * down
        if slope > -1e-6:
            pixels[start:end] = palette[sky_step(slope)]
            continue
        depth = min(-height / slope, FAR)
        across = depth / view.fx
        along = depth * depth * abs(eye.up_y) / (height * view.fy)
        level = mip_level(across, along, surface.per_unit)
        if along * surface.per_unit < TWICE * (1 << level):
            line = _row_line(eye, view, surface, height, row + 0.5)
            texture_run(surface, line, level, palette, pixels, start, end)
        else:
            line = _row_line(eye, view, surface, height, row + 0.75)
            second = _row_line(eye, view, surface, height, row + 0.25)
            texture_run_twice(surface, line, second, level, palette, pixels, start, end)
