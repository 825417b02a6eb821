"""The open random road: its seed, its rules, its styles."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rl_training.errors import TrackError
from rl_training.simulator import path_geometry as geometry
from rl_training.simulator.generated_road import generated_road
from rl_training.simulator.track import Material, Track
from rl_training.simulator.track_file import load_track


@cache
def road(seed: int, style: int = 0) -> Track:
    return generated_road(seed, style)


def test_figures() -> None:
    track = road(4)
    assert not track.closed
    assert len(track.nodes) == 1000
    assert np.diff(geometry.arcs(track.nodes, False)) == pytest.approx(2.0)
    assert track.length == pytest.approx(1998, rel=1e-3)
    assert track.nodes[0] == pytest.approx([50.02, 0.5, 49.97])
    assert track.starts[0] == pytest.approx([50.02, 0, 49.97, 0])
    assert track.half_widths == pytest.approx((-7.2, 2.8))
    centres = {
        (s.material, round((s.left + s.right) / 2, 2)) for s in track.strips if s.material.name.startswith("LINE")
    }
    assert centres == {(Material.LINE_WHITE, -6.2), (Material.LINE_YELLOW, -2.2), (Material.LINE_WHITE, 1.8)}
    assert track.colors[Material.GROUND].tolist() == [150, 128, 96]


def test_a_seed_is_a_road() -> None:
    roads = [road(seed).nodes for seed in range(4)]
    assert np.array_equal(roads[1], generated_road(1).nodes)
    assert np.array_equal(roads[1], load_track("generated_road", 1).nodes)
    for first in range(4):
        for second in range(first):
            assert np.abs(roads[first] - roads[second]).max() > 50


def test_turns_grow_by_at_most_the_increment_and_flip_when_the_road_meets_itself() -> None:
    changes = []
    for seed in range(8):
        heading = geometry.turning(road(seed).nodes, False)
        changes.append(np.degrees(np.abs(heading)).mean())
        steady = np.abs(np.diff(heading)) <= np.radians(1.0) + 1e-9
        assert 0.8 < steady.mean() < 1.0  # nearly all spans follow the walk, a few swerve
    assert np.mean(changes) == pytest.approx(2.4, abs=0.8)


def test_increment_zero_is_straight_until_it_must_turn() -> None:
    assert np.ptp(generated_road(0, turn_increment=0.0).nodes[:, 0]) < 1e-9


def test_styles() -> None:
    roads = [road(0, style) for style in range(6)]
    assert [round(-np.subtract(*track.half_widths), 6) for track in roads] == [10, 24, 20, 20, 24, 10]
    surfaced = [any(strip.material == Material.ROAD for strip in track.strips) for track in roads]
    assert surfaced == [True, False, True, False, True, True]


@pytest.mark.parametrize("increment", [-1.0, float("nan")])
def test_an_impossible_increment(increment: float) -> None:
    with pytest.raises(TrackError, match="turn increment"):
        generated_road(0, turn_increment=increment)
