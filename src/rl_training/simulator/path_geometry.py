"""Curves on the ground: splines through points, equal steps along them, sides, projections. Numpy only, host side.

Symbols and shapes
    points        (N, 3) x, y, z [u]; lengths are measured on the ground plane, y is carried along
    closed        the last point joins the first; a closed array never repeats its first point
    arc           distance along the path from its first point [u]
    offset        distance across the path, + = right of the direction of travel [u]
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.track import Floats

LINE_STEP = 0.5  # longest step of `Track.line` [u]
_FINE_STEP = 0.1  # a spline is cut into pieces this long before it is measured


def arcs(points: Floats, closed: bool) -> Floats:
    """Arc length at each point, and one more entry for the return to the first point if closed."""
    ring = np.concatenate([points, points[:1]]) if closed else points
    steps = np.hypot(*np.diff(ring[:, [0, 2]], axis=0).T)
    return np.concatenate([[0.0], np.cumsum(steps)])


def path_length(points: Floats, closed: bool) -> float:
    return float(arcs(points, closed)[-1])


def at_arcs(points: Floats, closed: bool, where: Floats) -> Floats:
    """Points of the polyline at given arc lengths, linear between its corners."""
    ring = np.concatenate([points, points[:1]]) if closed else points
    along = arcs(points, closed)
    return np.stack([np.interp(where, along, ring[:, axis]) for axis in range(3)], axis=1)


def equal_steps(points: Floats, closed: bool, count: int) -> Floats:
    """`count` points at equal steps, the first at the path's start, the last at its end if the path is open."""
    return at_arcs(points, closed, np.linspace(0.0, path_length(points, closed), count, endpoint=not closed))


def closely(points: Floats, closed: bool, step: float = LINE_STEP) -> Floats:
    """The polyline at equal steps of at most `step`."""
    pieces = max(int(np.ceil(path_length(points, closed) / step)), 2)
    return equal_steps(points, closed, pieces if closed else pieces + 1)


def smooth(points: Floats, closed: bool) -> Floats:
    """The cubic spline through `points` (continuous curvature), as a fine polyline."""
    ring = np.concatenate([points, points[:1]]) if closed else points
    knots = arcs(points, closed)
    bends = _second_derivatives(ring, np.diff(knots), closed)
    pieces = max(int(np.ceil(knots[-1] / _FINE_STEP)), 2)
    where = np.linspace(0.0, knots[-1], pieces, endpoint=False) if closed else np.linspace(0.0, knots[-1], pieces + 1)
    span = np.clip(np.searchsorted(knots, where, side="right") - 1, 0, len(knots) - 2)
    size = (knots[span + 1] - knots[span])[:, None]
    b = (where - knots[span])[:, None] / size
    a = 1.0 - b
    curve: Floats = (
        a * ring[span] + b * ring[span + 1] + ((a**3 - a) * bends[span] + (b**3 - b) * bends[span + 1]) * size**2 / 6.0
    )
    return curve


def _second_derivatives(ring: Floats, sizes: Floats, closed: bool) -> Floats:
    """Second derivatives of the interpolating cubic spline at its knots: periodic, or zero at open ends."""
    slopes = np.diff(ring, axis=0) / sizes[:, None]
    count = len(sizes)
    system = np.zeros((count, count))
    rows = np.arange(count)
    before = sizes[rows - 1]
    np.add.at(system, (rows, rows), 2.0 * (before + sizes))
    np.add.at(system, (rows, rows - 1), before)
    np.add.at(system, (rows, (rows + 1) % count), sizes)
    right = 6.0 * (slopes - slopes[rows - 1])
    if closed:
        bends = np.linalg.solve(system, right)
        return np.concatenate([bends, bends[:1]])
    inner = np.linalg.solve(system[1:, 1:], right[1:]) if count > 1 else np.zeros((0, 3))
    zero = np.zeros((1, 3))
    return np.concatenate([zero, inner, zero])


