"""Tracks packed for the kernels: one slot a track, every array padded to the largest, ground tiles in one shared pool.

A slot is replaced when a car draws a new random road, so packing must be quick and must never move another slot's data
in a way a kernel could see half done: the bank only changes between steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Bank(NamedTuple):
    """What kernels read. The first axis is the slot unless said; counts tell how much of the padding is real."""

    # Path
    closed: NDArray[np.uint8]  # (T,)
    length: NDArray[np.float64]  # (T,)
    node_count: NDArray[np.int32]  # (T,)
    nodes: NDArray[np.float64]  # (T, N, 3)
    line_count: NDArray[np.int32]  # (T,)
    line: NDArray[np.float64]  # (T, M, 3) x, z, arc length
    reach: NDArray[np.float64]  # (T,) offset up to which driving counts as progress [u]
    # Ground
    ground_y: NDArray[np.float64]  # (T,)
    height_shape: NDArray[np.int32]  # (T, 2) rows, columns; 0, 0 = flat
    height_origin: NDArray[np.float64]  # (T, 3) x0, z0, cell
    heights: NDArray[np.float32]  # (T, rows, columns)
    height_top: NDArray[np.float64]  # (T,) the highest of them
    zone_count: NDArray[np.int32]
    zones: NDArray[np.float64]  # (T, F, ZONE_COLUMNS)
    # Ground texture
    tile_shape: NDArray[np.int32]  # (T, 2) rows, columns of the tile map
    tile_origin: NDArray[np.float64]  # (T, 3) x0, z0, side of a tile [u]
    tile_map: NDArray[np.int32]  # (T, rows, columns) index into `tiles`
    tile_base: NDArray[np.int32]  # (T,) index of the slot's first tile: the ground variants that serve beyond its map
    tiles: NDArray[np.uint16]  # (K, TILE_TEXELS), shared by all slots
    # Solids
    wall_count: NDArray[np.int32]
    walls: NDArray[np.float64]  # (T, W, WALL_COLUMNS)
    wall_balls: NDArray[np.float64]  # (T, 4, W) what the camera looks for: `sight`
    solid_count: NDArray[np.int32]
    solids: NDArray[np.float64]  # (T, S, SOLID_COLUMNS)
    solid_balls: NDArray[np.float64]  # (T, 4, S)
    # Collision grid: items of cell c are grid_items[t, grid_start[t, c] : grid_start[t, c + 1]];
    # an item below wall_count is a wall, above it solid number item - wall_count.
    grid_shape: NDArray[np.int32]  # (T, 2) rows, columns
    grid_origin: NDArray[np.float64]  # (T, 3) x0, z0, cell
    grid_start: NDArray[np.int32]  # (T, C + 1)
    grid_items: NDArray[np.int32]  # (T, I)
    # Start lines
    start_line_count: NDArray[np.int32]
    start_lines: NDArray[np.float64]  # (T, L, LINE_COLUMNS)
