"""Fisheye against numbers worked by hand, blur and noise against what they are said to be."""

from __future__ import annotations

import numpy as np
import pytest

from rl_training.errors import ConfigError
from rl_training.simulator.optics import Lens, develop, warp_source
from rl_training.simulator.view import View

LENS = Lens.fisheye(0.4, 0.7)
VIEWS = [View.full(), View.full().planes(), View.full().grey()]


def test_fisheye_moves_points_as_the_unity_shader_does() -> None:
    """kx = 0.4 · 4/3 · 80/512 = 1/12 and ky = 0.7 · 80/512 = 0.109375, in texture coordinates: half of q."""
    assert warp_source(0.0, 0.0, LENS) == (0.0, 0.0)
    assert warp_source(0.5, 0.0, LENS) == pytest.approx((0.5 - 2 * 0.109375 * 0.5, 0.0))
    assert warp_source(0.0, 0.5, LENS) == pytest.approx((0.0, 0.5 - 2 / 12 * 0.5))
    assert warp_source(0.5, 0.5, LENS) == pytest.approx((0.5 - 2 * 0.109375 * 0.75 * 0.5, 0.5 - 2 / 12 * 0.75 * 0.5))
    assert warp_source(1.0, 1.0, LENS) == (1.0, 1.0)
    assert warp_source(1.0, -1.0, LENS) == (1.0, -1.0)


@pytest.mark.parametrize("view", VIEWS)
def test_fisheye_shows_the_picture_at_the_source_point(view: View) -> None:
    """A picture that tells its own column: 40 px right of the centre (q = 0.5) shows column 80 + 31.25."""
    columns = np.broadcast_to(np.arange(160, dtype=np.uint8)[None, :], (120, 160))
    picture = {2: columns, 1: np.stack([columns] * 3), 0: np.stack([columns] * 3, axis=2)}[view.layout]
    frame = np.ascontiguousarray(picture).ravel()
    develop(frame, view, LENS, 0.0, False, 0, 0)
    shown = frame.reshape(view.shape)
    plane = shown if view.layout == 2 else (shown[0] if view.layout == 1 else shown[..., 0])
    assert plane[60, 120] == pytest.approx(80.0 + 0.390625 * 80.0, abs=1.0)
    assert plane[0, 120] == pytest.approx(120, abs=1.0)  # at the upper edge columns stay where they are


def test_a_cropped_view_is_warped_as_part_of_the_whole() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (120, 160)).astype(np.uint8)
    whole, part = picture.ravel().copy(), picture[20:100].ravel().copy()
    develop(whole, View.full().grey(), LENS, 0.0, False, 0, 0)
    develop(part, View.full().cropped(20, 100).grey(), LENS, 0.0, False, 0, 0)
    assert np.array_equal(whole.reshape(120, 160)[24:96], part.reshape(80, 160)[4:76])


@pytest.mark.parametrize("view", VIEWS)
def test_blur_is_the_mean_of_nine(view: View) -> None:
    frame = np.full(view.shape, 10, np.uint8)
    place = (50, 60) if view.layout == 2 else ((1, 50, 60) if view.layout == 1 else (50, 60, 1))
    frame[place] = 190
    flat = frame.ravel().copy()
    develop(flat, view, None, 0.0, True, 0, 0)
    blurred = flat.reshape(view.shape)
    assert (blurred == 30).sum() == 9  # 10 + 180 / 9
    assert (blurred == 10).sum() == blurred.size - 9
    assert blurred[place] == 30


def test_noise_has_its_deviation_and_is_a_function_of_seed_and_frame() -> None:
    view = View.full()
    frames = []
    for seed, number in ((1, 0), (1, 0), (1, 1), (2, 0)):
        frame = np.full(57600, 120, np.uint8)
        develop(frame, view, None, 6.0, False, seed, number)
        frames.append(frame)
    assert np.array_equal(frames[0], frames[1])
    assert not np.array_equal(frames[0], frames[2])
    assert not np.array_equal(frames[0], frames[3])
    assert frames[0].mean() == pytest.approx(120.0, abs=0.1)
    assert frames[0].std() == pytest.approx(6.0, abs=0.1)
    neighbours = frames[0].astype(float) - 120.0
    assert abs((neighbours[:-1] * neighbours[1:]).mean()) < 0.6  # of a variance of 36


def test_noise_stays_in_range() -> None:
    frame = np.tile(np.array([0, 255], np.uint8), 9600)
    develop(frame, View.full().grey(), None, 20.0, False, -3, 5)
    assert frame[::2].max() < 100
    assert frame[1::2].min() > 150
    assert (frame[::2] == 0).mean() > 0.4
    assert (frame[1::2] == 255).mean() > 0.4


def test_impossible_views_are_refused() -> None:
    with pytest.raises(ConfigError, match="0x120"):
        View.full(0, 120)
    with pytest.raises(ConfigError, match=r"Rows 40\.\.130"):
        View.full().cropped(40, 130)
    with pytest.raises(ConfigError, match="80x0"):
        View.full().resized(80, 0)
