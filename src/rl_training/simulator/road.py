"""A road as scenery sees it: where its stretches pass, and lines that follow it without running across other stretches.

Lines beside the path are sampled, cleared of the points that do not belong, and merged to few straight pieces. A fold
on the inside of a tight bend then closes up, and a crossing stays open.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import path_geometry as geometry
from rl_training.simulator.track import Decal, Floats, Material

_STEP = 1.0  # of the samples of a line beside the path [u]
_TOLERANCE = 0.12  # straight pieces stay this close to the line they stand for [u]
_ON_ROAD = 2.0  # an outline ends where it would lie this far inside another stretch of road [u]


@dataclass(frozen=True)
class Road:
    """The path and the edges of the road it runs in."""

    line: Floats
    closed: bool
    half_widths: tuple[float, float]

    def is_clear(self, places: Floats, margin: float) -> NDArray[np.bool_]:
        """Which of `places` (K, 2) stand `margin` or more outside the edges of every stretch that passes them."""
        travel = geometry.directions(self.line, self.closed)
        clear = np.empty(len(places), dtype=bool)
        for first in range(0, len(places), 128):
            few = slice(first, first + 128)
            gap_x, gap_z = places[few, :1] - self.line[:, 0], places[few, 1:] - self.line[:, 2]
            along = gap_x * travel[:, 0] + gap_z * travel[:, 1]
            across = gap_x * travel[:, 1] - gap_z * travel[:, 0]
            beside = np.abs(along) <= 2.0 * geometry.LINE_STEP  # on the outside of bends the line's normals spread
            over = (across > self.half_widths[0] - margin) & (across < self.half_widths[1] + margin)
            clear[few] = ~(beside & over).any(axis=1)
        return clear

    def beside(self, offset: float, part: tuple[float, ...] = (0.0, 1.0)) -> Floats:
        """Points `offset` beside the path, over `part` of it (fractions of its length)."""
        moved = geometry.beside(self.line, self.closed, offset)
        moved = np.concatenate([moved, moved[:1]]) if self.closed else moved
        along = geometry.arcs(self.line, self.closed)
        first, last = part[0] * along[-1], part[1] * along[-1]
        where = np.linspace(first, last, max(int(np.ceil((last - first) / _STEP)), 1) + 1)
        return np.stack([np.interp(where, along, moved[:, axis]) for axis in range(3)], axis=1)

    def walls(self, offset: float, part: tuple[float, ...]) -> list[Floats]:
        """Polylines `offset` beside the path that come no nearer to any stretch of it."""
        points = self.beside(offset, part)
        _, distance = geometry.nearest(self.line, points[:, [0, 2]])
        return _pieces(points[distance > abs(offset) - 0.2])

    def _folded(self, points: Floats, offset: float) -> NDArray[np.bool_]:
        """Which points of `beside` lie in a fold: bends tighter than the offset bring them nearer to the path."""
        along = geometry.arcs(self.line, self.closed)
        length = along[-1]
        ahead = np.linspace(0.0, length, len(points))[:, None] - along[: len(self.line)]
        if self.closed:
            ahead = (ahead + 0.5 * length) % length - 0.5 * length
        same_bend = np.abs(ahead) < np.pi * abs(offset)
        away = np.hypot(points[:, :1] - self.line[:, 0], points[:, 2:] - self.line[:, 2])
        return np.asarray((same_bend & (away < abs(offset) - 0.2)).any(axis=1), np.bool_)

    def outline(self, offset: float, width: float, material: Material) -> list[Decal]:
        """A painted line `offset` beside the path, left out where it would lie on another stretch of road."""
        points = self.beside(offset)
        decals = []
        for piece in _pieces(points[self.is_clear(points[:, [0, 2]], -_ON_ROAD) & ~self._folded(points, offset)]):
            for (x0, _, z0), (x1, _, z1) in pairwise(piece):
                half_length = 0.5 * float(np.hypot(x1 - x0, z1 - z0)) + 0.25 * width  # pieces overlap at their joints
                yaw = float(np.arctan2(x1 - x0, z1 - z0))
                decals.append(
                    Decal((x0 + x1) / 2, (z0 + z1) / 2, yaw, width / 2, half_length, material, over_road=True)
                )
        return decals


def _pieces(points: Floats) -> list[Floats]:
    """The runs of points whose neighbours remained, each with as few points as will do."""
    gaps = np.hypot(*np.diff(points[:, [0, 2]], axis=0).T)
    runs = np.split(points, np.flatnonzero(gaps > 4.0 * _STEP) + 1)
    return [geometry.simplify(run, _TOLERANCE) for run in runs if len(run) > 1]
