"""Tracks by name, and track files: YAML in, `Track` out.

A name is one of the simulator's scenes, ``random:SPLIT:INDEX`` with an optional ``@DIFFICULTY``, or the path of a track
file of your own. What Unity draws when it loads a scene (trees, the loose cone, the sun) is drawn from `seed` here.
The format is described in ``docs/track_files.md``; the files in ``assets/tracks`` show every key in use.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
import yaml

from rl_training.errors import TrackError, did_you_mean
from rl_training.simulator import path_geometry as geometry
from rl_training.simulator.material_colors import RGB, material_colors
from rl_training.simulator.road import Road
from rl_training.simulator.scenery import Names, height_of, raised, read_hills, read_solids, read_walls
from rl_training.simulator.track import (
    LINE_COLUMNS,
    SOLID_BASE,
    SOLID_COLUMNS,
    SOLID_X,
    SOLID_Z,
    WALL_BASE0,
    WALL_BASE1,
    WALL_COLUMNS,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
    ZONE_COLUMNS,
    Decal,
    Floats,
    HeightField,
    Light,
    Material,
    Strip,
    Track,
)
from rl_training.simulator.yaml_fields import Fields

MOST_START_LINES = 32  # a car remembers in the bits of a number which of them it stands in

SCENES = (
    "generated_road",
    "warehouse",
    "sparkfun_avc",
    "generated_track",
    "roboracingleague_1",
    "waveshare",
    "mini_monaco",
    "warren",
    "circuit_launch",
    "mountain_track",
    "thunderhill",
)


def track_names() -> list[str]:
    """The scenes, in the order in which the Unity simulator lists them."""
    return list(SCENES)


def load_track(name_or_path: str, seed: int = 0) -> Track:
    """The track of that name or file; equal arguments give equal tracks."""
    if name_or_path == "generated_road":
        from rl_training.simulator.generated_road import generated_road

        return generated_road(seed)
    if name_or_path.startswith("random:"):
        from rl_training.simulator.random_road import random_road_by_name  # compiles kernels: not for a mere listing

        return random_road_by_name(name_or_path)
    if name_or_path in SCENES:
        return read_track_file(resources.files("rl_training") / "assets" / "tracks" / f"{name_or_path}.yaml", seed)
    if name_or_path.endswith((".yaml", ".yml")) or os.sep in name_or_path:
        return read_track_file(Path(name_or_path), seed)
    raise TrackError(
        f"There is no track '{name_or_path}'.{did_you_mean(name_or_path, SCENES)}"
        " A track may also be 'random:train:17', or the path of a YAML file."
    )


def read_track_file(path: str | Path | Traversable, seed: int = 0) -> Track:
    """The track a YAML file describes, with its random scenery drawn from `seed`."""
    file = Path(path) if isinstance(path, str) else path
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrackError(f"The track file '{path}' cannot be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        detail = " ".join(str(error).split())
        raise TrackError(f"The track file '{path}' is not valid YAML: {detail}.") from error
    return _track(Fields(document, file.name), Path(file.name).stem, np.random.default_rng(seed))


def _track(fields: Fields, stem: str, rng: np.random.Generator) -> Track:
    ground = fields.section("ground", {})
    ground_y = ground.number("y", 0.0)
    closed, nodes, line, node_height = _path(fields.section("path"), ground_y)
    road, strips, outlines = _road(fields.section("road"), line, closed)
    names = Names()
    wall_rows = [read_walls(entry, road, names) for entry in fields.sections("walls")]
    walls = np.concatenate([np.zeros((0, WALL_COLUMNS)), *wall_rows])
    solid_rows = [read_solids(entry, road, names, rng) for entry in fields.sections("solids")]
    solids = np.concatenate([np.zeros((0, SOLID_COLUMNS)), *solid_rows])
    light = _light(fields.section("light", {}), rng)
    heights = read_hills(ground.section("hills"), road, rng) if "hills" in ground else None
    starts = _starts(fields.rows("starts", (3,)))
    _stand(heights, ground_y, line, walls, solids, starts)
    if heights is not None:
        nodes[:, 1] = height_of(heights, nodes[:, [0, 2]])
    nodes[:, 1] += node_height
    per_row, columns, rows = fields.numbers("start_grid", 3, (2, 4.5, 5.0))
    if per_row < 1 or per_row % 1:
        raise fields.wrong("start_grid", "[cars in a row (1, 2, ...), column distance, row distance]")
    track = Track(
        name=stem,
        closed=closed,
        nodes=nodes,
        line=line,
        length=geometry.path_length(line, closed),
        strips=strips,
        half_widths=road.half_widths,
        colors=material_colors(_colors(fields.section("colors", {}))),
        ground_roughness=ground.number("roughness", 0.5, low=0.0, high=1.0),
        decals=(*(decal for entry in fields.sections("decals") for decal in _decals(entry)), *outlines),
        ground_y=ground_y,
        heights=heights,
        walls=walls,
        solids=solids,
        names=names.all(),
        starts=starts,
        start_lines=_start_lines(fields),
        friction_zones=_friction_zones(fields.sections("friction_zones")),
        start_grid=(int(per_row), columns, rows),
        light=light,
        texel=fields.number("texel", 0.125, low=0.02, high=1.0),
        description=fields.text("description", ""),
    )
    ground.finish()
    fields.finish()
    return track


def _path(fields: Fields, ground_y: float) -> tuple[bool, Floats, Floats, float]:
    """(closed, nodes, line, height of the nodes above the ground) of the path; y is the ground's."""
    closed = fields.flag("closed", True)
    if fields.one_of("script", "points") == "script":
        x, z, heading = fields.numbers("start", 3)
        step = fields.number("step", 2.0, low=0.1)
        try:
            nodes = geometry.turtle((x, z), heading, step, fields.text("script"))
        except ValueError as error:
            raise TrackError(
                f"{fields.where}: '{error}' in 'script' is no move; write S11 for eleven steps straight, "
                "L15@5 or R9@15.5 for steps turning left or right by so many degrees each."
            ) from error
        # A script seldom ends where it began; where the last step is cut short, a curve through both ends would kink.
        cut_short = closed and float(np.diff(geometry.arcs(nodes, closed))[-1]) < 0.5 * step
        curve = geometry.smooth(nodes[:-1] if cut_short else nodes, closed)
    else:
        points = raised(fields.rows("points", (2, 3), least=3))
        steps = np.diff(geometry.arcs(points, closed))
        if steps.min() < 1e-6:
            first = int(steps.argmin())
            raise TrackError(
                f"{fields.where}: points {first} and {(first + 1) % len(points)} of 'points' coincide; remove one."
            )
        straight = fields.choice("curve", ("spline", "polyline"), "spline") == "polyline"
        curve = points if straight else geometry.smooth(points, closed)
        nodes = geometry.equal_steps(curve, closed, fields.count("nodes", low=3)) if "nodes" in fields else points
    line = geometry.closely(curve, closed)
    line[:, 1] += ground_y
    nodes = nodes + np.array([0.0, ground_y, 0.0])
    above_ground = fields.number("above_ground", 0.0)
    fields.finish()
    return closed, nodes, line, above_ground


