"""Hand-made tracks and frames for the camera's tests: a straight road, hills, and whatever stands on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.camera import OTHER_COLUMNS, Scratch, draw
from rl_training.simulator.packing import TrackBank, prepare
from rl_training.simulator.palette import light_row, palette
from rl_training.simulator.track import HeightField, Light, Material, Strip, Track
from rl_training.simulator.view import View, mount_row

COLORS = np.zeros((16, 3), np.uint8)
COLORS[Material.GROUND] = COLORS[Material.GROUND_ALT] = 60
COLORS[Material.ROAD] = 100
COLORS[Material.LINE_WHITE] = 220
COLORS[Material.LINE_YELLOW] = (210, 160, 40)
COLORS[Material.WALL] = (200, 30, 30)
COLORS[Material.CONE] = (240, 100, 20)
COLORS[Material.BALE] = (190, 170, 90)
EVEN = Light(direction=(0.0, -1.0, 0.0), color=(255, 255, 255), sun=0.0, ambient=1.0, indoor=True)
RIDE = 0.566
EYE = RIDE + 1.120395  # height of the camera above the ground
AHEAD = 0.5528488  # of the camera before the car's origin


def road(*strips: Strip, length: float = 120.0, **changes: Any) -> Track:
    """A road straight along +z from z = 0, seen in even light, without grain unless asked for."""
    z = np.arange(0.0, length + 0.25, 0.5)
    line = np.stack((np.zeros_like(z), np.zeros_like(z), z), axis=1)
    given: dict[str, Any] = {
        "name": "straight",
        "closed": False,
        "nodes": line[::4],
        "line": line,
        "length": length,
        "strips": strips,
        "half_widths": (-5.0, 5.0),
        "colors": COLORS,
        "ground_roughness": 0.0,
        "light": EVEN,
    }
    return Track(**{**given, **changes})


def hills(height: NDArray[np.float64], cell: float = 2.0, x0: float = -60.0, z0: float = -20.0) -> HeightField:
    """A height field of a grid of heights."""
    return HeightField(x0, z0, cell, height.astype(np.float32))


class Camera:
    """One camera over one track."""

    def __init__(self, track: Track, view: View | None = None) -> None:
        self.track, self.view = track, view or View.full()
        slots = TrackBank(1)
        slots.put(0, prepare(track))
        self.bank: Bank = slots.bank
        self.palette = palette(track.colors, track.light)
        self.light = light_row(track.light)
        self.scratch = Scratch.of(self.view)

    def frame(
        self,
        x: float = 0.0,
        z: float = 10.0,
        yaw: float = 0.0,
        *,
        y: float = RIDE,
        pitch: float = 0.0,
        roll: float = 0.0,
        others: NDArray[np.float64] | None = None,
    ) -> NDArray[np.uint8]:
        """A frame, in the view's shape."""
        out = np.empty(int(np.prod(self.view.shape)), np.uint8)
        cars = np.zeros((0, OTHER_COLUMNS)) if others is None else others
        pose = np.array([x, y, z, yaw, pitch, roll])
        draw(self.bank, 0, pose, mount_row(), self.view, self.palette, self.light, cars, self.scratch, out)
        return out.reshape(self.view.shape)
