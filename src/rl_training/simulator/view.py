"""What the camera looks with: where it sits on the car, its picture's size and lens, and the rays of a pose.

Axes of a camera: right, up, forward (left-handed, as Unity's). Rows run downwards, columns to the right; the picture's
edges lie at 0 and `width`, so a pixel's centre is at column + 0.5. The ray of a pixel is
``forward + right · (column + 0.5 - cx) / fx - up · (row + 0.5 - cy) / fy``: `t` times it ends at depth t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.errors import ConfigError
from rl_training.simulator.jit import kernel
from rl_training.simulator.state import PITCH, ROLL, YAW, X, Y, Z

RGB, PLANES, GREY = 0, 1, 2  # layouts: (H, W, 3), (3, H, W), (H, W)

# Columns of a mount row: where the camera sits on the car [u], right, up, forward, and how it is turned there [rad].
MOUNT_X, MOUNT_Y, MOUNT_Z, ROT_X, ROT_Y, ROT_Z = range(6)
MOUNT_COLUMNS = 6


class View(NamedTuple):
    """A pinhole picture: its size, focal lengths and centre in pixels, and the layout of its bytes."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    layout: int = RGB

    @classmethod
    def full(cls, width: int = 160, height: int = 120, fov: float = 90.0, layout: int = RGB) -> View:
        """The whole picture of a camera with a vertical field of view of `fov` degrees."""
        if width < 1 or height < 1 or not 1.0 <= fov <= 170.0:
            raise ConfigError(
                f"A camera of {width}x{height} pixels with a field of view of {fov} degrees cannot be drawn; "
                "use a size of at least 1x1 and a field of view from 1 to 170."
            )
        focal = 0.5 * height / math.tan(math.radians(fov) / 2.0)
        return cls(width, height, focal, focal, 0.5 * width, 0.5 * height, layout)

    def cropped(self, top: int = 0, bottom: int | None = None, left: int = 0, right: int | None = None) -> View:
        """Rows `top` to `bottom` and columns `left` to `right` (ends not included) of this view."""
        bottom = self.height if bottom is None else bottom
        right = self.width if right is None else right
        if not (0 <= top < bottom <= self.height and 0 <= left < right <= self.width):
            raise ConfigError(
                f"Rows {top}..{bottom} and columns {left}..{right} are no part of a picture of "
                f"{self.height} rows and {self.width} columns; keep 0 <= start < end <= size."
            )
        return self._replace(width=right - left, height=bottom - top, cx=self.cx - left, cy=self.cy - top)

    def resized(self, width: int, height: int) -> View:
        """This view in another number of pixels, drawn at that size directly."""
        if width < 1 or height < 1:
            raise ConfigError(f"A picture cannot have {width}x{height} pixels; use at least 1x1.")
        across, down = width / self.width, height / self.height
        return View(width, height, self.fx * across, self.fy * down, self.cx * across, self.cy * down, self.layout)

    def grey(self) -> View:
        """This view as one plane of luma."""
        return self._replace(layout=GREY)

    def planes(self) -> View:
        """This view with channels first."""
        return self._replace(layout=PLANES)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        if self.layout == GREY:
            return (self.height, self.width)
        return (3, self.height, self.width) if self.layout == PLANES else (self.height, self.width, 3)


def mount_row(
    offset: tuple[float, float, float] = (0.0, 1.120395, 0.5528488),
    degrees: tuple[float, float, float] = (15.0, 0.0, 0.0),
) -> NDArray[np.float64]:
    """(MOUNT_COLUMNS,): the Unity car's camera unless said otherwise."""
    return np.array([*offset, *np.radians(degrees)], np.float64)


class Eye(NamedTuple):
    """A camera in the world: its place and its three axes."""

    x: float
    y: float
    z: float
    right_x: float
    right_y: float
    right_z: float
    up_x: float
    up_y: float
    up_z: float
    forward_x: float
    forward_y: float
    forward_z: float


@kernel
def turn(x: float, y: float, z: float, yaw: float, pitch: float, roll: float) -> tuple[float, float, float]:
    """A vector of the turned frame in the frame it was turned in: roll first, then pitch, then yaw, as in Unity."""
    sine, cosine = math.sin(roll), math.cos(roll)
    x, y = x * cosine - y * sine, x * sine + y * cosine
    sine, cosine = math.sin(pitch), math.cos(pitch)
    y, z = y * cosine - z * sine, y * sine + z * cosine
    sine, cosine = math.sin(yaw), math.cos(yaw)
    return x * cosine + z * sine, y, z * cosine - x * sine


@kernel
def eye_of(pose: NDArray[np.float64], mount: NDArray[np.float64]) -> Eye:
    """The camera of a car at `pose` (X, Y, Z, YAW, PITCH, ROLL of its state row)."""
    yaw, pitch, roll = pose[YAW], pose[PITCH], pose[ROLL]
    x, y, z = turn(mount[MOUNT_X], mount[MOUNT_Y], mount[MOUNT_Z], yaw, pitch, roll)
    rx, ry, rz = turn(1.0, 0.0, 0.0, mount[ROT_Y], mount[ROT_X], mount[ROT_Z])
    rx, ry, rz = turn(rx, ry, rz, yaw, pitch, roll)
    ux, uy, uz = turn(0.0, 1.0, 0.0, mount[ROT_Y], mount[ROT_X], mount[ROT_Z])
    ux, uy, uz = turn(ux, uy, uz, yaw, pitch, roll)
    fx, fy, fz = turn(0.0, 0.0, 1.0, mount[ROT_Y], mount[ROT_X], mount[ROT_Z])
    fx, fy, fz = turn(fx, fy, fz, yaw, pitch, roll)
    return Eye(pose[X] + x, pose[Y] + y, pose[Z] + z, rx, ry, rz, ux, uy, uz, fx, fy, fz)


@kernel
def lifted(eye: Eye, least_y: float) -> Eye:
    """`eye`, no lower than `least_y`."""
    return Eye(
        eye.x, max(eye.y, least_y), eye.z,
        eye.right_x, eye.right_y, eye.right_z,
        eye.up_x, eye.up_y, eye.up_z,
        eye.forward_x, eye.forward_y, eye.forward_z,
    )  # fmt: skip
