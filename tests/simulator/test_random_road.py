"""The family of random circuits: pure in seed and difficulty, clear of themselves, within their limits, and varied."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from rl_training.errors import TrackError
from rl_training.simulator import path_geometry as geometry
from rl_training.simulator import random_road as family
from rl_training.simulator.random_road import SEED_RANGES, random_road, road_seed
from rl_training.simulator.scenery import height_of
from rl_training.simulator.track import Floats, Material, Track
from rl_training.simulator.track_file import load_track

DIFFICULTIES = (0.0, 0.25, 0.5, 0.75, 1.0)
SEEDS = range(60)  # 300 roads in all


@cache
def road(seed: int, difficulty: float) -> Track:
    return random_road(seed, difficulty)


def edge(track: Track, side: int, step: int = 2) -> Floats:
    return geometry.beside(track.line, True, track.half_widths[side])[::step, [0, 2]]


def assert_same(a: Track, b: Track) -> None:
    assert a.name == b.name
    assert np.array_equal(a.line, b.line)
    assert np.array_equal(a.nodes, b.nodes)
    assert np.array_equal(a.colors, b.colors)
    assert a.strips == b.strips
    assert a.light == b.light
    assert (a.heights is None) == (b.heights is None)
    if a.heights is not None and b.heights is not None:
        assert np.array_equal(a.heights.grid, b.heights.grid)


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_road_is_a_pure_function_of_seed_and_difficulty(difficulty: float) -> None:
    first = random_road(7, difficulty)
    random_road(8, difficulty)
    assert_same(first, random_road(7, difficulty))


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_roads_differ_between_seeds(difficulty: float) -> None:
    starts = {tuple(road(seed, difficulty).line[0]) for seed in SEEDS}
    assert len(starts) == len(SEEDS)


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_stretches_of_road_keep_clear_of_each_other(difficulty: float) -> None:
    """Edges of stretches farther apart along the road than half a tightest circle stay a margin apart.

    Nearer ones cannot meet, because no bend is tighter than the limit that the next test holds.
    """
    tightest = 14.0 - 7.5 * difficulty
    for seed in SEEDS:
        track = road(seed, difficulty)
        arcs = geometry.arcs(track.line, True)[:-1:2]
        apart = np.abs(arcs[:, None] - arcs[None])
        apart = np.minimum(apart, track.length - apart)
        for one in (0, 1):
            for other in (0, 1):
                a, b = edge(track, one), edge(track, other)
                gaps = np.hypot(*(a[:, None] - b[None]).transpose(2, 0, 1))
                assert gaps[apart > np.pi * tightest].min() > family.CLEARANCE - 0.1


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_length_width_and_radius_follow_the_difficulty(difficulty: float) -> None:
    tightest = 14.0 - 7.5 * difficulty
    sharpest = []
    for seed in SEEDS:
        track = road(seed, difficulty)
        left, right = track.half_widths
        assert 150.0 - 1.0 <= track.length <= 450.0 + 1.0
        assert track.length == pytest.approx(150 + 300 * difficulty, rel=0.16)
        assert right - left == pytest.approx(12 - 5 * difficulty)
        assert max(-left, right) < tightest - 1.0  # the inside of the tightest bend is still a bend
        bend = np.abs(geometry.turning(track.line, True)) / (track.length / len(track.line))
        assert 1.0 / bend.max() > tightest * 0.99
        sharpest.append(1.0 / bend.max())
    assert np.median(sharpest) < tightest * 1.02


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_line_and_nodes_are_one_closed_path(difficulty: float) -> None:
    for seed in SEEDS:
        track = road(seed, difficulty)
        steps = np.diff(geometry.arcs(track.line, True))
        assert steps.max() <= 0.5 + 1e-9
        assert steps.min() > 0.48  # also the last one, back to the start
        assert np.diff(geometry.arcs(track.nodes, True)) == pytest.approx(2.0, abs=0.06)
        assert track.nodes[0] == pytest.approx(track.line[0])
        assert abs(geometry.turning(track.line, True).sum()) == pytest.approx(2 * np.pi)
        assert np.abs(track.line[:, [0, 2]].min(axis=0) + track.line[:, [0, 2]].max(axis=0)).max() < 1e-9


def test_start_is_on_the_line_along_it_and_the_start_line_lies_across_the_road_ahead() -> None:
    for seed in SEEDS:
        track = road(seed, 1.0)
        x, y, z, yaw = track.starts[0]
        assert [x, y, z] == pytest.approx(track.line[0])
        ahead = track.line[8] - track.line[0]
        assert np.arctan2(ahead[0], ahead[2]) == pytest.approx(yaw, abs=1e-6)  # a straight of at least 4 u
        _, line_x, line_z, line_yaw, half_width, _ = track.start_lines[0]
        right = np.array([np.cos(line_yaw), -np.sin(line_yaw)])
        for side, sign in ((0, -1), (1, 1)):
            end = np.array([line_x, line_z]) + sign * half_width * right
            assert end == pytest.approx(edge(track, side, 1)[8], abs=1e-6)


def test_hills_grow_with_difficulty_and_are_never_too_steep() -> None:
    assert all(road(seed, d).heights is None for seed in SEEDS for d in (0.0, 0.25, 0.5))
    reach = {0.75: 2.0, 1.0: 4.0}
    for difficulty, limit in reach.items():
        highest = []
        for seed in SEEDS:
            track = road(seed, difficulty)
            assert track.heights is not None
            climb = np.diff(np.append(track.line[:, 1], track.line[0, 1])) / np.diff(geometry.arcs(track.line, True))
            assert np.abs(climb).max() < 0.125
            assert np.abs(track.heights.grid).max() <= limit + 1e-6
            assert track.nodes[:, 1] == pytest.approx(height_of(track.heights, track.nodes[:, [0, 2]]))
            highest.append(np.ptp(track.line[:, 1]))
        assert np.median(highest) > 0.4 * limit


def test_roads_run_both_ways_and_hold_hairpins_chicanes_and_straights() -> None:
    tracks = [road(seed, 1.0) for seed in SEEDS]
    signs, hairpins, chicanes, straights, turns = [], 0, 0, 0, []
    for track in tracks:
        turn = geometry.turning(track.line, True)
        signs.append(np.sign(turn.sum()))
        side = np.where(np.abs(turn) < 1e-6, 0, np.sign(turn))
        change = np.flatnonzero(np.diff(side)) + 1
        pieces = [(side[part[0]], turn[part].sum(), len(part) * 0.5) for part in np.split(np.arange(len(turn)), change)]
        bends = [piece for piece in pieces if piece[0] != 0]
        turns.append(len(bends))
        hairpins += any(abs(angle) > np.radians(140) for _, angle, _ in bends)
        straights += any(kind == 0 and size > 35 for kind, _, size in pieces)
        chicanes += any(
            a[0] * c[0] < 0 and b[0] == 0 and b[2] < 8 for a, b, c in zip(pieces, pieces[1:], pieces[2:], strict=False)
        )
    assert 0.3 < np.mean(np.array(signs) > 0) < 0.7
    assert hairpins > 30
    assert straights > 30
    assert chicanes > 20
    assert max(turns) - min(turns) >= 5


def test_looks_are_varied() -> None:
    tracks = [road(seed, 0.25) for seed in SEEDS]
    painted = [
        [s for s in track.strips if s.material in (Material.LINE_WHITE, Material.LINE_YELLOW)] for track in tracks
    ]
    assert {len(lines) for lines in painted} == {0, 1, 2, 3}
    assert {s.material for lines in painted for s in lines} == {Material.LINE_WHITE, Material.LINE_YELLOW}
    assert {s.dash_on > 0 for lines in painted for s in lines} == {True, False}
    surfaced = [any(s.material == Material.ROAD for s in track.strips) for track in tracks]
    assert {True, False} == set(surfaced)
    assert len({tuple(track.colors[Material.GROUND]) for track in tracks}) > 30
    for track, lines, surface in zip(tracks, painted, surfaced, strict=True):
        assert surface or len(lines) >= 2  # something always shows where the road is
        if surface:
            contrast = track.colors[Material.ROAD].astype(int) - track.colors[Material.GROUND]
            assert np.abs(contrast).max() > 20
        assert all(track.half_widths[0] <= s.left and s.right <= track.half_widths[1] for s in lines)


def test_splits_never_share_a_seed() -> None:
    ranges = sorted(SEED_RANGES.values(), key=lambda seeds: seeds.start)
    assert set(SEED_RANGES) == {"train", "validation", "test"}
    assert all(before.stop <= after.start for before, after in itertools.pairwise(ranges))
    assert road_seed("validation", 3) == SEED_RANGES["validation"].start + 3


def test_names() -> None:
    assert_same(load_track("random:train:17"), random_road(17, 0.5))
    assert_same(load_track("random:validation:3@0.7"), random_road(road_seed("validation", 3), 0.7))
    assert_same(load_track("random:test:0@1"), random_road(road_seed("test", 0), 1.0))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("random:trian:1", "Did you mean 'train'"),
        ("random:train", "write 'random:train:17'"),
        ("random:train:1@hard", "write 'random:train:17'"),
        ("random:train:1@1.5", "from 0 \\(easy\\) to 1 \\(hard\\), not 1.5"),
        ("random:train:100000000", "from 0 to 99999999"),
    ],
)
def test_wrong_names(name: str, words: str) -> None:
    with pytest.raises(TrackError, match=words):
        load_track(name)


def test_a_plan_is_found_also_where_there_is_hardly_room() -> None:
    """With no clearance to spare the plan falls back to a plain rounded rectangle, which still closes."""
    angles, radii, straights = family.draw_plan(np.random.default_rng(0), 12, 100.0, 14.0, 90.0, 1.0)
    assert angles.tolist() == [np.pi / 2] * 4
    assert (straights.sum() + (radii * angles).sum()) == pytest.approx(100.0)
    flat = np.empty((200, 2))
    family.trace(angles, radii, straights, flat)
    assert np.hypot(*(flat[0] - flat[-1])) == pytest.approx(0.5, abs=1e-3)
