"""Curves on the ground, against circles and squares whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_training.simulator import path_geometry as geometry

SQUARE = np.array([[0.0, 0, 0], [0, 0, 10], [10, 0, 10], [10, 0, 0]])  # clockwise: to +z first, then to +x


def circle(count: int, radius: float = 20.0) -> np.ndarray:
    """Points of a clockwise circle around the origin, from (0, radius)."""
    angle = np.arange(count) * 2 * np.pi / count
    return np.column_stack([radius * np.sin(angle), np.zeros(count), radius * np.cos(angle)])


def test_arcs_of_a_square() -> None:
    assert geometry.arcs(SQUARE, closed=True).tolist() == [0, 10, 20, 30, 40]
    assert geometry.path_length(SQUARE, closed=False) == 30


def test_equal_steps_meet_the_corners_and_leave_out_the_repeated_start() -> None:
    steps = geometry.equal_steps(SQUARE, True, 8)
    assert steps[:, [0, 2]].tolist() == [[0, 0], [0, 5], [0, 10], [5, 10], [10, 10], [10, 5], [10, 0], [5, 0]]
    assert geometry.equal_steps(SQUARE, False, 4)[-1].tolist() == [10, 0, 0]


def test_closed_spline_through_twelve_points_of_a_circle_is_the_circle() -> None:
    curve = geometry.smooth(circle(12), closed=True)
    assert np.hypot(curve[:, 0], curve[:, 2]) == pytest.approx(20.0, abs=0.02)
    assert geometry.path_length(curve, True) == pytest.approx(2 * np.pi * 20, rel=1e-3)


def test_open_spline_keeps_its_ends_and_a_straight_line() -> None:
    points = np.array([[0.0, 1, 0], [3, 2, 4], [9, 4, 12]])
    curve = geometry.smooth(points, closed=False)
    assert curve[0] == pytest.approx(points[0])
    assert curve[-1] == pytest.approx(points[-1])
    assert curve[:, 0] * 4 == pytest.approx(curve[:, 2] * 3, abs=1e-9)


def test_turtle_turns_before_each_step() -> None:
    points = geometry.turtle((0.0, 0.0), 0.0, 2.0, "S2 R2@90 L1@90")
    assert points[:, [0, 2]] == pytest.approx(np.array([[0, 0], [0, 2], [0, 4], [2, 4], [2, 2]]), abs=1e-12)


@pytest.mark.parametrize("word", ["S", "R9", "Q3", "L2@", "S2.5", "R2@-3"])
def test_a_word_that_is_no_move_is_named(word: str) -> None:
    with pytest.raises(ValueError, match=word):
        geometry.moves(f"S3 {word}")


def test_beside_is_to_the_right() -> None:
    inner = geometry.beside(circle(360), True, 3.0)  # a clockwise circle has its middle on the right
    assert np.hypot(inner[:, 0], inner[:, 2]) == pytest.approx(17.0, abs=1e-9)


def test_turning_of_a_clockwise_circle_is_one_full_turn_to_the_right() -> None:
    assert geometry.turning(circle(60), True).sum() == pytest.approx(2 * np.pi)


def test_nearest_finds_index_and_distance() -> None:
    index, distance = geometry.nearest(SQUARE, np.array([[11.0, 9.0], [0.0, 0.0]]))
    assert index.tolist() == [2, 0]
    assert distance == pytest.approx([np.sqrt(2), 0.0])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=30), st.floats(0.05, 2.0))
def test_simplify_stays_within_its_tolerance(heights: list[float], tolerance: float) -> None:
    points = np.array([[float(x), 0.0, z] for x, z in enumerate(heights)])
    fewer = geometry.simplify(points, tolerance)
    assert fewer[0].tolist() == points[0].tolist()
    assert fewer[-1].tolist() == points[-1].tolist()
    between = np.interp(points[:, 0], fewer[:, 0], fewer[:, 2])
    slope = np.gradient(between)
    assert np.all(np.abs(points[:, 2] - between) <= tolerance * np.sqrt(1 + np.abs(slope).max() ** 2) * 5 + 1e-9)
