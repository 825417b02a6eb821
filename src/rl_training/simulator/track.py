"""What a track is: path, road, ground, solids, light. Plain data, made once on the host and packed into a bank.

Symbols and units
    x, z          position on the ground plane [u]; y is height [u]
    yaw           heading, clockwise from +z [rad]; forward is (sin yaw, cos yaw)
    offset        distance across the road from the path, + = right of the direction of travel [u]
    node          a point of the path as the Unity simulator holds it: cte, activeNode and totalNodes refer to nodes
    line          the same path, closely resampled: progress, laps and drawing refer to it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Material(IntEnum):
    """Sixteen roles a colour can play; a track gives each its RGB, randomisation changes them by role."""

    GROUND = 0
    GROUND_ALT = 1
    ROAD = 2
    SHOULDER = 3
    LINE_WHITE = 4
    LINE_YELLOW = 5
    FLOOR = 6
    FLOOR_ALT = 7
    PAINT = 8
    WALL = 9
    WALL_ALT = 10
    CONE = 11
    BALE = 12
    FOLIAGE = 13
    WOOD = 14
    CAR = 15


class Shape(IntEnum):
    """How a solid is drawn and what outline it collides with."""

    BOX = 0  # oriented box: half_x across, half_z along its yaw
    CYLINDER = 1  # tyre, barrel: upright, radius half_x
    CONE = 2  # traffic cone: radius half_x at the base
    TREE = 3  # trunk of radius half_x under a crown of radius half_z
    PERSON = 4  # upright figure: outline of a cylinder of radius half_x
    ARCH = 5  # gate over the road, half_x is half of its opening; never collides
    CHAIR = 6  # seat and back, which is on the side against its yaw; outline of a box
    TABLE = 7  # top and legs; outline of a box


# Columns of `Track.walls`: an upright face over a segment, seen and felt from both sides.
WALL_X0, WALL_Z0, WALL_X1, WALL_Z1, WALL_BASE0, WALL_BASE1, WALL_HEIGHT, WALL_MATERIAL, WALL_FRICTION, WALL_NAME = (
    range(10)
)
WALL_COLUMNS = 10

# Columns of `Track.solids`.
(
    SOLID_SHAPE,
    SOLID_X,
    SOLID_Z,
    SOLID_YAW,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_BASE,
    SOLID_HEIGHT,
    SOLID_MATERIAL,
    SOLID_FRICTION,
    SOLID_NAME,
    SOLID_BLOCKS,  # 1: collides, 0: a car passes through it and nothing is reported
) = range(12)
SOLID_COLUMNS = 12

# Columns of `Track.start_lines`: a trigger box on the ground, its long side across the heading `yaw`.
LINE_INDEX, LINE_X, LINE_Z, LINE_YAW, LINE_HALF_WIDTH, LINE_HALF_DEPTH = range(6)
LINE_COLUMNS = 6

# Columns of `Track.friction_zones`: a rectangle with a tyre friction of its own; later rows win.
ZONE_X, ZONE_Z, ZONE_YAW, ZONE_HALF_X, ZONE_HALF_Z, ZONE_FRICTION = range(6)
ZONE_COLUMNS = 6

DEFAULT_FRICTION = 0.6
WALL_FRICTION_DEFAULT = 0.1


@dataclass(frozen=True)
class Strip:
    """One band of the road's cross section, painted in order: later strips cover earlier ones."""

    left: float
    right: float
    material: Material
    dash_on: float = 0.0  # length of a dash; 0 means solid
    dash_off: float = 0.0
    roughness: float = 0.0  # 0 even paint … 1 strong grain

    def __post_init__(self) -> None:
        assert self.left < self.right, "a strip's left edge lies left of its right edge"


@dataclass(frozen=True)
class Decal:
    """A rectangle or ellipse painted on the ground: start line, mat, floor of a room, worn patch."""

    x: float
    z: float
    yaw: float
    half_x: float
    half_z: float
    material: Material
    roughness: float = 0.0
    ellipse: bool = False
    over_road: bool = False  # False: painted before the road, True: after it


@dataclass(frozen=True)
class HeightField:
    """Heights of the ground on a grid: ``grid[row, column]`` stands at (x0 + column·cell, z0 + row·cell)."""

    x0: float
    z0: float
    cell: float
    grid: NDArray[np.float32]


@dataclass(frozen=True)
class Light:
    """Sun and sky. ``direction`` points from the sun to the ground; colours RGB 0–255; ``sun``, ``ambient`` factors."""

    direction: tuple[float, float, float] = (-0.32, -0.77, 0.56)
    color: tuple[float, float, float] = (253, 247, 232)
    sun: float = 0.65
    ambient: float = 0.45
    zenith: tuple[float, float, float] = (84, 128, 188)
    horizon: tuple[float, float, float] = (196, 213, 228)
    indoor: bool = False  # rooms: even light, no cast shadows; zenith and horizon are the ceiling's colours


def _empty(columns: int) -> Floats:
    return np.zeros((0, columns))


@dataclass(frozen=True)
class Track:
    """A drivable world. Arrays are float64 unless said; nothing in it is changed after it was made."""

    name: str
    closed: bool
    nodes: Floats  # (N, 3) x, y, z as PathManager holds them
    line: Floats  # (M, 3) the path resampled at nearly equal steps of at most 0.5 u, without repeating the first point
    length: float  # along `line`, and back to its start if closed [u]
    strips: tuple[Strip, ...]
    half_widths: tuple[float, float]  # edges of what counts as road: (left, right) offsets, e.g. (-7.0, 3.0)
    colors: NDArray[np.uint8]  # (16, 3) RGB by Material
    ground_roughness: float = 0.5
    decals: tuple[Decal, ...] = ()
    ground_y: float = 0.0  # height of the ground where there is no height field
    heights: HeightField | None = None
    walls: Floats = field(default_factory=lambda: _empty(WALL_COLUMNS))
    solids: Floats = field(default_factory=lambda: _empty(SOLID_COLUMNS))
    names: tuple[str, ...] = ()  # what `hit` reports, by WALL_NAME and SOLID_NAME
    starts: Floats = field(default_factory=lambda: np.zeros((1, 4)))  # (K, 4) x, ground y, z, yaw
    start_lines: Floats = field(default_factory=lambda: _empty(LINE_COLUMNS))
    friction_zones: Floats = field(default_factory=lambda: _empty(ZONE_COLUMNS))
    start_grid: tuple[int, float, float] = (2, 4.5, 5.0)  # cars per row, column distance, row distance [u]
    light: Light = field(default_factory=Light)
    texel: float = 0.125  # size of a ground texel near the road [u]
    description: str = ""
