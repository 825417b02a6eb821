"""Track files: what they say arrives in the track, and each mistake gets one clear sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rl_training.errors import TrackError
from rl_training.simulator import track as t
from rl_training.simulator.scenery import height_of
from rl_training.simulator.track_file import load_track, read_track_file, track_names


def description(**changes: Any) -> dict[str, Any]:
    """A square of 40 u, driven clockwise from the middle of its west side."""
    return {
        "path": {"curve": "polyline", "points": [[0, 0], [0, 20], [40, 20], [40, -20], [0, -20]]},
        "road": {"edges": [-4, 2], "strips": [{"edges": [-4, 2], "material": "road"}]},
        "starts": [[0, -2, 0]],
        **changes,
    }


def write(folder: Path, content: Any) -> Path:
    path = folder / "square.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def read(folder: Path, **changes: Any) -> t.Track:
    return read_track_file(write(folder, description(**changes)))


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    track = load_track(str(write(tmp_path, description())))
    assert track.name == "square"
    assert track.closed
    assert track.length == pytest.approx(160.0)
    assert len(track.nodes) == 5
    assert track.line[1] == pytest.approx([0, 0, 0.5])
    assert track.starts.tolist() == [[0, 0, -2, 0]]
    assert track.strips == (t.Strip(-4, 2, t.Material.ROAD),)


def test_nodes_start_with_the_path_and_are_evenly_spaced(tmp_path: Path) -> None:
    path = {"points": [[0, 0], [20, 20], [40, 0], [20, -20]], "nodes": 50, "above_ground": 0.5}
    track = read(tmp_path, path=path, ground={"y": 2})
    steps = np.hypot(*np.diff(track.nodes[:, [0, 2]], axis=0).T)
    assert len(track.nodes) == 50
    assert track.nodes[0] == pytest.approx([0, 2.5, 0])
    assert steps == pytest.approx(steps.mean(), rel=1e-2)
    assert track.line[:, 1] == pytest.approx(2.0)
    assert np.hypot(*np.diff(track.line[:, [0, 2]], axis=0).T).max() <= 0.5


def test_strips_decals_lines_and_zones(tmp_path: Path) -> None:
    road = {"edges": [-4, 2], "strips": [{"at": -1, "width": 0.4, "material": "line_yellow", "dash": [3, 2]}]}
    decal = {"at": [1, 2], "size": [4, 6], "yaw": 90, "material": "floor", "ellipse": True, "over_road": True}
    line = {"at": [0, 5], "yaw": 90, "width": 10, "depth": 3}
    zone = {"at": [3, 4], "size": [2, 8], "yaw": 180, "friction": 0.03}
    track = read(tmp_path, road=road, decals=[decal], start_lines=[line, line], friction_zones=[zone])
    assert track.strips[0].left == pytest.approx(-1.2)
    assert track.strips[0].right == pytest.approx(-0.8)
    assert (track.strips[0].dash_on, track.strips[0].dash_off) == (3, 2)
    assert track.decals == (t.Decal(1, 2, np.pi / 2, 2, 3, t.Material.FLOOR, ellipse=True, over_road=True),)
    assert track.start_lines[:, t.LINE_INDEX].tolist() == [0, 1]
    assert track.start_lines[1, t.LINE_YAW :].tolist() == pytest.approx([np.pi / 2, 5, 1.5])
    assert track.friction_zones[0].tolist() == pytest.approx([3, 4, np.pi, 1, 4, 0.03])


def test_a_decal_is_repeated_in_a_row(tmp_path: Path) -> None:
    bay = {"at": [1, 2], "size": [0.5, 8], "material": "line_white", "repeat": [3, 4, -1]}
    track = read(tmp_path, decals=[bay])
    assert [(decal.x, decal.z) for decal in track.decals] == [(1, 2), (5, 1), (9, 0)]


def test_a_room_has_four_walls_and_names_are_shared(tmp_path: Path) -> None:
    room = {"name": "wall", "room": [-10, -30, 50, 30], "height": 8, "friction": 0.2}
    fence = {"name": "wall", "points": [[5, 5], [5, 9]]}
    track = read(tmp_path, walls=[room, fence])
    assert track.walls.shape == (5, t.WALL_COLUMNS)
    assert track.walls[0, :4].tolist() == [-10, -30, 50, -30]
    assert track.walls[:, t.WALL_FRICTION].tolist() == [0.2, 0.2, 0.2, 0.2, 0.1]
    assert track.names == ("wall",)


def test_a_wall_along_the_path_closes_its_fold_at_corners(tmp_path: Path) -> None:
    track = read(tmp_path, walls=[{"offset": 5}, {"offset": -5}])
    ends = track.walls[:, :4].reshape(-1, 2)
    inside = (np.abs(ends[:, 0] - 20) < 18) & (np.abs(ends[:, 1]) < 18)
    assert inside.any()
    assert (~inside).any()
    assert np.abs(ends[inside] - (20, 0)).max() == pytest.approx(15.0, abs=0.3)
    middle = 0.5 * (track.walls[:, :2] + track.walls[:, 2:4])
    assert not ((np.abs(middle[:, 0] - 20) < 14.5) & (np.abs(middle[:, 1]) < 14.5)).any()


def test_an_outline_closes_its_fold_at_corners(tmp_path: Path) -> None:
    """Round a square of 40 u, 5 to its right: a line of 4 sides of 30 u without swallow tails at the corners."""
    track = read(tmp_path, road={"edges": [-4, 6], "outlines": [{"at": 5, "material": "line_white"}]})
    places = np.array([(decal.x, decal.z) for decal in track.decals])
    assert np.abs(places - (20, 0)).max() < 15.3
    assert np.abs(places - (20, 0)).max(axis=1).min() > 14.4
    assert sum(2.0 * decal.half_z for decal in track.decals) == pytest.approx(4 * 30.0, rel=0.05)


def test_walls_leave_a_crossing_open(tmp_path: Path) -> None:
    points = [[0, 0], [20, 20], [40, 0], [20, -20], [0, 0.001], [-20, 20], [-40, 0], [-20, -20]]
    track = read(tmp_path, path={"points": points}, road={"edges": [-3, 3]}, walls=[{"offset": 4}, {"offset": -4}])
    samples = (
        track.walls[:, None, :2] + np.linspace(0, 1, 20)[:, None] * (track.walls[:, 2:4] - track.walls[:, :2])[:, None]
    )
    gaps = samples.reshape(-1, 1, 2) - track.line[None, :, [0, 2]]
    assert np.hypot(gaps[..., 0], gaps[..., 1]).min() > 3.0


def test_solids_in_place_beside_in_a_row_and_scattered(tmp_path: Path) -> None:
    track = read(
        tmp_path,
        solids=[
            {"name": "Line01", "shape": "cone", "at": [[1, 2, 90]], "blocks": False},
            {"shape": "box", "half_size": [1, 2], "height": 3, "beside": [[0, 5], [0.25, -6]], "friction": 0.1},
            {"shape": "cylinder", "row": {"points": [[0, 0], [0, 30]], "count": 4}},
            {"shape": "tree", "scatter": {"count": 30, "distance": [6, 12], "clear": 2}},
        ],
    )
    cone, box, box2 = track.solids[:3]
    assert cone[[t.SOLID_X, t.SOLID_Z, t.SOLID_YAW, t.SOLID_BLOCKS]].tolist() == pytest.approx([1, 2, np.pi / 2, 0])
    assert box[[t.SOLID_X, t.SOLID_Z, t.SOLID_YAW]] == pytest.approx([5, 0, 0], abs=1e-9)
    assert box2[[t.SOLID_X, t.SOLID_Z, t.SOLID_YAW]] == pytest.approx([20, 26, np.pi / 2], abs=1e-9)
    assert box[[t.SOLID_HALF_X, t.SOLID_HALF_Z, t.SOLID_HEIGHT, t.SOLID_FRICTION]].tolist() == [1, 2, 3, 0.1]
    assert track.solids[3:7, t.SOLID_Z] == pytest.approx([0, 10, 20, 30])
    assert track.names == ("Line01", "box", "cylinder", "tree")
    trees = track.solids[7:, [t.SOLID_X, t.SOLID_Z]]
    beyond = np.abs(trees - (20, 0)) - 20  # of each side of the square; outside of it is left of the path
    outside = np.hypot(*np.maximum(beyond, 0).T)
    assert len(trees) == 30
    assert np.all((outside > 6 - 1e-6) | (beyond.max(axis=1) < -6 + 1e-6))
    assert outside.max() < 12.0


def test_seed_draws_the_scenery_and_nothing_else() -> None:
    first, again, other = load_track("mini_monaco", 1), load_track("mini_monaco", 1), load_track("mini_monaco", 2)
    assert np.array_equal(first.solids, again.solids)
    assert first.light == again.light
    assert not np.array_equal(first.solids, other.solids)
    assert first.light != other.light
    assert np.array_equal(first.line, other.line)


def test_hills_leave_the_road_level_across_and_put_all_on_the_ground(tmp_path: Path) -> None:
    angle = np.arange(12) * np.pi / 6
    points = np.column_stack([50 * np.sin(angle), 3 * np.sin(angle), 50 * np.cos(angle)]).tolist()
    track = read(
        tmp_path,
        path={"points": points, "nodes": 100, "above_ground": 0.5},
        ground={"hills": {"height": 10, "width": 20}},
        walls=[{"offset": 10}],
        solids=[{"shape": "cone", "beside": [[0.25, 5]]}],
    )
    assert track.heights is not None
    travel = np.roll(track.line, -1, axis=0) - np.roll(track.line, 1, axis=0)
    right = np.column_stack([travel[:, 2], -travel[:, 0]]) / np.hypot(travel[:, 0], travel[:, 2])[:, None]
    middle = track.line[:, [0, 2]]
    assert height_of(track.heights, middle + 4 * right) == pytest.approx(
        height_of(track.heights, middle - 4 * right), abs=0.25
    )
    assert np.ptp(track.line[:, 1]) == pytest.approx(6.0, abs=0.8)
    assert track.nodes[:, 1] - height_of(track.heights, track.nodes[:, [0, 2]]) == pytest.approx(0.5)
    ground = height_of(track.heights, track.walls[:, [t.WALL_X0, t.WALL_Z0]])
    assert track.walls[:, t.WALL_BASE0] == pytest.approx(ground)
    assert track.solids[0, t.SOLID_BASE] == pytest.approx(height_of(track.heights, track.solids[:1, [1, 2]])[0])
    far = height_of(track.heights, np.array([[90.0, 90.0], [-90, 90], [90, -90], [-90, -90], [0, 0]]))
    assert np.ptp(far) > 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pahts": 1}, "unknown key 'pahts'. Did you mean 'path'?"),
        ({"road": {"edges": [-4, 2], "strip": []}}, "'road': unknown key 'strip'. Did you mean 'strips'?"),
        ({"road": {"edges": [2, 4]}}, "'edges' must be [left, right] with left below 0"),
        ({"road": {"edges": [-4, "x"]}}, "'edges' must be a list of 2 numbers"),
        ({"road": None}, "'road' must be a mapping of keys to values, not empty"),
        ({"colors": {"gras": [1, 2, 3]}}, "there is no material 'gras'"),
        ({"colors": {"ground": [1, 2, 300]}}, "'ground' must be three numbers from 0 to 255"),
        ({"path": {"points": [[0, 0], [1, 1], [1, 1], [5, 0]]}}, "points 1 and 2 of 'points' coincide"),
        ({"path": {"points": [[0, 0], [1, 1], [5, 0], [0, 0]]}}, "points 3 and 0 of 'points' coincide"),
        ({"path": {"points": [[0, 0], [1, 1, 1], [5, 0]]}}, "point 1 of 'points' must be 2 or 3 numbers"),
        ({"path": {"points": [[0, 0]]}}, "at least 3 points"),
        ({"path": {"start": [0, 0, 0], "script": "S3 R9"}}, "'R9' in 'script' is no move"),
        ({"solids": [{"shape": "come", "at": [[0, 0]]}]}, "'shape' cannot be 'come'. Did you mean 'cone'?"),
        ({"solids": [{"shape": "cone"}]}, "'solids' number 0: give exactly one of 'at', 'beside', 'row', 'scatter'"),
        ({"solids": [{"shape": "tree", "scatter": {"count": 5, "distance": [0, 1]}}]}, "no room for 5 things"),
        ({"walls": [{"offset": 3, "room": [0, 0, 1, 1]}]}, "give exactly one of 'offset', 'room', 'points'"),
        ({"walls": [{"offset": 3, "height": -1}]}, "'height' must be a number"),
        ({"walls": [{"offset": 3, "part": [0.5, 0.2]}]}, "'part' must be [from, to]"),
        ({"road": {"edges": [-4, 2], "outlines": [{"at": 2, "color": "road"}]}}, "'material' is missing"),
        ({"light": {"direction": [0, 1, 0]}}, "the second below 0"),
        ({"start_grid": [0, 1, 1]}, "'start_grid'"),
        (
            {"decals": [{"at": [0, 0], "size": [1, 1], "material": "road", "repeat": [0, 1, 1]}]},
            "'repeat' must be [how",
        ),
        ({"start_lines": [{"at": [0, 0], "yaw": 0, "width": 4}] * 33}, "'start_lines' must be at most 32 boxes"),
        ({"texel": float("nan")}, "'texel' must be a number"),
        ({"description": 3}, "'description' must be text"),
        ({"starts": []}, "'starts' must be a list of at least 1 points"),
    ],
)
def test_a_mistake_gets_one_sentence_that_names_file_and_key(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(TrackError) as error:
        read(tmp_path, **changes)
    message = str(error.value)
    assert "square.yaml" in message
    assert words in message
    assert "\n" not in message


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    content = description()
    del content["road"]
    with pytest.raises(TrackError, match=r"square\.yaml: the key 'road' is missing"):
        read_track_file(write(tmp_path, content))


@pytest.mark.parametrize("content", ["a: [1", "- 1\n- 2", "", "\x00"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(TrackError, match=r"square\.yaml"):
        read_track_file(write(tmp_path, content))


def test_unknown_names_and_files() -> None:
    with pytest.raises(TrackError, match="Did you mean 'mini_monaco'"):
        load_track("mini_monac")
    with pytest.raises(TrackError, match=r"'no/such\.yaml' cannot be read: No such file"):
        load_track("no/such.yaml")


def test_listing_tracks_does_not_load_the_compiler() -> None:
    assert "waveshare" in track_names()
    code = "import sys, rl_training.simulator.track_file as f; f.load_track('warren'); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "track_files.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    track = read_track_file(write(tmp_path, example))
    assert len(track.nodes) == 100
    for key in ("path", "road", "solids", "friction_zones", "outlines", "above_ground", "scatter"):
        assert f"`{key}`" in page
