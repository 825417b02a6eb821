"""Films and captions."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from rl_training.errors import UsageError
from rl_training.report.film import captioned, enlarged, save_film

FRAMES = [np.full((24, 32, 3), shade, np.uint8) for shade in (20, 120, 220)]


def test_a_gif_keeps_frames_and_pace(tmp_path: Path) -> None:
    with Image.open(save_film(FRAMES, tmp_path / "sub" / "film.gif", fps=10.0)) as film:
        assert film.n_frames == 3  # type: ignore[attr-defined]
        assert film.info["duration"] == 100
        film.seek(2)
        assert abs(np.asarray(film.convert("RGB")).mean() - 220) < 3


def test_an_mp4_can_be_read_again(tmp_path: Path) -> None:
    reader = cv2.VideoCapture(str(save_film(FRAMES, tmp_path / "film.mp4")))
    assert reader.get(cv2.CAP_PROP_FRAME_COUNT) == 3
    reader.release()


@pytest.mark.parametrize(("frames", "name"), [(FRAMES, "film.avi"), ([], "film.gif")])
def test_what_cannot_be_saved_is_said(tmp_path: Path, frames: list[np.ndarray], name: str) -> None:
    with pytest.raises(UsageError):
        save_film(frames, tmp_path / name)


def test_a_long_caption_fits_the_picture() -> None:
    picture = captioned(np.full((240, 320, 3), 90, np.uint8), "word " * 30)
    assert picture[:210].min() == picture[:210].max() == 90  # the picture above the band stays
    assert (picture[220:, -4:] < 120).all(), "no letter is cut off at the edge"
    assert (picture[220:] > 150).any()


def test_enlarging_repeats_pixels() -> None:
    np.testing.assert_array_equal(enlarged(np.array([[1, 2]], np.uint8), 2), [[1, 1, 2, 2], [1, 1, 2, 2]])
