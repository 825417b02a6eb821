"""What lens and sensor do to a finished frame: fisheye, blur, noise. Frames are rows of bytes in a view's layout.

The fisheye is the Unity simulator's image-space warp: with q = (qx, qy) the place in the picture from -1 to 1 and
k = strength · 80 / 512 (x also times the picture's width over its height), a pixel at texture coordinate uv shows what
the pinhole picture has at ``uv - (ky (1 - qy²) qx, kx (1 - qx²) qy)``. q is measured on the whole picture, so a cropped
or resized view is warped as the same part of the whole picture would be.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.jit import kernel
from rl_training.simulator.view import GREY, PLANES, View

Bytes = NDArray[np.uint8]

_UNITY_SCALE = 80.0 / 512.0
_BYTES_DEVIATION = math.sqrt(4.0 * (256.0**2 - 1.0) / 12.0)  # of the sum of four random bytes


class Lens(NamedTuple):
    """A fisheye over a pinhole picture."""

    strength_x: float
    strength_y: float
    half_height: float = 1.0  # tangent of half the vertical field of view of the whole picture
    aspect: float = 4.0 / 3.0  # its width over its height

    @classmethod
    def fisheye(cls, x: float, y: float, *, fov: float = 90.0, aspect: float = 4.0 / 3.0) -> Lens:
        """The lens of `fish_eye_x`, `fish_eye_y` on a picture with a vertical field of view of `fov` degrees."""
        return cls(x, y, math.tan(math.radians(fov) / 2.0), aspect)


def develop(
    frame: Bytes, view: View, lens: Lens | None, noise: float, blur: bool, seed: int, frame_number: int
) -> None:
    """Warp, blur and add noise of standard deviation `noise` to the bytes of one frame, in place.

    The noise is a function of seed, frame number and place: the same whatever was drawn before.
    """
    if lens is not None and (lens.strength_x or lens.strength_y):
        _warp(frame.copy(), frame, view, lens)
    if blur:
        _blur(frame.copy(), frame, view)
    if noise > 0.0:
        _add_noise(frame, noise, np.uint64(seed & 0xFFFFFFFFFFFFFFFF), np.uint64(frame_number))


@kernel
def _layout(view: View) -> tuple[int, int, int]:
    """Channels, bytes from channel to channel, bytes from pixel to pixel."""
    if view.layout == GREY:
        return 1, 0, 1
    return (3, view.width * view.height, 1) if view.layout == PLANES else (3, 1, 3)


@kernel
def warp_source(qx: float, qy: float, lens: Lens) -> tuple[float, float]:
    """Where, from -1 to 1, the pinhole picture has what the lens shows at (qx, qy)."""
    kx = lens.strength_x * lens.aspect * _UNITY_SCALE
    ky = lens.strength_y * _UNITY_SCALE
    return qx - 2.0 * ky * (1.0 - qy * qy) * qx, qy - 2.0 * kx * (1.0 - qx * qx) * qy


@kernel
def _warp(source: Bytes, frame: Bytes, view: View, lens: Lens) -> None:
    channels, channel_step, step = _layout(view)
    half_x = view.fx * lens.half_height * lens.aspect
    half_y = view.fy * lens.half_height
    for row in range(view.height):
        for column in range(view.width):
            qx, qy = warp_source((column + 0.5 - view.cx) / half_x, (row + 0.5 - view.cy) / half_y, lens)
            x = min(max(qx * half_x + view.cx - 0.5, 0.0), view.width - 1.0)
            y = min(max(qy * half_y + view.cy - 0.5, 0.0), view.height - 1.0)
            left, top = int(x), int(y)
            right, bottom = min(left + 1, view.width - 1), min(top + 1, view.height - 1)
            a, b = x - left, y - top
            for channel in range(channels):
                base = channel * channel_step
                upper = (1.0 - a) * source[base + (top * view.width + left) * step]
                upper += a * source[base + (top * view.width + right) * step]
                lower = (1.0 - a) * source[base + (bottom * view.width + left) * step]
                lower += a * source[base + (bottom * view.width + right) * step]
                mean = (1.0 - b) * upper + b * lower
                frame[base + (row * view.width + column) * step] = np.uint8(mean + 0.5)


@kernel
def _blur(source: Bytes, frame: Bytes, view: View) -> None:
    """Each pixel becomes the mean of the 3×3 around it; the edge counts for what lies beyond it."""
    channels, channel_step, step = _layout(view)
    for channel in range(channels):
        base = channel * channel_step
        for row in range(view.height):
            above, below = max(row - 1, 0) * view.width, min(row + 1, view.height - 1) * view.width
            here = row * view.width
            for column in range(view.width):
                total = 4
                for across in (max(column - 1, 0), column, min(column + 1, view.width - 1)):
                    total += source[base + (above + across) * step]
                    total += source[base + (here + across) * step]
                    total += source[base + (below + across) * step]
                frame[base + (here + column) * step] = np.uint8(total // 9)


@kernel
def _mixed(x: np.uint64) -> np.uint64:
    """A well-mixed function of a counter (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _add_noise(frame: Bytes, deviation: float, seed: np.uint64, frame_number: np.uint64) -> None:
    """The sum of four random bytes is near enough to a normal deviate; a hash of 64 bits serves two pixels."""
    scale = deviation / _BYTES_DEVIATION
    start = _mixed(_mixed(seed + np.uint64(0x9E3779B97F4A7C15)) ^ frame_number)
    for pair in range((len(frame) + 1) // 2):
        bits = _mixed(start + np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15))
        for half in range(2):
            place = 2 * pair + half
            if place < len(frame):
                total = np.int64(bits & np.uint64(255)) + np.int64(bits >> np.uint64(8) & np.uint64(255))
                total += np.int64(bits >> np.uint64(16) & np.uint64(255)) + np.int64(
                    bits >> np.uint64(24) & np.uint64(255)
                )
                value = frame[place] + (total - 510) * scale
                frame[place] = np.uint8(min(max(value, 0.0), 255.0) + 0.5 if value < 254.5 else 255)
                bits >>= np.uint64(32)
