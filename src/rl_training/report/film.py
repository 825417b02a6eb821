"""Frames into a GIF or an MP4, and frames enlarged with a caption for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rl_training.errors import UsageError

Frame = NDArray[np.uint8]


def enlarged(frame: Frame, factor: int) -> Frame:
    """Every pixel as a square of factor × factor."""
    return np.repeat(np.repeat(frame, factor, axis=0), factor, axis=1)


def captioned(frame: Frame, text: str) -> Frame:
    """`text` in white on a dark band at the foot of a copy of the frame."""
    picture = frame.copy()
    height, width = picture.shape[:2]
    band = max(12, height // 12)
    picture[height - band :] //= 3
    (natural, _), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 1.0, 1)
    scale = min(band / 30.0, (width - 8) / max(natural, 1))
    cv2.putText(
        picture, text, (4, height - band // 4), cv2.FONT_HERSHEY_SIMPLEX, scale, (255, 255, 255), 1, cv2.LINE_AA
    )
    return picture


def film_path(path: str | Path) -> Path:
    """Where to save a film, if the name's ending says how."""
    target = Path(path)
    if target.suffix not in (".gif", ".mp4"):
        raise UsageError(f"A film cannot be saved as '{target.name}'; use a name that ends in .gif or .mp4.")
    return target


def save_film(frames: Sequence[Frame], path: str | Path, fps: float = 20.0) -> Path:
    """Write frames to a ``.gif`` or ``.mp4`` file, by its ending."""
    target = film_path(path)
    if not frames:
        raise UsageError("There are no frames to save; drive at least one step first.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".gif":
        _save_gif(frames, target, fps)
    else:
        _save_mp4(frames, target, fps)
    return target


def _save_gif(frames: Sequence[Frame], target: Path, fps: float) -> None:
    # one palette for all frames: smaller files and no flicker between frames
    samples = np.concatenate([frames[i] for i in np.linspace(0, len(frames) - 1, 6).astype(int)])
    palette = Image.fromarray(samples).quantize(128)
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    pictures[0].save(target, save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0)


def _save_mp4(frames: Sequence[Frame], target: Path, fps: float) -> None:
    height, width = frames[0].shape[:2]
    writer = cv2.VideoWriter(str(target), cv2.VideoWriter.fourcc(*"mp4v"), fps, (width, height))
    for frame in frames:
        writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
    writer.release()
