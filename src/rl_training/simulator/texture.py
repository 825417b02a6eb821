"""Bakes a track's ground into tiles of texture codes: what the camera reads instead of geometry.

A texel is a 16-bit code, not a colour: ``material A << 12 | material B << 8 | blend << 4 | shade``. `blend` is the
share of B in fifteenths, `shade` a brightness step (8 = the material's own colour; grain keeps to 4..11, so that light
may add up to 4 steps either way). A palette of 65536 colours turns codes into pixels, so other colours are only another
palette.

A tile is 64×64 texels followed by its mip levels 32², 16² … 1 (TILE_TEXELS codes in all), row = z, column = x. Ground
that neither road nor decal reaches shares GROUND_VARIANTS tiles, also beyond the map, so memory and baking time grow
with the road's length and not with the world.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.ground_paint import Canvas, Codes, DecalRow, Ribbon, paint_decal, paint_strip
from rl_training.simulator.jit import builder, kernel
from rl_training.simulator.track import Decal, Floats, Material, Strip, Track

TILE_SIDE = 64
LEVELS = 7
LEVEL_START = tuple(sum((TILE_SIDE >> k) ** 2 for k in range(level)) for level in range(LEVELS + 1))
TILE_TEXELS = LEVEL_START[-1]
GROUND_VARIANTS = 4
NEUTRAL_SHADE = 8
DARKEST_GRAIN, BRIGHTEST_GRAIN = 4, 11


class GroundTexture(NamedTuple):
    """The ground of one track; `tile_map` holds indices into `tiles`, the first GROUND_VARIANTS of them bare ground."""

    tile_shape: tuple[int, int]  # rows, columns of `tile_map`
    tile_origin: tuple[float, float, float]  # x0, z0, side of a tile [u]
    tile_map: NDArray[np.int32]
    tiles: Codes  # (K, TILE_TEXELS)


def bake(track: Track) -> GroundTexture:
    """Paint decals, road and decals over the road, in this order, on bare ground."""
    shape, origin = _extent(track)
    x0, z0, side = origin
    texel = side / TILE_SIDE
    under = [decal for decal in track.decals if not decal.over_road]
    over = [decal for decal in track.decals if decal.over_road]

    floor = np.full(shape, -1, np.int32)  # the decal that fills a tile wholly, -1 = bare ground
    own = np.zeros(shape, np.bool_)  # whether the tile needs texels of its own
    for number, decal in enumerate(under):
        _place_decal(_decal_row(decal), number, x0, z0, side, floor, own)
    ribbon = Ribbon.along(track)
    if track.strips:
        left = min(strip.left for strip in track.strips) - texel
        right = max(strip.right for strip in track.strips) + texel
        _mark_road(ribbon.points, ribbon.normals, left, right, x0, z0, side, own)
    for decal in over:
        _place_decal(_decal_row(decal), -1, x0, z0, side, np.empty_like(floor), own)

    bare = [ground_tiles(Material.GROUND, Material.GROUND_ALT, track.ground_roughness)]
    bare += [ground_tiles(*_floor_materials(decal.material), decal.roughness) for decal in under]
    shared = np.concatenate(bare)
    tile_map = np.empty(shape, np.int32)
    variants = _variant_map(shape, round(z0 / side), round(x0 / side))
    tile_map[:] = (floor + 1) * GROUND_VARIANTS + variants
    private = np.flatnonzero(own)
    tiles = np.empty((len(shared) + len(private), TILE_TEXELS), np.uint16)
    tiles[: len(shared)] = shared
    tiles[len(shared) :] = shared[tile_map.ravel()[private]]
    tile_map.ravel()[private] = np.arange(len(shared), len(tiles), dtype=np.int32)

    canvas = Canvas(x0, z0, texel, tile_map, tiles, len(shared))
    for number, decal in enumerate(under):
        paint_decal(_decal_row(decal), number, floor, grain(decal.roughness), int(decal.material), canvas)
    for strip in track.strips:
        period = _dash_period(strip, track)
        paint_strip(
            ribbon, strip.left, strip.right, strip.dash_on, period, grain(strip.roughness), int(strip.material), canvas
        )
    for decal in over:
        paint_decal(_decal_row(decal), -1, np.full_like(floor, -2), grain(decal.roughness), int(decal.material), canvas)
    _build_mips(tiles[len(shared) :])
    return GroundTexture(shape, origin, tile_map, tiles)


def _extent(track: Track) -> tuple[tuple[int, int], tuple[float, float, float]]:
    """Shape and origin of the tile map: all that is painted, and a ring of bare ground around it."""
    side = track.texel * TILE_SIDE
    reach = max((max(abs(strip.left), abs(strip.right)) for strip in track.strips), default=1.0)
    low = track.line[:, [0, 2]].min(axis=0) - reach
    high = track.line[:, [0, 2]].max(axis=0) + reach
    for decal in track.decals:
        radius = math.hypot(decal.half_x, decal.half_z)
        low = np.minimum(low, (decal.x - radius, decal.z - radius))
        high = np.maximum(high, (decal.x + radius, decal.z + radius))
    first = np.floor(low / side).astype(int) - 1
    last = np.floor(high / side).astype(int) + 1
    columns, rows = (last - first + 1).tolist()
    return (rows, columns), (float(first[0] * side), float(first[1] * side), side)


def _dash_period(strip: Strip, track: Track) -> float:
    """Dash and gap together, stretched a little on a closed track so that they come out even."""
    if strip.dash_on <= 0.0 or strip.dash_off <= 0.0:
        return 0.0
    period = strip.dash_on + strip.dash_off
    return track.length / max(round(track.length / period), 1) if track.closed else period


def _decal_row(decal: Decal) -> DecalRow:
    """(x, z, sine and cosine of the yaw, half_x, half_z, ellipse)."""
    return (
        decal.x, decal.z, float(np.sin(decal.yaw)), float(np.cos(decal.yaw)), decal.half_x, decal.half_z, decal.ellipse
    )  # fmt: skip


def _floor_materials(material: Material) -> tuple[Material, Material]:
    """Ground and floors have a second colour for their patches; other materials are even."""
    return (material, Material(material + 1)) if material in (Material.GROUND, Material.FLOOR) else (material, material)


@kernel
def tile_variant(row: int, column: int) -> int:
    """Which shared tile lies at world tile (row, column)."""
    mixed = np.uint32(row) * np.uint32(0x9E3779B1) ^ np.uint32(column) * np.uint32(0x85EBCA77)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x2C1B3C6D)
    return int(np.int64((mixed >> np.uint32(20)) & np.uint32(GROUND_VARIANTS - 1)))


@builder
def _variant_map(shape: tuple[int, int], row0: int, column0: int) -> NDArray[np.int32]:
    """The shared tile at each place of a map whose first tile is world tile (row0, column0)."""
    variants = np.empty(shape, np.int32)
    for row in range(shape[0]):
        for column in range(shape[1]):
            variants[row, column] = tile_variant(row0 + row, column0 + column)
    return variants


def _lattice_noise(
    random: np.random.Generator, cells: int, shared_edge: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Smooth noise on a tile, periodic; variants that share their edge lattice join without a seam."""
    lattice = random.uniform(-1.0, 1.0, (cells, cells))
    if shared_edge is not None:
        lattice[0], lattice[:, 0] = shared_edge, shared_edge
    lattice = np.pad(lattice, (0, 1), mode="wrap")
    place = (np.arange(TILE_SIDE) + 0.5) * cells / TILE_SIDE
    low = place.astype(int)
    weight = place - low
    weight = weight * weight * (3.0 - 2.0 * weight)
    rows = lattice[low] * (1.0 - weight)[:, None] + lattice[low + 1] * weight[:, None]
    smooth: NDArray[np.float64] = rows[:, low] * (1.0 - weight) + rows[:, low + 1] * weight
    return smooth


