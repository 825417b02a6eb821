"""The brush of `texture.bake`: paints strips along the path and decals onto tiles, edges by their share of a texel.

A strip is painted piece by piece between the cross sections of the path, as a road mesh would be: pieces share no texel
and leave none out. Where two roads cross, each strip is painted along the whole path before the next, so lines of both
roads show.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.jit import builder, kernel
from rl_training.simulator.track import Floats, Track

Codes = NDArray[np.uint16]
DecalRow = tuple[float, float, float, float, float, float, bool]


class Canvas(NamedTuple):
    """Where painting goes. Tiles before `first_own` are shared and never painted on."""

    x0: float
    z0: float
    texel: float
    tile_map: NDArray[np.int32]
    tiles: Codes
    first_own: int


class Ribbon(NamedTuple):
    """The path as a road mesh: cross sections at its points, merged where the path is straight."""

    points: Floats  # (M, 2) x, z; a closed path repeats its first point
    tangents: Floats  # (M, 2) direction of the path at a point: the normal of the cross section
    normals: Floats  # (M, 2) to the right, lengthened at a corner as its mitre asks
    arc: Floats  # (M,)

    @staticmethod
    def along(track: Track) -> Ribbon:
        points = np.ascontiguousarray(track.line[:, [0, 2]], dtype=np.float64)
        if track.closed:
            points = np.concatenate((points, points[:1]))
        steps = np.diff(points, axis=0)
        lengths = np.hypot(steps[:, 0], steps[:, 1])
        kept = np.concatenate((lengths > 1e-9, [True]))
        points, lengths = points[kept], lengths[kept[:-1]]
        steps = np.diff(points, axis=0) / lengths[:, None]
        arc = np.concatenate(([0.0], np.cumsum(lengths)))
        before = np.concatenate((steps[-1:] if track.closed else steps[:1], steps))
        after = np.concatenate((steps, steps[:1] if track.closed else steps[-1:]))
        tangents = before + after
        tangents /= np.maximum(np.hypot(tangents[:, 0], tangents[:, 1]), 1e-9)[:, None]
        cosine = np.maximum((tangents * after).sum(axis=1), 0.5)
        normals = np.stack((tangents[:, 1] / cosine, -tangents[:, 0] / cosine), axis=1)
        chosen = _merge_straights(points, steps)
        return Ribbon(points[chosen], tangents[chosen], normals[chosen], arc[chosen])


@builder
def _merge_straights(points: Floats, steps: Floats) -> NDArray[np.int64]:
    """Indices of the points to keep so that no piece turns by more than about a degree or is longer than 4 u."""
    chosen = np.empty(len(points), np.int64)
    chosen[0] = 0
    count = 1
    last = 0
    for i in range(1, len(points) - 1):
        turned = abs(steps[last, 0] * steps[i, 1] - steps[last, 1] * steps[i, 0])
        far = (points[i, 0] - points[last, 0]) ** 2 + (points[i, 1] - points[last, 1]) ** 2
        if turned > 0.02 or far > 16.0:
            chosen[count] = i
            count += 1
            last = i
    chosen[count] = len(points) - 1
    return chosen[: count + 1]


@kernel
def _mix(code: int, material: int, coverage: int, shade: int) -> int:
    """`code` with `coverage` fifteenths of `material` painted over it; the two largest shares survive."""
    first = code >> 12
    second = (code >> 8) & 15
    blend = (code >> 4) & 15
    bare = 15 - coverage
    share_first = (15 - blend) * bare
    share_second = blend * bare
    share_new = 15 * coverage
    if first == material:
        share_new += share_first
        share_first = 0
    if second == material:
        share_new += share_second
        share_second = 0
    if first == second:
        share_first += share_second
        share_second = 0
    if share_second > share_first:
        first, second = second, first
        share_first, share_second = share_second, share_first
    blended = (15 * share_new + (share_first + share_new) // 2) // max(share_first + share_new, 1)
    shade = ((code & 15) * bare + shade * coverage + 7) // 15
    return first << 12 | material << 8 | blended << 4 | shade


@kernel
def _cut_from(low: float, high: float, value: float, slope: float) -> tuple[float, float]:
    """Narrow the columns [low, high) to those where ``value + slope · column >= 0``."""
    if slope > 1e-12:
        return max(low, math.ceil(-value / slope)), high
    if slope < -1e-12:
        return low, min(high, math.floor(-value / slope) + 1.0)
    return (low, high) if value >= 0.0 else (low, low)


@kernel
def _cut_before(low: float, high: float, value: float, slope: float) -> tuple[float, float]:
    """The exact complement of `_cut_from`, so that neighbouring pieces share no texel and leave none out."""
    if slope > 1e-12:
        return low, min(high, math.ceil(-value / slope))
    if slope < -1e-12:
        return max(low, math.floor(-value / slope) + 1.0), high
    return (low, high) if value < 0.0 else (low, low)


@kernel
def _dash_cover(arc: float, dash_on: float, period: float, texel: float) -> float:
    """Share of a texel at `arc` that lies on a dash."""
    away = arc - 0.5 * dash_on
    away -= period * math.floor(away / period + 0.5)
    return min(max((0.5 * dash_on - abs(away)) / texel + 0.5, 0.0), 1.0)


@kernel
def _paint_texel(canvas: Canvas, tile: int, place: int, material: int, cover: float, shade: int) -> None:
    share = int(15.0 * cover + 0.5)
    if share >= 15:
        canvas.tiles[tile, place] = material << 12 | material << 8 | shade
    elif share > 0:
        canvas.tiles[tile, place] = _mix(int(np.int64(canvas.tiles[tile, place])), material, share, shade)


@builder
def paint_strip(
    ribbon: Ribbon,
    left: float,
    right: float,
    dash_on: float,
    period: float,
    shades: NDArray[np.uint8],
    material: int,
    canvas: Canvas,
) -> None:
    """Paint the band between two offsets along the whole path; `period` 0 means without dashes."""
    texel = canvas.texel
    inverse = 1.0 / texel
    for i in range(len(ribbon.arc) - 1):
        x, z = ribbon.points[i]
        next_x, next_z = ribbon.points[i + 1]
        length = math.hypot(next_x - x, next_z - z)
        along_x, along_z = (next_x - x) / length, (next_z - z) / length
        low_z = np.inf
        high_z = -np.inf
        for k in range(i, i + 2):
            for offset in (left - texel, right + texel):
                corner = ribbon.points[k, 1] + ribbon.normals[k, 1] * offset
                low_z, high_z = min(low_z, corner), max(high_z, corner)
        first_row = int((low_z - texel - canvas.z0) * inverse)
        last_row = int((high_z + texel - canvas.z0) * inverse)
        for row in range(first_row, last_row + 1):
            # Everything below is linear in the column: value at column 0, and its slope per texel.
            dx = canvas.x0 + 0.5 * texel - x
            dz = canvas.z0 + (row + 0.5) * texel - z
            offset_0, offset_slope = dx * along_z - dz * along_x, along_z * texel
            arc_0, arc_slope = ribbon.arc[i] + dx * along_x + dz * along_z, along_x * texel
            start = dx * ribbon.tangents[i, 0] + dz * ribbon.tangents[i, 1]
            low, high = _cut_from(0.0, 1e9, start, ribbon.tangents[i, 0] * texel)
            dx, dz = canvas.x0 + 0.5 * texel - next_x, canvas.z0 + (row + 0.5) * texel - next_z
            end = dx * ribbon.tangents[i + 1, 0] + dz * ribbon.tangents[i + 1, 1]
            low, high = _cut_before(low, high, end, ribbon.tangents[i + 1, 0] * texel)
            low, high = _cut_from(low, high, offset_0 - left + 0.5 * texel, offset_slope)
            low, high = _cut_from(low, high, right + 0.5 * texel - offset_0, -offset_slope)
            for column in range(int(low), int(high)):
                tile = canvas.tile_map[row >> 6, column >> 6]
                offset = offset_0 + offset_slope * column
                cover = (min(offset + 0.5 * texel, right) - max(offset - 0.5 * texel, left)) * inverse
                if period > 0.0:
                    cover *= _dash_cover(arc_0 + arc_slope * column, dash_on, period, texel)
                place = (row & 63) << 6 | (column & 63)
                _paint_texel(canvas, tile, place, material, cover, int(np.int64(shades[row & 63, column & 63])))


@kernel
def _decal_cover(across: float, along: float, half_x: float, half_z: float, ellipse: bool, texel: float) -> float:
    """Share of the texel at (across, along), in the decal's frame, that the decal covers."""
    if ellipse:
        radius = math.hypot(across / half_x, along / half_z)
        return min(max((1.0 - radius) * min(half_x, half_z) / texel + 0.5, 0.0), 1.0)
    cover_x = min(across + 0.5 * texel, half_x) - max(across - 0.5 * texel, -half_x)
    cover_z = min(along + 0.5 * texel, half_z) - max(along - 0.5 * texel, -half_z)
    return max(cover_x, 0.0) * max(cover_z, 0.0) / (texel * texel)


