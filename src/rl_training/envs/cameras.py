"""From the world's frames to a policy's observations: crop, size and colour drawn directly, then stacked over time."""

from __future__ import annotations

import sys
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rl_training.envs.spec import CameraSpec, ObservationSpec
from rl_training.simulator.optics import Lens
from rl_training.simulator.randomize import Appearance
from rl_training.simulator.rig import CameraRig
from rl_training.simulator.view import View
from rl_training.simulator.world import World

Images = NDArray[np.uint8]


def view_of(observation: ObservationSpec, camera: CameraSpec) -> View:
    """The picture that is drawn: the policy's own crop and size, with no full frame behind it."""
    view = View.full(observation.camera_width, observation.camera_height, camera.fov).cropped(
        observation.crop_top,
        observation.camera_height - observation.crop_bottom,
        observation.crop_left,
        observation.camera_width - observation.crop_right,
    )
    if (view.width, view.height) != (observation.width, observation.height):
        view = view.resized(observation.width, observation.height)
    if observation.grey:
        return view.grey()
    return view.planes() if observation.channels_first else view


def cut_from_frame(frame: Images, observation: ObservationSpec) -> Images:
    """The same picture cut from a full camera frame, for simulators that send whole frames: (H, W, C)."""
    rows = slice(observation.crop_top, frame.shape[0] - observation.crop_bottom)
    columns = slice(observation.crop_left, frame.shape[1] - observation.crop_right)
    cut: NDArray[Any] = np.ascontiguousarray(frame[rows, columns])
    if cut.shape[:2] != (observation.height, observation.width):
        cut = cv2.resize(cut, (observation.width, observation.height), interpolation=cv2.INTER_AREA)
    cut = cut.reshape(observation.height, observation.width, -1)
    if observation.grey and cut.shape[2] == 3:
        grey = cut @ np.array([0.2126, 0.7152, 0.0722])
        cut = (grey + 0.5).astype(np.uint8)[..., None]
    return cut


def paint_commands(pictures: Images, commands: NDArray[np.float64], rows: int) -> None:
    """Show the commands (n, 2 or more) that led to the pictures (n, H, W, C) in their lowest ``rows``.

    Steering on the left half and throttle on the right, -1 black and 1 white. A stack of frames is then also the
    history of commands, which a policy needs where steering is slow or the simulator answers late.
    """
    half = pictures.shape[2] // 2
    levels = np.rint((commands + 1.0) * 127.5).astype(np.uint8)
    pictures[:, -rows:, :half] = levels[:, 0, None, None, None]
    pictures[:, -rows:, half:] = levels[:, 1, None, None, None]


class _Buffers:
    """Arrays of one shape, handed out again once nobody holds them or a view of them.

    Fresh memory of a megabyte a step would cost more in page faults than drawing into it.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._arrays: list[Images] = []

    def take(self) -> Images:
        """An array whose contents nobody needs any more."""
        for k in range(len(self._arrays)):
            if sys.getrefcount(self._arrays[k]) == 2:  # the list and the call's own argument
                return self._arrays[k]
        self._arrays.append(np.empty(self._shape, np.uint8))
        return self._arrays[-1]


class StackedCamera:
    """The cameras of all cars, with each car's last frames."""

    def __init__(self, world: World, observation: ObservationSpec, camera: CameraSpec) -> None:
        self.observation = observation
        view = view_of(observation, camera)
        fisheye = any(camera.fisheye)
        aspect = observation.camera_width / observation.camera_height
        lens = Lens.fisheye(*camera.fisheye, fov=camera.fov, aspect=aspect) if fisheye else None
        self.rig = CameraRig(world, view, offset=camera.offset, degrees=camera.rotation, fov=camera.fov, lens=lens)
        self._stack = observation.stack
        self._all = np.arange(world.size)
        self._frames = _Buffers((world.size, self.rig.frame_bytes))
        self._stacks = _Buffers((world.size, self._stack, self.rig.frame_bytes))
        self._history: Images = np.zeros((world.size, self._stack, self.rig.frame_bytes), np.uint8)
        self._fresh = np.ones(world.size, np.bool_)  # no frame of this episode was taken yet

    def dress(self, car: int, look: Appearance) -> None:
        """Take up an appearance."""
        self.rig.dress(car, look)

    def forget(self, car: int) -> None:
        """A new episode: the next frame fills the whole stack."""
        self._fresh[car] = True

    def observe(self, cars: NDArray[np.int64] | None = None, commands: NDArray[np.float64] | None = None) -> Images:
        """Observations of all cars, which become their history; of some, for a last look before they are reset.

        ``commands`` are the last ones of all cars, for observations that show them.
        """
        indices = self._all if cars is None else cars
        whole = len(indices) == len(self._all)
        frames = self._frames.take() if whole else np.empty((len(indices), self.rig.frame_bytes), np.uint8)
        self.rig.draw(indices, frames)
        if self.observation.command_rows:
            assert commands is not None, "an observation that shows commands needs them"
            paint_commands(self._pictures(frames), commands[indices], self.observation.command_rows)
        if self._stack == 1:
            return self._arranged(frames[:, None])
        shape = (len(indices), self._stack, self.rig.frame_bytes)
        stacked = self._stacks.take() if whole else np.empty(shape, np.uint8)
        stacked[:, :-1] = self._history[:, 1:] if cars is None else self._history[cars, 1:]
        stacked[:, -1] = frames
        if cars is None:
            if self._fresh.any():
                stacked[self._fresh] = frames[self._fresh, None]
                self._fresh[:] = False
            self._history = stacked
        return self._arranged(stacked)

    def _pictures(self, frames: Images) -> Images:
        """Frames (n, bytes) as (n, H, W, C), the same memory."""
        view = self.observation
        if view.channels_first:
            return frames.reshape(-1, view.channels, view.height, view.width).transpose(0, 2, 3, 1)
        return frames.reshape(-1, view.height, view.width, view.channels)

    def _arranged(self, stacked: Images) -> Images:
        """(n, stack, bytes) in the observation's own shape."""
        count, (shape, channels) = len(stacked), (self.observation.shape, self.observation.channels)
        if self.observation.channels_first:
            return stacked.reshape(count, *shape)
        pixels = stacked.reshape(count, self._stack, self.observation.height, self.observation.width, channels)
        if self._stack == 1:
            return pixels[:, 0]
        return np.ascontiguousarray(np.moveaxis(pixels, 1, 3)).reshape(count, *shape)

    def save_state(self) -> dict[str, Any]:
        """Frame history and counters."""
        return {"history": self._history.copy(), "fresh": self._fresh.copy(), "rig": self.rig.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """The inverse of `save_state`."""
        self._history = saved["history"].copy()
        self._fresh[:] = saved["fresh"]
        self.rig.load_state(saved["rig"])