@lru_cache(maxsize=64)
def grain(roughness: float) -> NDArray[np.uint8]:
    """(64, 64) shades of a painted surface: fine grain and soft spots, stronger with `roughness` (0..1)."""
    random = np.random.default_rng(5)
    noise = 0.55 * random.standard_normal((TILE_SIDE, TILE_SIDE)) + 0.8 * _lattice_noise(random, 16, None)
    return _shades(noise, roughness)


def _shades(noise: NDArray[np.float64], roughness: float) -> NDArray[np.uint8]:
    shades = np.rint(NEUTRAL_SHADE - 0.5 + 2.4 * min(max(roughness, 0.0), 1.0) * noise + 0.49)
    return np.clip(shades, DARKEST_GRAIN, BRIGHTEST_GRAIN).astype(np.uint8)


@lru_cache(maxsize=64)
def ground_tiles(material: Material, alternate: Material, roughness: float) -> Codes:
    """GROUND_VARIANTS tiles of one surface with patches of its second colour."""
    random = np.random.default_rng(11)
    edge = random.uniform(-1.0, 1.0, 8)
    tiles = np.empty((GROUND_VARIANTS, TILE_TEXELS), np.uint16)
    for tile in tiles:
        patches = _lattice_noise(random, 8, edge)
        fine = random.standard_normal((TILE_SIDE, TILE_SIDE))
        spots = _lattice_noise(random, 32, None)
        blend = np.clip(np.rint(15.0 * roughness * (0.35 + 0.7 * patches + 0.25 * fine)), 0, 15).astype(np.uint16)
        shade = _shades(0.6 * fine + 0.7 * spots + 0.5 * patches, roughness).astype(np.uint16)
        tile[: TILE_SIDE * TILE_SIDE] = (material << 12 | alternate << 8 | blend << 4 | shade).ravel()
    _build_mips(tiles)
    tiles.flags.writeable = False
    return tiles


@kernel
def _reaches(gap_x: float, gap_z: float, half_x: float, half_z: float, ellipse: bool) -> bool:
    """Whether the point (gap_x, gap_z), in the decal's frame, lies inside it."""
    if ellipse:
        return (gap_x / half_x) ** 2 + (gap_z / half_z) ** 2 <= 1.0
    return abs(gap_x) <= half_x and abs(gap_z) <= half_z


