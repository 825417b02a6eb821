"""What stands beside the road, as a track file asks for it: walls, solids in place, in rows or scattered, hilly ground.

All of it becomes rows of `Track.walls` and `Track.solids` and one `HeightField`. The caller brings the generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rl_training.errors import TrackError
from rl_training.simulator import path_geometry as geometry
from rl_training.simulator.road import Road
from rl_training.simulator.track import (
    DEFAULT_FRICTION,
    SOLID_COLUMNS,
    WALL_COLUMNS,
    WALL_FRICTION_DEFAULT,
    Floats,
    HeightField,
    Material,
    Shape,
)
from rl_training.simulator.yaml_fields import Fields


@dataclass(frozen=True)
class _Looks:
    """A shape's usual size and material: (half_x, half_z, height)."""

    half_x: float
    half_z: float
    height: float
    material: Material


_USUAL = {
    Shape.BOX: _Looks(0.5, 0.5, 1.0, Material.WOOD),
    Shape.CYLINDER: _Looks(0.6, 0.6, 1.2, Material.CAR),
    Shape.CONE: _Looks(0.45, 0.45, 1.2, Material.CONE),
    Shape.TREE: _Looks(0.35, 1.8, 6.0, Material.FOLIAGE),
    Shape.PERSON: _Looks(0.7, 0.5, 5.5, Material.CAR),
    Shape.ARCH: _Looks(6.0, 0.3, 5.0, Material.PAINT),
    Shape.CHAIR: _Looks(0.8, 0.8, 3.2, Material.WOOD),
    Shape.TABLE: _Looks(1.6, 3.0, 2.6, Material.WOOD),
}