def _road(fields: Fields, line: Floats, closed: bool) -> tuple[Road, tuple[Strip, ...], list[Decal]]:
    """The road, its strips, and the lines around it that stop where it crosses or touches itself."""
    left, right = fields.numbers("edges", 2)
    if not left < 0.0 < right:
        raise fields.wrong("edges", "[left, right] with left below 0 and right above 0, as the path runs between them")
    strips = tuple(_strip(entry) for entry in fields.sections("strips"))
    road = Road(line, closed, (left, right))
    outlines: list[Decal] = []
    for entry in fields.sections("outlines"):
        outlines += road.outline(entry.number("at"), entry.number("width", 0.28, low=0.01), entry.material("material"))
        entry.finish()
    fields.finish()
    return road, strips, outlines


def _strip(fields: Fields) -> Strip:
    """A band between two ``edges``, or a line of some ``width`` ``at`` an offset."""
    if "at" in fields:
        half = 0.5 * fields.number("width", 0.28, low=0.01)
        left, right = fields.number("at") - half, fields.number("at") + half
    else:
        left, right = fields.numbers("edges", 2)
    if left >= right:
        raise fields.wrong("edges", "[left, right] with left below right")
    dash_on, dash_off = fields.numbers("dash", 2, (0.0, 0.0))
    strip = Strip(
        left, right, fields.material("material"), dash_on, dash_off, fields.number("roughness", 0.0, low=0.0, high=1.0)
    )
    fields.finish()
    return strip


def _decals(fields: Fields) -> list[Decal]:
    """A decal, or as many as ``repeat: [count, dx, dz]`` says, each so much further on than the last."""
    x, z = fields.numbers("at", 2)
    count, step_x, step_z = fields.numbers("repeat", 3, (1, 0.0, 0.0))
    if count < 1 or count % 1:
        raise fields.wrong("repeat", "[how many (1, 2, ...), step in x, step in z]")
    width, depth = fields.numbers("size", 2)
    decal = Decal(
        x=x,
        z=z,
        yaw=float(np.radians(fields.number("yaw", 0.0))),
        half_x=width / 2,
        half_z=depth / 2,
        material=fields.material("material"),
        roughness=fields.number("roughness", 0.0, low=0.0, high=1.0),
        ellipse=fields.flag("ellipse", False),
        over_road=fields.flag("over_road", False),
    )
    fields.finish()
    return [replace(decal, x=x + k * step_x, z=z + k * step_z) for k in range(int(count))]