def turtle(start: tuple[float, float], heading: float, step: float, script: str) -> Floats:
    """Points of a path written as moves: ``S11`` is eleven steps straight, ``R9@15.5`` nine, turning right 15.5° each.

    A step turns first and goes forward after it; its point is where it began, so as many points as steps come back and
    the last step is the one that closes a closed path. `heading` in degrees.
    """
    x, z, yaw = start[0], start[1], np.radians(heading)
    points = []
    for kind, count, turn in moves(script):
        for _ in range(count):
            points.append((x, 0.0, z))
            yaw += np.radians(turn if kind == "R" else -turn)
            x, z = x + step * np.sin(yaw), z + step * np.cos(yaw)
    return np.array(points)


_MOVE = re.compile(r"(?:(S)(\d+)|([LR])(\d+)@(\d+(?:\.\d+)?))$")


def moves(script: str) -> list[tuple[str, int, float]]:
    """(kind, steps, degrees a step) of each move; raises ValueError with the word that is no move."""
    result = []
    for word in script.split():
        match = _MOVE.match(word)
        if match is None:
            raise ValueError(word)
        straight, steps, side, turns, degrees = match.groups()
        result.append(("S", int(steps), 0.0) if straight else (str(side), int(turns), float(degrees)))
    return result


def directions(points: Floats, closed: bool) -> Floats:
    """(N, 2) unit direction of travel (x, z) at each point, from the point before it to the one after it."""
    flat = points[:, [0, 2]]
    if closed:
        ahead, behind = np.roll(flat, -1, axis=0), np.roll(flat, 1, axis=0)
    else:
        ahead, behind = np.concatenate([flat[1:], flat[-1:]]), np.concatenate([flat[:1], flat[:-1]])
    travel: Floats = ahead - behind
    return travel / np.maximum(np.hypot(travel[:, 0], travel[:, 1]), 1e-12)[:, None]


def beside(points: Floats, closed: bool, offset: float | Floats) -> Floats:
    """The points moved `offset` to the right of the direction of travel."""
    travel = directions(points, closed)
    moved = points.copy()
    moved[:, 0] += offset * travel[:, 1]
    moved[:, 2] -= offset * travel[:, 0]
    return moved


def nearest(line: Floats, places: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Index of the nearest point of `line` to each of `places` (K, 2) x, z, and the distance to it."""
    index = np.empty(len(places), dtype=np.intp)
    distance = np.empty(len(places))
    for first in range(0, len(places), 128):  # few enough for the processor's cache
        few = slice(first, first + 128)
        across = places[few, :1] - line[:, 0]
        along = places[few, 1:] - line[:, 2]
        squares = across * across + along * along
        index[few] = squares.argmin(axis=1)
        distance[few] = np.sqrt(squares.min(axis=1))
    return index, distance


def turning(line: Floats, closed: bool) -> Floats:
    """Heading change at each point [rad], + = right."""
    flat = np.concatenate([line, line[:2]])[:, [0, 2]] if closed else line[:, [0, 2]]
    steps = np.diff(flat, axis=0)
    yaw = np.arctan2(steps[:, 0], steps[:, 1])
    change: Floats = (np.diff(yaw) + np.pi) % (2.0 * np.pi) - np.pi
    return change


def simplify(points: Floats, tolerance: float) -> Floats:
    """Fewer points of an open polyline: none that is dropped lay farther than `tolerance` from what remains."""
    keep = np.zeros(len(points), dtype=bool)
    keep[[0, -1]] = True
    stack = [(0, len(points) - 1)]
    while stack:
        first, last = stack.pop()
        if last - first < 2:
            continue
        chord = points[last, [0, 2]] - points[first, [0, 2]]
        gap = points[first + 1 : last, [0, 2]] - points[first, [0, 2]]
        size = float(np.hypot(*chord))
        far = np.abs(gap[:, 0] * chord[1] - gap[:, 1] * chord[0]) / size if size > 1e-9 else np.hypot(*gap.T)
        worst = int(far.argmax())
        if far[worst] > tolerance:
            keep[first + 1 + worst] = True
            stack += [(first, first + 1 + worst), (first + 1 + worst, last)]
    return points[keep]
