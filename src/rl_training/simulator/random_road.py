"""Random roads: an endless family of closed circuits, each a pure function of its seed and difficulty.

Difficulty 0 is a wide, short, flat road with wide bends; 1 is narrow, long and hilly with hairpins as tight as the car
can take. Seeds come in three ranges that never overlap, so that a champion can be tested on roads it has not seen:
``random:train:17`` is a name for `load_track`, ``random:test:3@0.7`` sets the difficulty too.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from rl_training.errors import TrackError, did_you_mean
from rl_training.simulator.material_colors import RGB, material_colors
from rl_training.simulator.path_geometry import directions
from rl_training.simulator.random_plan import draw_plan, trace
from rl_training.simulator.scenery import height_of, rolling
from rl_training.simulator.track import Floats, HeightField, Light, Material, Strip, Track

_SPLIT = 10**8
SEED_RANGES = {
    "train": range(_SPLIT),
    "validation": range(_SPLIT, 2 * _SPLIT),
    "test": range(2 * _SPLIT, 3 * _SPLIT),
}
DEFAULT_DIFFICULTY = 0.5

# At difficulty 0 and at 1. The tightest radius leaves room for the road's wider side on the inside of the bend.
LENGTHS = (150.0, 450.0)
WIDTHS = (12.0, 7.0)
TIGHTEST = (14.0, 6.5)
HILL_HEIGHT = 4.0  # greatest height above or below the mean at difficulty 1; none below 0.5 [u]
STEEPEST = 0.12
CLEARANCE = 2.0  # between the edges of two stretches of road [u]
_NODE_STEP = 2.0
_LINE_STEP = 0.5
_START_LINE_AHEAD = 4.0
_HILL_CELL = 4.0
_HILL_MARGIN = 60.0  # of ground with hills around the road [u]

# (ground, road), for roads of a colour of their own, and grounds on which only the lines make the road.
_PAVED: tuple[tuple[RGB, RGB], ...] = (
    ((72, 80, 28), (108, 107, 104)),
    ((134, 122, 70), (166, 162, 154)),
    ((150, 128, 96), (100, 100, 101)),
    ((150, 92, 64), (122, 117, 112)),
    ((48, 66, 32), (68, 68, 72)),
    ((104, 52, 38), (198, 200, 199)),
    ((206, 210, 216), (76, 78, 82)),
    ((96, 110, 60), (150, 120, 88)),
)
_BARE: tuple[RGB, ...] = (
    (96, 96, 98),
    (134, 128, 122),
    (146, 140, 130),
    (72, 80, 28),
    (92, 62, 48),
    (58, 66, 84),
)


def road_seed(split: str, index: int) -> int:
    """The seed of road `index` of a split: ``train``, ``validation`` or ``test``."""
    if split not in SEED_RANGES:
        raise TrackError(f"There is no split '{split}' of random roads.{did_you_mean(split, SEED_RANGES)}")
    if not 0 <= index < _SPLIT:
        raise TrackError(f"A random road's index must lie from 0 to {_SPLIT - 1}, not {index}.")
    return SEED_RANGES[split][index]


def random_road_by_name(name: str) -> Track:
    """``random:SPLIT:INDEX`` or ``random:SPLIT:INDEX@DIFFICULTY``."""
    match = re.fullmatch(r"random:(\w+):(\d+)(?:@(\d*\.?\d+))?", name)
    if match is None:
        raise TrackError(
            f"'{name}' is no random road; write 'random:train:17', or 'random:train:17@0.7' to set how hard."
        )
    split, index, difficulty = match.groups()
    return random_road(road_seed(split, int(index)), float(difficulty or DEFAULT_DIFFICULTY))


def random_road(seed: int, difficulty: float = DEFAULT_DIFFICULTY) -> Track:
    """A closed road; equal arguments give equal roads."""
    if not 0.0 <= difficulty <= 1.0:
        raise TrackError(f"A road's difficulty must lie from 0 (easy) to 1 (hard), not {difficulty:g}.")
    rng = np.random.default_rng(seed)
    half_widths = _draw_width(rng, difficulty)
    line, nodes = _draw_path(rng, difficulty, max(-half_widths[0], half_widths[1]))
    heights = _draw_hills(rng, difficulty, line)
    if heights is not None:
        for points in (line, nodes):
            points[:, 1] = height_of(heights, points[:, [0, 2]])
    colors, paved, indoor = _draw_colors(rng)
    start_line = line[round(_START_LINE_AHEAD / _LINE_STEP)]
    yaw = float(np.arctan2(*directions(line, True)[0]))
    middle = 0.5 * (half_widths[0] + half_widths[1])
    across = start_line[[0, 2]] + middle * np.array([np.cos(yaw), -np.sin(yaw)])
    return Track(
        name=f"random:{seed}@{difficulty:g}",
        closed=True,
        nodes=nodes,
        line=line,
        length=float(np.hypot(*(np.roll(line, -1, axis=0) - line)[:, [0, 2]].T).sum()),
        strips=_draw_strips(rng, half_widths, paved),
        half_widths=half_widths,
        colors=colors,
        ground_roughness=float(rng.uniform(0.15, 0.8)),
        heights=heights,
        starts=np.array([[*line[0], yaw]]),
        start_lines=np.array([[0.0, *across, yaw, 0.5 * (half_widths[1] - half_widths[0]), 1.5]]),
        light=_draw_light(rng, indoor),
        description=f"random road {seed}, difficulty {difficulty:g}",
    )


def _between(ends: tuple[float, float], difficulty: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * difficulty


def _draw_width(rng: np.random.Generator, difficulty: float) -> tuple[float, float]:
    """(left, right) edges: the path is the middle of the road, or of its right half."""
    width = _between(WIDTHS, difficulty)
    shift = 0.2 * width if rng.random() < 0.5 else 0.0
    return -0.5 * width - shift, 0.5 * width - shift


def _draw_path(rng: np.random.Generator, difficulty: float, widest: float) -> tuple[Floats, Floats]:
    """(line, nodes) around the origin, starting in the middle of the longest straight; y is 0."""
    length = float(np.clip(_between(LENGTHS, difficulty) * rng.uniform(0.85, 1.15), *LENGTHS))
    turns = 5 + int(rng.random() * (2.0 + 7.0 * difficulty) + 2.0 * difficulty)
    plan = draw_plan(rng, turns, length, _between(TIGHTEST, difficulty), 2.0 * widest + CLEARANCE, difficulty)
    longest = int(plan[2].argmax())
    angles, radii, straights = (np.append(np.roll(part, -longest), 0.0) for part in plan)
    straights[[0, -1]] = 0.5 * straights[0]
    radii[-1] = 1.0
    if rng.random() < 0.5:
        angles = -angles
    yaw = rng.uniform(0.0, 2.0 * np.pi)
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    paths = []
    for count in (int(np.ceil(length / _LINE_STEP)), round(length / _NODE_STEP)):
        flat = np.empty((count, 2))
        trace(angles, radii, straights, flat)
        paths.append(flat @ turn)
    middle = 0.5 * (paths[0].min(axis=0) + paths[0].max(axis=0))
    line, nodes = (np.insert(flat - middle, 1, 0.0, axis=1) for flat in paths)
    return line, nodes


def _draw_hills(rng: np.random.Generator, difficulty: float, line: Floats) -> HeightField | None:
    """Long waves under road and land alike, never steeper than STEEPEST; None where the ground is flat."""
    height = HILL_HEIGHT * (2.0 * difficulty - 1.0) * rng.uniform(0.4, 1.0)
    if height <= 0.05:
        return None
    low = line[:, [0, 2]].min(axis=0) - _HILL_MARGIN
    columns, rows = np.ceil((line[:, [0, 2]].max(axis=0) + _HILL_MARGIN - low) / _HILL_CELL).astype(int) + 1
    places = np.stack(
        np.meshgrid(low[0] + _HILL_CELL * np.arange(columns), low[1] + _HILL_CELL * np.arange(rows)), axis=-1
    ).reshape(-1, 2)
    grid = rolling(places, rng.uniform(110.0, 180.0), rng).reshape(rows, columns)
    along_x, along_z = np.abs(np.diff(grid, axis=1)).max(), np.abs(np.diff(grid, axis=0)).max()
    slope = float(np.hypot(along_x, along_z)) / _HILL_CELL
    grid *= min(height / float(np.abs(grid).max()), STEEPEST / slope)
    return HeightField(float(low[0]), float(low[1]), _HILL_CELL, grid.astype(np.float32))


def _draw_colors(rng: np.random.Generator) -> tuple[NDArray[np.uint8], bool, bool]:
    """(colours by material, whether the road has a surface of its own, whether it lies in a room)."""
    paved = bool(rng.random() < 0.75)
    if paved:
        ground, road = _PAVED[rng.integers(len(_PAVED))]
    else:
        ground = road = _BARE[rng.integers(len(_BARE))]
    changes = {Material.GROUND: _vary(rng, ground), Material.ROAD: _vary(rng, road)}
    table = material_colors(changes).astype(np.int64)
    table[[Material.LINE_WHITE, Material.LINE_YELLOW]] += rng.integers(-20, 21, (2, 3))
    return np.clip(table, 0, 255).astype(np.uint8), paved, bool(not paved and rng.random() < 0.6)


def _vary(rng: np.random.Generator, color: RGB) -> RGB:
    """The colour a little brighter or darker."""
    red, green, blue = np.clip(np.array(color) + rng.integers(-14, 15), 0, 255)
    return int(red), int(green), int(blue)


def _draw_strips(rng: np.random.Generator, half_widths: tuple[float, float], paved: bool) -> tuple[Strip, ...]:
    """Surface, edge lines and centre line, each in one of its usual styles; a road without surface always has edges."""
    left, right = half_widths
    width = right - left
    strips = []
    if paved:
        if rng.random() < 0.3:
            strips.append(Strip(left - 0.6, right + 0.6, Material.SHOULDER, roughness=0.6))
        strips.append(Strip(left, right, Material.ROAD, roughness=float(rng.uniform(0.05, 0.5))))
    line_width = float(rng.uniform(0.22, 0.42))
    inset = float(rng.uniform(0.0, 0.1)) * width + line_width
    if not paved or rng.random() < 0.8:
        material = Material.LINE_WHITE if rng.random() < 0.75 else Material.LINE_YELLOW
        dash = _draw_dash(rng, 0.15)
        for edge in (left + inset, right - inset):
            strips.append(Strip(edge - line_width / 2, edge + line_width / 2, material, *dash))
    if rng.random() < 0.75:
        material = Material.LINE_YELLOW if rng.random() < 0.65 else Material.LINE_WHITE
        middle = 0.5 * (left + right)
        strips.append(Strip(middle - line_width / 2, middle + line_width / 2, material, *_draw_dash(rng, 0.6)))
    return tuple(strips)


def _draw_dash(rng: np.random.Generator, chance: float) -> tuple[float, float]:
    """(length, gap) of dashes, (0, 0) for a solid line."""
    if rng.random() >= chance:
        return 0.0, 0.0
    return float(rng.uniform(0.9, 3.2)), float(rng.uniform(0.8, 3.6))


def _draw_light(rng: np.random.Generator, indoor: bool) -> Light:
    """A sun at 35° to 75° in any direction, or a room's even light."""
    height, side = np.radians(rng.uniform(35.0, 75.0)), rng.uniform(0.0, 2.0 * np.pi)
    flat = np.cos(height)
    direction = (float(flat * np.sin(side)), float(-np.sin(height)), float(flat * np.cos(side)))
    if indoor:
        return Light(direction, sun=0.2, ambient=0.85, zenith=(150, 148, 142), horizon=(186, 182, 172), indoor=True)
    return Light(direction)
