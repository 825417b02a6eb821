"""`CameraRig`: a camera on every car of a world, all with one kind of picture, drawn in batches.

What differs between the cars (how the camera sits, its field of view, colours, light, noise) is data in arrays; cars
that look alike share a palette.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.camera import OTHER_COLOR, OTHER_COLUMNS, Scratch, draw
from rl_training.simulator.jit import kernel
from rl_training.simulator.optics import Lens, develop
from rl_training.simulator.palette import LIGHT_COLUMNS, PALETTE_SIZE, light_row, palette
from rl_training.simulator.randomize import Appearance
from rl_training.simulator.sharing import SharedSlots
from rl_training.simulator.state import PITCH, ROLL, YAW, X, Y, Z
from rl_training.simulator.track import Floats, Ints
from rl_training.simulator.view import View, mount_row
from rl_training.simulator.world import World

CAR_COLORS = (0xC8281E, 0x1E5AC8, 0x28A03C, 0xE6C81E, 0x8C3CB4, 0xF08228, 0x28B4BE, 0xDCDCDC)


class Cameras(NamedTuple):
    """One row a car."""

    mounts: NDArray[np.float64]  # (n, MOUNT_COLUMNS)
    zoom: NDArray[np.float64]  # (n,) factor on the focal lengths
    palette_of: NDArray[np.int32]  # (n,)
    palettes: NDArray[np.uint32]  # (n, PALETTE_SIZE)
    lights: NDArray[np.float64]  # (n, LIGHT_COLUMNS)
    colors: NDArray[np.float64]  # (n,) body colour, as other cars see it


@kernel
def _others(state: Floats, colors: Floats, cars: int, i: int, others: Floats) -> None:
    """Poses of the cars in i's arena but i itself."""
    first = i - i % cars
    row = 0
    for k in range(first, first + cars):
        if k != i:
            others[row, 0] = state[k, X]
            others[row, 1] = state[k, Y]
            others[row, 2] = state[k, Z]
            others[row, 3] = state[k, YAW]
            others[row, 4] = state[k, PITCH]
            others[row, 5] = state[k, ROLL]
            others[row, OTHER_COLOR] = colors[k]
            row += 1


@kernel
def draw_cars(
    bank: Bank,
    slots: Ints,
    state: Floats,
    cameras: Cameras,
    view: View,
    cars: int,
    indices: NDArray[np.int64],
    bounds: tuple[int, int],
    others: Floats,
    scratch: Scratch,
    out: NDArray[np.uint8],
) -> None:
    """Frames of cars indices[first:last] for `bounds` (first, last) into the same rows of `out`."""
    for place in range(bounds[0], bounds[1]):
        i = indices[place]
        zoom = cameras.zoom[i]
        own = View(view.width, view.height, view.fx * zoom, view.fy * zoom, view.cx, view.cy, view.layout)
        _others(state, cameras.colors, cars, i, others)
        palette = cameras.palettes[cameras.palette_of[i]]
        light = cameras.lights[i]
        draw(bank, slots[i // cars], state[i], cameras.mounts[i], own, palette, light, others, scratch, out[place])


class CameraRig:
    """A camera on every car; `draw` gives their frames."""

    def __init__(
        self,
        world: World,
        view: View,
        *,
        offset: tuple[float, float, float] | None = None,
        degrees: tuple[float, float, float] = (15.0, 0.0, 0.0),
        fov: float = 90.0,
        lens: Lens | None = None,
    ) -> None:
        self.world, self.view, self.lens = world, view, lens
        self.frame_bytes = math.prod(view.shape)
        size = world.size
        self._mount = mount_row(degrees=degrees) if offset is None else mount_row(offset, degrees)
        self._half_fov = math.radians(fov) / 2.0
        self._shared = SharedSlots(size)
        self.cameras = Cameras(
            mounts=np.tile(self._mount, (size, 1)),
            zoom=np.ones(size),
            palette_of=self._shared.slot_of,
            palettes=np.zeros((size, PALETTE_SIZE), np.uint32),
            lights=np.zeros((size, LIGHT_COLUMNS)),
            colors=np.array([CAR_COLORS[i % world.cars % len(CAR_COLORS)] for i in range(size)], np.float64),
        )
        self._noise = np.zeros(size)
        self._blur = np.zeros(size, np.bool_)
        self._seeds = np.zeros(size, np.int64)
        self._frames_drawn = np.zeros(size, np.int64)
        self._scratch = [Scratch.of(view) for _ in range(world.threads)]
        self._others = [np.zeros((world.cars - 1, OTHER_COLUMNS)) for _ in range(world.threads)]

    def dress(self, car: int, look: Appearance) -> None:
        """Take up an appearance: palette, light, how the camera sits, its faults."""
        key = (look.colors.tobytes(), look.light)
        slot, fresh = self._shared.assign(car, key)
        if fresh:
            self.cameras.palettes[slot] = palette(look.colors, look.light)
        self.cameras.lights[car] = light_row(look.light)
        self.cameras.mounts[car] = self._mount + np.array([*look.camera_offset, *look.camera_angle])
        self.cameras.zoom[car] = math.tan(self._half_fov) / math.tan(self._half_fov + 0.5 * look.camera_fov)
        self._noise[car], self._blur[car] = look.noise, look.blur
        self._seeds[car], self._frames_drawn[car] = look.noise_seed, 0

    def draw(self, indices: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """Fresh frames of these cars into `out`, (len(indices), frame_bytes)."""
        world = self.world
        bank = world.bank

        def work(first: int, last: int, thread: int) -> None:
            scratch, others = self._scratch[thread], self._others[thread]
            draw_cars(
                bank,
                world.slots,
                world.state,
                self.cameras,
                self.view,
                world.cars,
                indices,
                (first, last),
                others,
                scratch,
                out,
            )

        world.spread(len(indices), work)
        self._develop(indices, out)

    def _develop(self, indices: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """What lens and sensor add, for the cars that have any of it."""
        if self.lens is None and not self._noise.any() and not self._blur.any():
            return
        for row, car in enumerate(indices.tolist()):
            noise, blur, seed = float(self._noise[car]), bool(self._blur[car]), int(self._seeds[car])
            develop(out[row], self.view, self.lens, noise, blur, seed, int(self._frames_drawn[car]))
            self._frames_drawn[car] += 1

    def save_state(self) -> dict[str, NDArray[np.int64]]:
        """The frame counters, on which the sensor's noise depends."""
        return {"frames_drawn": self._frames_drawn.copy()}

    def load_state(self, saved: dict[str, NDArray[np.int64]]) -> None:
        """The inverse of `save_state`, after the same appearances were put on."""
        self._frames_drawn[:] = saved["frames_drawn"]