class Names:
    """The names that `hit` can report, numbered in order of appearance."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self._index.setdefault(name, len(self._index))

    def all(self) -> tuple[str, ...]:
        return tuple(self._index)


def read_walls(fields: Fields, road: Road, names: Names) -> Floats:
    """Rows of `Track.walls` for one entry: ``offset`` along the path, a ``room``, or ``points``; bases still zero."""
    name = names.number(fields.text("name", "wall"))
    height = fields.number("height", 3.0, low=0.05)
    friction = fields.number("friction", WALL_FRICTION_DEFAULT, low=0.0)
    material = fields.material("material", "wall")
    kind = fields.one_of("offset", "room", "points")
    if kind == "offset":
        part = fields.numbers("part", 2, (0.0, 1.0))
        if not 0.0 <= part[0] < part[1] <= 1.0:
            raise fields.wrong("part", "[from, to], fractions of the path with 0 <= from < to <= 1")
        pieces = road.walls(fields.number("offset"), part)
    elif kind == "room":
        x0, z0, x1, z1 = fields.numbers("room", 4)
        pieces = [np.array([[x0, 0, z0], [x1, 0, z0], [x1, 0, z1], [x0, 0, z1], [x0, 0, z0]], dtype=np.float64)]
    else:
        points = raised(fields.rows("points", (2,), least=2))
        pieces = [np.concatenate([points, points[:1]]) if fields.flag("closed", False) else points]
    fields.finish()
    rows = np.zeros((sum(len(piece) - 1 for piece in pieces), WALL_COLUMNS))
    if len(rows):
        rows[:, :2] = np.concatenate([piece[:-1, [0, 2]] for piece in pieces])
        rows[:, 2:4] = np.concatenate([piece[1:, [0, 2]] for piece in pieces])
    rows[:, 6:] = height, float(material), friction, name
    return rows


def read_solids(fields: Fields, road: Road, names: Names, rng: np.random.Generator) -> Floats:
    """Rows of `Track.solids` for one entry: ``at`` places, ``beside`` the path, in a ``row`` or by ``scatter``."""
    shape = Shape[fields.choice("shape", [shape.name.lower() for shape in Shape]).upper()]
    usual = _USUAL[shape]
    half_x, half_z = fields.numbers("half_size", 2, (usual.half_x, usual.half_z))
    name = names.number(fields.text("name", shape.name.lower()))
    blocks = fields.flag("blocks", shape is not Shape.ARCH)
    kind = fields.one_of("at", "beside", "row", "scatter")
    if kind == "at":
        places = _places(fields.rows("at", (2, 3)))
    elif kind == "beside":
        places = _beside(fields.rows("beside", (2,)), road)
    elif kind == "row":
        places = _row(fields.section("row"))
    else:
        places = _scatter(fields.section("scatter"), road, rng)
    rows = np.zeros((len(places), SOLID_COLUMNS))
    rows[:, 0] = float(shape)
    rows[:, 1:4] = places
    rows[:, 4:6] = half_x, half_z
    rows[:, 7] = fields.number("height", usual.height, low=0.05)
    rows[:, 8] = float(fields.material("material", usual.material.name.lower()))
    rows[:, 9] = fields.number("friction", DEFAULT_FRICTION, low=0.0)
    rows[:, 10:] = name, float(blocks)
    fields.finish()
    return rows


def _places(rows: Floats) -> Floats:
    """(K, 3) x, z, yaw in radians from rows of x, z and perhaps degrees."""
    yaw = rows[:, 2] if rows.shape[1] == 3 else np.zeros(len(rows))
    return np.column_stack([rows[:, :2], np.radians(yaw)])


def _beside(rows: Floats, road: Road) -> Floats:
    """Places from rows of [fraction of the path, offset], each turned along the path."""
    index = np.round(rows[:, 0] * len(road.line)).astype(int) % len(road.line)
    travel = geometry.directions(road.line, road.closed)[index]
    x = road.line[index, 0] + rows[:, 1] * travel[:, 1]
    z = road.line[index, 2] - rows[:, 1] * travel[:, 0]
    return np.column_stack([x, z, np.arctan2(travel[:, 0], travel[:, 1])])


def _row(fields: Fields) -> Floats:
    """Things standing shoulder to shoulder along a curve, each turned along it."""
    closed = fields.flag("closed", False)
    curve = geometry.smooth(raised(fields.rows("points", (2,), least=2)), closed)
    count = fields.count("count", low=2)
    fields.finish()
    points = geometry.equal_steps(curve, closed, count)
    travel = geometry.directions(points, closed)
    return np.column_stack([points[:, [0, 2]], np.arctan2(travel[:, 0], travel[:, 1])])


def _scatter(fields: Fields, road: Road, rng: np.random.Generator) -> Floats:
    """Things at random beside the path (`distance` from it, either side), or around a random point of it (`jitter`).

    Those with a `distance` keep off the road, of every branch of it; those with a `jitter` stand anywhere.
    """
    count = fields.count("count", low=1)
    if "jitter" in fields:
        jitter = fields.number("jitter", low=0.0)
        fields.finish()
        middle = road.line[rng.integers(len(road.line) // 10, len(road.line) * 9 // 10, count)][:, [0, 2]]
        spots = middle + rng.uniform(-jitter, jitter, (count, 2))
        return np.column_stack([spots, np.zeros(count)])
    near, far = fields.numbers("distance", 2)
    clear = fields.number("clear", 1.0, low=0.0)
    fields.finish()
    found = np.zeros((0, 2))
    for _ in range(50):
        middle = road.line[rng.integers(0, len(road.line), count)][:, [0, 2]]
        angle, reach = rng.uniform(0, 2 * np.pi, count), rng.uniform(near, far, count)
        spots = middle + np.column_stack([reach * np.sin(angle), reach * np.cos(angle)])
        _, distance = geometry.nearest(road.line, spots)
        good = (distance >= near) & road.is_clear(spots, clear)
        found = np.concatenate([found, spots[good]])[:count]
        if len(found) == count:
            return np.column_stack([found, rng.uniform(0, 2 * np.pi, count)])
    raise TrackError(f"{fields.where}: no room for {count} things at {near:g} to {far:g} u; allow a larger distance.")


def read_hills(fields: Fields, road: Road, rng: np.random.Generator) -> HeightField:
    """Ground as high as the road wherever the road is near, with hills of `height` [u] away from it."""
    cell = fields.number("cell", 4.0, low=0.5)
    margin = fields.number("margin", 40.0, low=1.0)
    height = fields.number("height", 0.0)
    width = fields.number("width", 60.0, low=1.0)
    fields.finish()
    low = road.line[:, [0, 2]].min(axis=0) - margin
    columns, rows = np.ceil((road.line[:, [0, 2]].max(axis=0) + margin - low) / cell).astype(int) + 1
    x = low[0] + cell * np.arange(columns)
    z = low[1] + cell * np.arange(rows)
    places = np.stack(np.meshgrid(x, z), axis=-1).reshape(-1, 2)
    coarse = geometry.closely(road.line, road.closed, step=cell / 2)
    blended, distance = _blend(coarse, places, reach=cell)
    edge = max(-road.half_widths[0], road.half_widths[1]) + cell
    rise = np.clip((distance - edge) / width, 0.0, 1.0)
    waves = 0.5 * (1.0 + rolling(places, 1.5 * width, rng))
    grid = blended + height * rise**2 * (3.0 - 2.0 * rise) * waves
    return HeightField(float(low[0]), float(low[1]), cell, grid.reshape(rows, columns).astype(np.float32))


def _blend(line: Floats, places: Floats, reach: float) -> tuple[Floats, Floats]:
    """Height of the road as each place sees it, near stretches counting most, and the distance to the nearest one.

    `reach` smooths along the road; it must exceed the step of `line`, or the road would become a staircase.
    """
    heights, distances = np.empty(len(places)), np.empty(len(places))
    for first in range(0, len(places), 128):  # few enough for the processor's cache
        few = slice(first, first + 128)
        across = places[few, :1] - line[:, 0]
        along = places[few, 1:] - line[:, 2]
        squares = across * across + along * along
        softened = squares + reach * reach
        weights = 1.0 / (softened * softened * softened)
        heights[few] = weights @ line[:, 1] / weights.sum(axis=1)
        distances[few] = np.sqrt(squares.min(axis=1))
    return heights, distances


def rolling(places: Floats, length: float, rng: np.random.Generator) -> Floats:
    """A smooth random field, mostly between -1 and 1, whose hills lie about `length` apart."""
    angles, phases = rng.uniform(0, 2 * np.pi, (2, 5))
    lengths = length * rng.uniform(0.7, 1.4, 5)
    across = places[:, :1] * np.sin(angles) + places[:, 1:] * np.cos(angles)
    field: Floats = np.sin(2 * np.pi * across / lengths + phases).sum(axis=1) / 3.0
    return field


def height_of(heights: HeightField, places: Floats) -> Floats:
    """Bilinear heights at (K, 2) places, the nearest edge outside: the same rule as `ground.height_at`."""
    rows, columns = heights.grid.shape
    column = np.clip((places[:, 0] - heights.x0) / heights.cell, 0.0, columns - 1.001)
    row = np.clip((places[:, 1] - heights.z0) / heights.cell, 0.0, rows - 1.001)
    j, i = column.astype(int), row.astype(int)
    a, b = column - j, row - i
    grid = heights.grid.astype(np.float64)
    near = grid[i, j] * (1 - a) + grid[i, j + 1] * a
    far = grid[i + 1, j] * (1 - a) + grid[i + 1, j + 1] * a
    result: Floats = near * (1 - b) + far * b
    return result


def raised(rows: Floats) -> Floats:
    """(K, 3) points from rows of x, z (at height 0) or x, y, z."""
    if rows.shape[1] == 3:
        return rows
    return np.column_stack([rows[:, 0], np.zeros(len(rows)), rows[:, 1]])