@builder
def _place_decal(
    decal: DecalRow,
    number: int,
    x0: float,
    z0: float,
    side: float,
    floor: NDArray[np.int32],
    own: NDArray[np.bool_],
) -> None:
    """Give tiles wholly inside the decal its floor and mark those it crosses; a negative number only marks."""
    x, z, sine, cosine, half_x, half_z, ellipse = decal
    extent_x = abs(cosine) * half_x + abs(sine) * half_z
    extent_z = abs(sine) * half_x + abs(cosine) * half_z
    for row in range(int((z - extent_z - z0) / side), int((z + extent_z - z0) / side) + 1):
        for column in range(int((x - extent_x - x0) / side), int((x + extent_x - x0) / side) + 1):
            inside = number >= 0
            for corner in range(4):
                dx = x0 + (column + (corner & 1)) * side - x
                dz = z0 + (row + (corner >> 1)) * side - z
                inside &= _reaches(dx * cosine - dz * sine, dx * sine + dz * cosine, half_x, half_z, ellipse)
            if inside:
                floor[row, column] = number
            own[row, column] = not inside


@builder
def _mark_road(
    points: Floats,
    normals: Floats,
    left: float,
    right: float,
    x0: float,
    z0: float,
    side: float,
    own: NDArray[np.bool_],
) -> None:
    """Mark the tiles that the band from `left` to `right` of the path may touch."""
    for i in range(len(points) - 1):
        low_x = low_z = np.inf
        high_x = high_z = -np.inf
        for k in range(i, i + 2):
            for offset in (left, right):
                x = points[k, 0] + normals[k, 0] * offset
                z = points[k, 1] + normals[k, 1] * offset
                low_x, high_x = min(low_x, x), max(high_x, x)
                low_z, high_z = min(low_z, z), max(high_z, z)
        for row in range(int((low_z - z0) / side), int((high_z - z0) / side) + 1):
            for column in range(int((low_x - x0) / side), int((high_x - x0) / side) + 1):
                own[row, column] |= _box_meets_band(i, points, normals, left, right, x0, z0, side, row, column)


@kernel
def _box_meets_band(
    i: int,
    points: Floats,
    normals: Floats,
    left: float,
    right: float,
    x0: float,
    z0: float,
    side: float,
    row: int,
    column: int,
) -> bool:
    """Whether a tile lies between the two edges of piece i, with some to spare."""
    middle_x = x0 + (column + 0.5) * side - 0.5 * (points[i, 0] + points[i + 1, 0])
    middle_z = z0 + (row + 0.5) * side - 0.5 * (points[i, 1] + points[i + 1, 1])
    normal_x, normal_z = normals[i]
    offset = middle_x * normal_x + middle_z * normal_z
    ahead = middle_x * normal_z - middle_z * normal_x
    radius = 0.5 * side * (abs(normal_x) + abs(normal_z)) + 0.5
    beside = bool(left - radius <= offset <= right + radius)
    return beside and bool(abs(ahead) <= radius + 2.5 + 0.05 * (right - left))


@kernel
def _mean_code(a: int, b: int, c: int, d: int, tie: int) -> int:
    """Code of four texels seen as one: the two materials with the largest shares, the mean shade.

    A shade just between two goes up with `tie` 1 and down with 0: else distance would brighten the ground.
    """
    shade = ((a & 15) + (b & 15) + (c & 15) + (d & 15) + 1 + tie) >> 2
    if (a | 15) == (b | 15) == (c | 15) == (d | 15):
        return (a & 0xFFF0) | shade
    low = high = 0  # shares of materials 0-7 and 8-15, eight bits each: four texels have 60 fifteenths
    for code in (a, b, c, d):
        blend = (code >> 4) & 15
        for material, share in ((code >> 12, 15 - blend), ((code >> 8) & 15, blend)):
            if material < 8:
                low += share << (8 * material)
            else:
                high += share << (8 * (material - 8))
    first = second = 0
    share_first = share_second = 0
    for material in range(16):
        share = ((low if material < 8 else high) >> (8 * (material & 7))) & 255
        if share > share_first:
            second, share_second = first, share_first
            first, share_first = material, share
        elif share > share_second:
            second, share_second = material, share
    if share_second == 0:
        return first << 12 | first << 8 | shade
    both = share_first + share_second
    blend = (15 * share_second + both // 2) // both
    return first << 12 | second << 8 | blend << 4 | shade


@builder
def _build_mips(tiles: Codes) -> None:
    """Fill levels 1..6 of every tile from its level 0."""
    for tile in range(len(tiles)):
        for level in range(1, LEVELS):
            side = TILE_SIDE >> level
            source = LEVEL_START[level - 1]
            target = LEVEL_START[level]
            for row in range(side):
                for column in range(side):
                    place = source + (row * 4 * side) + 2 * column
                    tiles[tile, target + row * side + column] = _mean_code(
                        int(np.int64(tiles[tile, place])),
                        int(np.int64(tiles[tile, place + 1])),
                        int(np.int64(tiles[tile, place + 2 * side])),
                        int(np.int64(tiles[tile, place + 2 * side + 1])),
                        (row + column) & 1,
                    )