def _light(fields: Fields, rng: np.random.Generator) -> Light:
    """The sun as written, or drawn from `rng` where the scene draws it at load (``drawn: true``)."""
    usual = Light()
    if fields.flag("drawn", False):
        mix = rng.uniform()
        color: tuple[float, ...] = (255.0, 255.0 - 35.7 * mix, 127.5 + 91.8 * mix)
        tilt, turn = np.radians(rng.uniform(45.0, 135.0)), np.radians(rng.uniform(0.0, 179.0))
        flat = np.cos(tilt)
        direction: tuple[float, ...] = (float(np.sin(turn) * flat), float(-np.sin(tilt)), float(np.cos(turn) * flat))
    else:
        color = fields.numbers("color", 3, usual.color)
        direction = fields.numbers("direction", 3, usual.direction)
        if direction[1] >= 0.0:
            raise fields.wrong("direction", "three numbers, the second below 0, as light falls downward")
    size = float(np.linalg.norm(direction))
    light = Light(
        direction=(direction[0] / size, direction[1] / size, direction[2] / size),
        color=(color[0], color[1], color[2]),
        sun=fields.number("sun", usual.sun, low=0.0),
        ambient=fields.number("ambient", usual.ambient, low=0.0),
        zenith=_three(fields.numbers("zenith", 3, usual.zenith)),
        horizon=_three(fields.numbers("horizon", 3, usual.horizon)),
        indoor=fields.flag("indoor", usual.indoor),
    )
    fields.finish()
    return light


def _three(values: tuple[float, ...]) -> tuple[float, float, float]:
    return values[0], values[1], values[2]


def _colors(fields: Fields) -> dict[Material, RGB]:
    """RGB by material, of those the file names."""
    known = {material.name.lower(): material for material in Material}
    changes: dict[Material, RGB] = {}
    for name in fields.names():
        if name not in known:
            raise TrackError(f"{fields.where}: there is no material '{name}'.{did_you_mean(name, known)}")
        rgb = fields.numbers(name, 3)
        if min(rgb) < 0 or max(rgb) > 255:
            raise fields.wrong(name, "three numbers from 0 to 255")
        changes[known[name]] = (round(rgb[0]), round(rgb[1]), round(rgb[2]))
    return changes


def _starts(rows: Floats) -> Floats:
    """(K, 4) x, y (still 0), z, yaw from rows of x, z, degrees."""
    return np.column_stack([rows[:, 0], np.zeros(len(rows)), rows[:, 1], np.radians(rows[:, 2])])


def _start_lines(track: Fields) -> Floats:
    entries = track.sections("start_lines")
    if len(entries) > MOST_START_LINES:
        raise TrackError(f"{track.where}: 'start_lines' must be at most {MOST_START_LINES} boxes, not {len(entries)}.")
    rows = np.zeros((len(entries), LINE_COLUMNS))
    for index, fields in enumerate(entries):
        x, z = fields.numbers("at", 2)
        yaw, width = fields.number("yaw"), fields.number("width", low=0.1)
        rows[index] = index, x, z, np.radians(yaw), width / 2, fields.number("depth", 3.0, low=0.1) / 2
        fields.finish()
    return rows


def _friction_zones(entries: list[Fields]) -> Floats:
    rows = np.zeros((len(entries), ZONE_COLUMNS))
    for index, fields in enumerate(entries):
        x, z = fields.numbers("at", 2)
        width, depth = fields.numbers("size", 2)
        yaw, friction = fields.number("yaw", 0.0), fields.number("friction", low=0.0)
        rows[index] = x, z, np.radians(yaw), width / 2, depth / 2, friction
        fields.finish()
    return rows


def _stand(
    heights: HeightField | None,
    ground_y: float,
    line: Floats,
    walls: Floats,
    solids: Floats,
    starts: Floats,
) -> None:
    """Put everything on the ground."""

    def ground(x: Floats, z: Floats) -> Floats:
        if heights is None:
            return np.full(len(x), ground_y)
        return height_of(heights, np.column_stack([x, z]))

    if heights is not None:
        line[:, 1] = ground(line[:, 0], line[:, 2])
    walls[:, WALL_BASE0] = ground(walls[:, WALL_X0], walls[:, WALL_Z0])
    walls[:, WALL_BASE1] = ground(walls[:, WALL_X1], walls[:, WALL_Z1])
    solids[:, SOLID_BASE] = ground(solids[:, SOLID_X], solids[:, SOLID_Z])
    starts[:, 1] = ground(starts[:, 0], starts[:, 2])