@builder
def paint_decal(
    decal: DecalRow, number: int, floor: NDArray[np.int32], shades: NDArray[np.uint8], material: int, canvas: Canvas
) -> None:
    """Paint a decal on tiles with texels of their own, but not below a later decal that fills the tile."""
    x, z, sine, cosine, half_x, half_z, ellipse = decal
    texel = canvas.texel
    extent_x = abs(cosine) * half_x + abs(sine) * half_z + texel
    extent_z = abs(sine) * half_x + abs(cosine) * half_z + texel
    for row in range(int((z - extent_z - canvas.z0) / texel), int((z + extent_z - canvas.z0) / texel) + 1):
        dz = canvas.z0 + (row + 0.5) * texel - z
        for column in range(int((x - extent_x - canvas.x0) / texel), int((x + extent_x - canvas.x0) / texel) + 1):
            tile = canvas.tile_map[row >> 6, column >> 6]
            if tile < canvas.first_own or floor[row >> 6, column >> 6] >= number:
                continue
            dx = canvas.x0 + (column + 0.5) * texel - x
            across, along = dx * cosine - dz * sine, dx * sine + dz * cosine
            cover = _decal_cover(across, along, half_x, half_z, ellipse, texel)
            place = (row & 63) << 6 | (column & 63)
            _paint_texel(canvas, tile, place, material, cover, int(np.int64(shades[row & 63, column & 63])))
