"""Tracks into a `Bank`: padded arrays that grow when a larger track comes, and a pool of ground tiles.

`prepare` does the work that depends on the track alone (ground texture, collision grid); `TrackBank.put` copies the
result into a slot, so a new random road costs its own preparation and one copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.collision import build_grid
from rl_training.simulator.sight import solid_balls, wall_balls
from rl_training.simulator.texture import TILE_TEXELS, GroundTexture, bake
from rl_training.simulator.track import LINE_COLUMNS, SOLID_COLUMNS, WALL_COLUMNS, ZONE_COLUMNS, Track

SHOULDER = 4.0  # how far beside the road driving still counts as progress [u]


@dataclass(frozen=True)
class PreparedTrack:
    """A track with everything the kernels need, ready to be copied into a slot."""

    track: Track
    line: NDArray[np.float64]  # (M, 3) x, z, arc length
    texture: GroundTexture
    grid_shape: tuple[int, int]
    grid_origin: tuple[float, float, float]
    grid_start: NDArray[np.int32]
    grid_items: NDArray[np.int32]


def prepare(track: Track) -> PreparedTrack:
    """Bake the ground and sort the solids of `track`."""
    steps = np.linalg.norm(np.diff(track.line[:, [0, 2]], axis=0), axis=1)
    arc = np.concatenate(([0.0], np.cumsum(steps)))
    line = np.column_stack((track.line[:, 0], track.line[:, 2], arc))
    shape, origin, start, items = build_grid(track.walls, track.solids)
    return PreparedTrack(track, line, bake(track), shape, origin, start, items)


class TrackBank:
    """A fixed number of slots, each holding one track; `bank` is what the kernels are given."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.tracks: list[Track | None] = [None] * slots
        self._arrays: dict[str, NDArray[Any]] = _empty_arrays(slots)
        self._blocks: list[tuple[int, int]] = [(0, 0)] * slots  # first tile and capacity of each slot
        self._free: list[tuple[int, int]] = []
        self._used_tiles = 0
        self._bank: Bank | None = None

    @property
    def bank(self) -> Bank:
        """The arrays as one tuple; a tuple taken before a `put` may refer to arrays since replaced."""
        if self._bank is None:
            self._bank = Bank(**self._arrays)
        return self._bank

    @property
    def nbytes(self) -> int:
        """Memory held by all slots."""
        return sum(array.nbytes for array in self._arrays.values())

    def put(self, slot: int, prepared: PreparedTrack) -> None:
        """Replace the track of `slot`; the other slots' contents stay as they are."""
        track = prepared.track
        self.tracks[slot] = track
        arrays = self._arrays
        arrays["closed"][slot] = track.closed
        arrays["length"][slot] = track.length
        arrays["reach"][slot] = max(abs(edge) for edge in track.half_widths) + SHOULDER
        arrays["ground_y"][slot] = track.ground_y
        self._fill("node_count", "nodes", slot, track.nodes)
        self._fill("line_count", "line", slot, prepared.line)
        self._fill("zone_count", "zones", slot, track.friction_zones)
        self._fill("wall_count", "walls", slot, track.walls)
        self._fill("solid_count", "solids", slot, track.solids)
        self._copy("wall_balls", slot, wall_balls(track.walls))
        self._copy("solid_balls", slot, solid_balls(track.solids))
        self._fill("start_line_count", "start_lines", slot, track.start_lines)
        heights = track.heights
        if heights is None:
            arrays["height_shape"][slot] = 0
        else:
            arrays["height_shape"][slot] = heights.grid.shape
            arrays["height_origin"][slot] = heights.x0, heights.z0, heights.cell
            arrays["height_top"][slot] = heights.grid.max()
            self._copy("heights", slot, heights.grid)
        arrays["grid_shape"][slot] = prepared.grid_shape
        arrays["grid_origin"][slot] = prepared.grid_origin
        self._copy("grid_start", slot, prepared.grid_start)
        self._copy("grid_items", slot, prepared.grid_items)
        self._put_texture(slot, prepared.texture)

    def _put_texture(self, slot: int, texture: GroundTexture) -> None:
        base = self._allocate(slot, len(texture.tiles))
        self._arrays["tiles"][base : base + len(texture.tiles)] = texture.tiles
        self._arrays["tile_base"][slot] = base
        self._arrays["tile_shape"][slot] = texture.tile_shape
        self._arrays["tile_origin"][slot] = texture.tile_origin
        self._copy("tile_map", slot, texture.tile_map + base)

    def _fill(self, count: str, name: str, slot: int, values: NDArray[Any]) -> None:
        self._arrays[count][slot] = len(values)
        self._copy(name, slot, values)

    def _copy(self, name: str, slot: int, values: NDArray[Any]) -> None:
        """Copy `values` into the slot's corner of a padded array, growing the array when they do not fit."""
        array = self._arrays[name]
        if any(have < need for have, need in zip(array.shape[1:], values.shape)):
            shape = [max(have, _roomy(need)) for have, need in zip(array.shape[1:], values.shape)]
            grown = np.zeros((self.slots, *shape), array.dtype)
            grown[tuple(slice(size) for size in array.shape)] = array
            self._arrays[name] = array = grown
            self._bank = None
        array[slot][tuple(slice(size) for size in values.shape)] = values

    def _allocate(self, slot: int, tiles: int) -> int:
        """First tile of a block of at least `tiles` for `slot`: its own, a freed one, or a new one at the end."""
        first, capacity = self._blocks[slot]
        if tiles <= capacity:
            return first
        if capacity:
            self._free.append((first, capacity))
        fitting = [block for block in self._free if block[1] >= tiles]
        if fitting:
            block = min(fitting, key=lambda candidate: candidate[1])
            self._free.remove(block)
        else:
            block = (self._used_tiles, _roomy(tiles))
            self._used_tiles += block[1]
            self._reserve_tiles()
        self._blocks[slot] = block
        return block[0]

    def _reserve_tiles(self) -> None:
        tiles = self._arrays["tiles"]
        if len(tiles) >= self._used_tiles:
            return
        # np.empty: pages of the pool that no track uses are never touched, so they cost no memory
        grown = np.empty((max(self._used_tiles, len(tiles) * 5 // 4), TILE_TEXELS), np.uint16)
        grown[: len(tiles)] = tiles
        self._arrays["tiles"] = grown
        self._bank = None


def _roomy(need: int) -> int:
    """A little more than needed, so that the next random road rarely makes an array grow again."""
    return need if need <= 8 else need + need // 8


def _empty_arrays(slots: int) -> dict[str, NDArray[Any]]:
    def zeros(*shape: int, dtype: Any = np.float64) -> NDArray[Any]:
        return np.zeros((slots, *shape), dtype)

    int32, float64 = np.int32, np.float64
    return {
        "closed": zeros(dtype=np.uint8),
        "length": zeros(dtype=float64),
        "node_count": zeros(dtype=int32),
        "nodes": zeros(1, 3),
        "line_count": zeros(dtype=int32),
        "line": zeros(1, 3),
        "reach": zeros(dtype=float64),
        "ground_y": zeros(dtype=float64),
        "height_shape": zeros(2, dtype=int32),
        "height_origin": zeros(3),
        "heights": zeros(1, 1, dtype=np.float32),
        "height_top": zeros(),
        "zone_count": zeros(dtype=int32),
        "zones": zeros(1, ZONE_COLUMNS),
        "tile_shape": zeros(2, dtype=int32),
        "tile_origin": zeros(3),
        "tile_map": zeros(1, 1, dtype=int32),
        "tile_base": zeros(dtype=int32),
        "tiles": np.zeros((0, TILE_TEXELS), np.uint16),
        "wall_count": zeros(dtype=int32),
        "walls": zeros(1, WALL_COLUMNS),
        "wall_balls": zeros(4, 1),
        "solid_count": zeros(dtype=int32),
        "solids": zeros(1, SOLID_COLUMNS),
        "solid_balls": zeros(4, 1),
        "grid_shape": zeros(2, dtype=int32),
        "grid_origin": zeros(3),
        "grid_start": zeros(2, dtype=int32),
        "grid_items": zeros(1, dtype=int32),
        "start_line_count": zeros(dtype=int32),
        "start_lines": zeros(1, LINE_COLUMNS),
    }
