"""The scenes, held against the figures of the Unity simulator's: length, nodes, box, turns, heights, start, edges."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from rl_training.simulator import path_geometry as geometry
from rl_training.simulator import track as t
from rl_training.simulator.road import Road
from rl_training.simulator.track_file import load_track, track_names

M = t.Material


class Scene(NamedTuple):
    """What is known of a scene; `turns` is the total turning in full turns to the right, `cte` the one at the start."""

    nodes: int
    length: float
    x: tuple[float, float]
    z: tuple[float, float]
    turns: int
    cte: float
    edges: tuple[float, float]
    spacing: float
    y: tuple[float, float] = (0.0, 0.0)


SCENES = {
    "warehouse": Scene(173, 352, (36, 94), (-33, 111), 1, -0.1, (-9.7, 3.1), 2.04, (0.64, 0.64)),
    "sparkfun_avc": Scene(502, 1048, (-29, 125), (-147, 253), 0, -3.0, (-20, 20), 2.08, (0.47, 0.47)),
    "generated_track": Scene(108, 215, (49, 88), (-4, 78), 1, 0.1, (-7, 3), 2.0, (0.5, 0.5)),
    "roboracingleague_1": Scene(147, 391, (-16, 56), (-26, 26), 1, 0.15, (-4.0, 3.95), 2.66),
    "waveshare": Scene(24, 66.4, (-12, 12), (-8, 8), -1, 0.0, (-2.25, 2.25), 2.77, (0.47, 0.47)),
    "mini_monaco": Scene(304, 551, (-113, 39), (-114, 14), 1, 1.9, (-5, 5), 1.81, (0.06, 0.06)),
    "warren": Scene(297, 395, (-74, 77), (-28, 29), 1, -0.1, (-7, 3), 1.33),
    "circuit_launch": Scene(139, 373, (-44, 46), (-27, 28), 2, 3.9, (-7.1, 8.2), 2.67),
    "mountain_track": Scene(250, 517, (-68, 55), (-13, 108), 1, 3.5, (-9.1, 8.8), 2.06, (2.96, 7.32)),
    "thunderhill": Scene(2447, 2825, (132, 518), (69, 1040), -1, 1.9, (-7, 7), 1.13, (2.3, 30.3)),
}


@cache
def scene(name: str) -> t.Track:
    return load_track(name)


@cache
def road(name: str) -> Road:
    track = scene(name)
    return Road(track.line, track.closed, track.half_widths)


every_scene = pytest.mark.parametrize("name", SCENES)


def test_all_scenes_are_here() -> None:
    assert set(track_names()) == {*SCENES, "generated_road"}


@every_scene
def test_path_has_the_figures_of_the_original(name: str) -> None:
    track, known = scene(name), SCENES[name]
    assert track.closed
    assert len(track.nodes) == known.nodes
    assert track.length == pytest.approx(known.length, rel=0.005)
    for axis, ends in ((0, known.x), (2, known.z)):
        assert track.nodes[:, axis].min() == pytest.approx(ends[0], abs=0.8)
        assert track.nodes[:, axis].max() == pytest.approx(ends[1], abs=0.8)
    assert geometry.turning(track.line, True).sum() / (2 * np.pi) == pytest.approx(known.turns, abs=1e-6)
    assert np.median(np.diff(geometry.arcs(track.nodes, True))) == pytest.approx(known.spacing, rel=0.025)


@every_scene
def test_nodes_have_the_heights_of_the_original(name: str) -> None:
    low, high = SCENES[name].y
    assert scene(name).nodes[:, 1].min() == pytest.approx(low, abs=0.25)
    assert scene(name).nodes[:, 1].max() == pytest.approx(high, abs=0.25)


@every_scene
def test_line_is_the_path_in_equal_steps(name: str) -> None:
    track = scene(name)
    steps = np.diff(geometry.arcs(track.line, True))
    assert track.line[0, [0, 2]] == pytest.approx(track.nodes[0, [0, 2]])
    assert steps.max() <= 0.5 + 1e-9
    assert steps == pytest.approx(track.length / len(track.line), rel=0.03)
    assert geometry.nearest(track.line, track.nodes[:, [0, 2]])[1].max() < 0.4


@every_scene
def test_no_two_nodes_coincide(name: str) -> None:
    assert np.diff(geometry.arcs(scene(name).nodes, True)).min() > 0.5


@every_scene
def test_start_has_the_offset_of_the_original_and_faces_along_the_path(name: str) -> None:
    track = scene(name)
    x, y, z, yaw = track.starts[0]
    index = int(geometry.nearest(track.nodes, np.array([[x, z]]))[0][0])
    first, second = track.nodes[[index, (index + 1) % len(track.nodes)]][:, [0, 2]]
    along = (second - first) / np.hypot(*(second - first))
    gap = np.array([x, z]) - first
    assert gap[0] * along[1] - gap[1] * along[0] == pytest.approx(SCENES[name].cte, abs=0.25)
    assert np.array([np.sin(yaw), np.cos(yaw)]) @ along > np.cos(np.radians(12))
    assert y == pytest.approx(track.nodes[index, 1] - SCENES[name].y[0] if track.heights is None else y)


def test_heights_carry_the_road() -> None:
    for name in ("mountain_track", "thunderhill"):
        track = scene(name)
        assert track.heights is not None
        assert track.nodes[:, 1] - 0.47 == pytest.approx(
            np.interp(
                geometry.arcs(track.nodes, True)[:-1] * track.length / geometry.path_length(track.nodes, True),
                geometry.arcs(track.line, True)[:-1],
                track.line[:, 1],
            ),
            abs=0.05,
        )


def test_climbs_of_the_mountain_and_of_thunderhill() -> None:
    for name, climb in (("mountain_track", 8.7), ("thunderhill", 34)):
        rises = np.diff(scene(name).nodes[:, 1])
        assert rises[rises > 0].sum() == pytest.approx(climb, rel=0.15)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("generated_track", [(-6, M.LINE_WHITE, 0), (-2, M.LINE_YELLOW, 0), (2, M.LINE_WHITE, 0)]),
        ("warehouse", [(-9.7, M.LINE_WHITE, 0), (-3.1, M.LINE_YELLOW, 3), (3.1, M.LINE_WHITE, 0)]),
        ("roboracingleague_1", [(-3.85, M.LINE_WHITE, 0), (3.8, M.LINE_WHITE, 0)]),
        ("waveshare", [(-2.07, M.LINE_YELLOW, 0), (0, M.LINE_WHITE, 0.95), (2.07, M.LINE_YELLOW, 0)]),
        ("mini_monaco", [(-4, M.LINE_WHITE, 0), (0, M.LINE_YELLOW, 0), (4, M.LINE_WHITE, 0)]),
        ("warren", [(-6, M.LINE_WHITE, 0), (-2, M.LINE_YELLOW, 3), (2, M.LINE_WHITE, 0)]),
        ("circuit_launch", [(0.55, M.LINE_YELLOW, 3)]),
        ("mountain_track", [(-7.3, M.LINE_WHITE, 0), (-0.15, M.LINE_YELLOW, 0), (7, M.LINE_WHITE, 0)]),
        ("sparkfun_avc", []),
    ],
)
def test_lines_and_edges(name: str, lines: list[tuple[float, t.Material, float]]) -> None:
    track = scene(name)
    painted = [strip for strip in track.strips if strip.material in (M.LINE_WHITE, M.LINE_YELLOW)]
    found = [(round(0.5 * (strip.left + strip.right), 6), strip.material, strip.dash_on) for strip in painted]
    assert found == lines
    assert track.half_widths == SCENES[name].edges


def test_edge_lines_of_circuit_launch_stop_at_its_crossing() -> None:
    track = scene("circuit_launch")
    lines = [decal for decal in track.decals if decal.material == M.LINE_WHITE]
    places = np.array([[decal.x, decal.z] for decal in lines])
    assert all(decal.over_road and decal.half_x == pytest.approx(0.175) for decal in lines)
    assert np.hypot(*(places - (-3.7, -1.4)).T).min() > 5.0
    distance = geometry.nearest(track.line, places)[1]
    assert np.all((distance > 4.7) & (distance < 8.15))  # merged pieces stay within 0.12 of the bends they stand for
    assert 0.7 * 2 * track.length < 2 * sum(decal.half_z for decal in lines) < 2 * track.length


@every_scene
def test_what_blocks_stands_off_the_road(name: str) -> None:
    track = scene(name)
    solids = track.solids[track.solids[:, t.SOLID_BLOCKS] == 1]
    if name == "sparkfun_avc":  # a corridor of changing width: the original's bales come within 5.4 u of the path
        distance = geometry.nearest(track.line, solids[:, [t.SOLID_X, t.SOLID_Z]])[1]
        assert distance.min() > 5.0
        return
    places = solids[:, [t.SOLID_X, t.SOLID_Z]]
    assert road(name).is_clear(places, margin=0.4).all()


@every_scene
def test_no_wall_crosses_the_road(name: str) -> None:
    walls = scene(name).walls
    starts, ends = walls[:, :2], walls[:, 2:4]
    count = np.maximum(np.ceil(np.hypot(*(ends - starts).T)), 1).astype(int)
    samples = [a + np.linspace(0, 1, n + 1)[:, None] * (b - a) for a, b, n in zip(starts, ends, count, strict=True)]
    places = np.concatenate([np.zeros((0, 2)), *samples])
    distance = geometry.nearest(scene(name).line, places)[1]
    tightest = min(-scene(name).half_widths[0], scene(name).half_widths[1])
    assert np.all(distance > tightest - 0.1)


@pytest.mark.parametrize(
    ("name", "walls", "solids"),
    [
        (
            "warehouse",
            {"CollisionPerimeter": 0.1},
            {"Line01": 9, "Tire": 6, "dude_w_coffee": 4, "table": 3, "chair": 3},
        ),
        ("sparkfun_avc", {}, {"HayBale": 305, "Barrel": 6}),
        ("generated_track", {}, {"tree": 100, "Line01": 13}),
        ("roboracingleague_1", {"wall": 0.1}, {"cone": 12}),
        ("waveshare", {"wall": 0.1}, {}),
        ("mini_monaco", {"RepeatObjectAlong": 0.1}, {"tree": 100, "Line01": 3}),
        ("warren", {"wall": 0.1}, {"Line01": 8, "table": 5, "chair": 20}),
        ("circuit_launch", {"wall": 0.1}, {"Line01": 6, "chair": 20}),
        ("mountain_track", {"wall": 0.1}, {}),
    ],
)
def test_walls_and_solids_have_the_names_a_hit_reports(
    name: str, walls: dict[str, float], solids: dict[str, int]
) -> None:
    track = scene(name)
    found = {track.names[int(row[t.WALL_NAME])]: row[t.WALL_FRICTION] for row in track.walls}
    assert found == walls
    blocking = [track.names[int(row[t.SOLID_NAME])] for row in track.solids if row[t.SOLID_BLOCKS]]
    assert {name: blocking.count(name) for name in blocking} == solids


@pytest.mark.parametrize(
    ("name", "reach"), [("generated_track", 5), ("mini_monaco", 2.5), ("warren", 2.5), ("circuit_launch", 5)]
)
def test_one_loose_cone_near_the_path_lets_cars_through(name: str, reach: float) -> None:
    places = []
    for seed in range(5):
        track = load_track(name, seed)
        loose = track.solids[track.solids[:, t.SOLID_BLOCKS] == 0]
        assert [track.names[int(row[t.SOLID_NAME])] for row in loose] == ["Line01"]
        places.append(tuple(loose[0, [t.SOLID_X, t.SOLID_Z]]))
        assert geometry.nearest(track.line, np.array(places[-1:]))[1] <= reach * np.sqrt(2)
    assert len(set(places)) == 5


def test_hay_bales_stand_shoulder_to_shoulder() -> None:
    track = scene("sparkfun_avc")
    bales = np.array(
        [row[[t.SOLID_X, t.SOLID_Z]] for row in track.solids if track.names[int(row[t.SOLID_NAME])] == "HayBale"]
    )
    gaps = np.hypot(*(bales[:, None] - bales[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(bales))
    assert np.median(gaps.min(axis=1)) == pytest.approx(6.5, abs=0.3)


def test_ice_and_grip_of_sparkfun() -> None:
    assert scene("sparkfun_avc").friction_zones[:, t.ZONE_FRICTION].tolist() == [0.66, 0.03]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("generated_track", [(47.7, 49.55, 0, 10.2)]),
        ("warehouse", [(44.6, 38.0, 8, 14)]),
        ("sparkfun_avc", [(-30.3, -73.4, 0, 16)]),
        ("mountain_track", [(53.9, 47.4, 180, 17.6)]),
        ("roboracingleague_1", [(20, -26, -90, 9), (20, 26, 90, 9)]),
        ("waveshare", []),
        ("circuit_launch", [(15.75, -25.8, -90, 14.4)]),
    ],
)
def test_start_lines(name: str, rows: list[tuple[float, float, float, float]]) -> None:
    lines = scene(name).start_lines
    assert lines[:, t.LINE_INDEX].tolist() == list(range(len(rows)))
    found = [(x, z, round(np.degrees(yaw), 6), 2 * half) for _, x, z, yaw, half, _ in lines]
    assert len(found) == len(rows)
    assert np.array(found) == pytest.approx(np.array(rows))


def test_start_grids_and_second_start() -> None:
    assert scene("warehouse").start_grid == (2, 6.5, 5.0)
    assert scene("mountain_track").start_grid == (2, 7.0, 5.0)
    assert scene("roboracingleague_1").start_grid[0] == scene("waveshare").start_grid[0] == 1
    assert scene("roboracingleague_1").starts[1] == pytest.approx([15.12, 0, 25.74, np.pi / 2])


@pytest.mark.parametrize(("name", "count"), [("circuit_launch", 1), ("sparkfun_avc", 1), ("mini_monaco", 0)])
def test_crossings(name: str, count: int) -> None:
    line = scene(name).line[::2]
    size = len(line)
    flat = line[:, [0, 2]]
    i, j = np.nonzero(np.triu(np.hypot(*(flat[:, None] - flat[None]).transpose(2, 0, 1)) < 0.8, k=20))
    far = (j - i < size - 20) & (j - i > 20)
    places = flat[i[far]]
    assert (len(places) > 0) == bool(count)
    if count:
        expected = {"circuit_launch": (-3.7, -1.4), "sparkfun_avc": (63, 54)}[name]
        assert np.abs(places - expected).max() < 2.0
