"""`RemoteBatch`: one car in each of several simulators over TCP, as a batch like the embedded world's.

What the simulators tell is mirrored into a world's state, so rewards, guards, limits and infos are the ones of the
embedded batch. Controls go to all simulators before any answer is waited for: a step takes as long as the slowest.
A simulator that is gone truncates its car's episode; the next reset of that car connects anew.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.envs.batch import DonkeyBatch
from rl_training.envs.cameras import cut_from_frame, paint_commands
from rl_training.envs.conf import parse_conf
from rl_training.envs.embedded import turned
from rl_training.envs.frame import Frame
from rl_training.envs.remote import RemoteSimulator
from rl_training.envs.spec import CameraSpec, EnvSpec, ObservationSpec, StartSpec
from rl_training.errors import ConfigError, SimulatorError
from rl_training.protocol.transport import parse_address
from rl_training.simulator import motion
from rl_training.simulator import state as s
from rl_training.simulator.path import follow_line
from rl_training.simulator.randomize import DomainRandomization
from rl_training.simulator.state import METRE
from rl_training.simulator.track import LINE_INDEX, Track
from rl_training.simulator.world import World, named_track

logger = logging.getLogger(__name__)


class RemoteBatch(DonkeyBatch):
    """Car i drives ``spec.tracks[i % len]`` in the simulator at ``addresses[i]``, "HOST:PORT"."""

    can_be_saved = False  # what goes on in a simulator elsewhere stays there

    def __init__(
        self, spec: EnvSpec, addresses: Sequence[str], *, seed: int | None = None, conf: Mapping[str, Any] | None = None
    ) -> None:
        if not addresses:
            raise ConfigError("No simulator is named; expected addresses such as 127.0.0.1:9091.")
        if len(spec.tracks) > len(addresses):
            raise ConfigError(
                f"{len(spec.tracks)} tracks need as many simulators and {len(addresses)} are named: "
                "a simulator holds one scene. Name more of them, HOST:PORT,HOST:PORT, or drive fewer tracks."
            )
        if spec.randomization.enabled or spec.start != StartSpec():
            logger.warning("A simulator over TCP looks as it looks and starts where it starts: no randomisation here.")
            spec = replace(spec, randomization=DomainRandomization(), start=StartSpec())
        super().__init__(spec, len(addresses), seed=seed, stage=RemoteStage(spec, addresses, conf or {}))

    def _out_of_time_or_road(self) -> NDArray[np.bool_]:
        return super()._out_of_time_or_road() | self._lost

    @property
    def _lost(self) -> NDArray[np.bool_]:
        assert isinstance(self.world, RemoteWorld), "made by our own stage"
        return self.world.lost

    def episode_info(self, i: int) -> dict[str, Any]:
        info = super().episode_info(i)
        return {**info, "sim_lost": True} if self._lost[i] else info

    def end_cause(self, i: int, terminated: bool) -> str:
        return "sim_lost" if self._lost[i] and not terminated else super().end_cause(i, terminated)


class RemoteWorld(World):
    """State of cars that live elsewhere. Tracks are the embedded copies of the scenes: for edges, lengths, progress."""

    def __init__(self, simulators: Sequence[RemoteSimulator]) -> None:
        super().__init__(len(simulators))
        self.simulators = list(simulators)
        self.frames: list[Frame | None] = [None] * len(simulators)
        self.lost: NDArray[np.bool_] = np.zeros(len(simulators), np.bool_)

    def begin(self, car: int, rng: np.random.Generator, reseeded: bool) -> None:
        """A new episode in one simulator; its track is loaded already."""
        frame = self.simulators[car].reset(rng, {"reseeded": reseeded})
        self.lost[car] = False
        yaw = math.radians(frame.orientation[1])
        slot = self.slots[car]
        motion.place_car(self.bank, slot, self.state[car], frame.position[0] * METRE, frame.position[2] * METRE, yaw, 0)
        self._mirror(car, frame)

    def step(self, controls: NDArray[Any]) -> None:
        asked = [car for car in range(self.size) if not self.lost[car] and self._send(car, controls[car])]
        for car in asked:
            try:
                frame = self.simulators[car].wait()
            except SimulatorError:
                self.lost[car] = True
            else:
                self._mirror(car, frame)

    def _send(self, car: int, control: NDArray[Any]) -> bool:
        try:
            self.simulators[car].send(*(float(value) for value in control))
        except SimulatorError:
            self.lost[car] = True
        return not self.lost[car]

    def _mirror(self, car: int, frame: Frame) -> None:
        """Write what a frame tells into the car's row. The Unity simulator tells no progress: it is followed here."""
        self.frames[car] = frame
        row = self.state[car]
        row[[s.X, s.Y, s.Z]] = np.array(frame.position) * METRE
        row[[s.LATERAL, s.VERTICAL, s.FORWARD]] = np.array(frame.velocity) * METRE
        row[[s.ACCEL_LATERAL, s.ACCEL_FORWARD]] = frame.accel[0] * METRE, frame.accel[2] * METRE
        row[[s.PITCH, s.YAW, s.ROLL]] = np.radians(frame.orientation)
        row[s.YAW_RATE] = frame.gyro[1]
        row[[s.PITCH_RATE, s.ROLL_RATE]] = turned(frame.gyro[0], frame.gyro[2], -row[s.YAW])
        row[[s.ODOM_FL, s.ODOM_FR, s.ODOM_RL, s.ODOM_RR]] = frame.odometry
        row[[s.STEER, s.THROTTLE, s.TIME]] = frame.steering_angle, frame.throttle, frame.time
        row[s.HIT] = -1.0 if frame.hit == "none" else 0.0
        progress = frame.progress
        if progress.length > 0.0:
            row[[s.PROGRESS, s.FURTHEST]] = progress.distance * METRE, progress.furthest * METRE
            row[[s.OFFSET, s.LAPS, s.LAST_LAP]] = progress.offset, progress.laps, progress.last_lap_time
        elif self.track(car).name != "generated_road":  # whose course only its own simulator knows
            follow_line(self.bank, self.slots[car], row)
        row[s.NODE], row[s.CTE] = frame.active_node, frame.cte
        row[s.LINE_EVENT] = -1.0
        if frame.start_line is not None:
            lines = self.track(car).start_lines[:, LINE_INDEX].astype(int).tolist()
            row[s.LINE_EVENT] = lines.index(frame.start_line[0]) if frame.start_line[0] in lines else -1.0
            row[s.LINE_TIME] = frame.start_line[1]

    def hit_name(self, car: int) -> str:
        frame = self.frames[car]
        return "none" if frame is None else frame.hit

    def close(self) -> None:
        for simulator in self.simulators:
            simulator.close()
        super().close()


class RemoteCamera:
    """Observations cut from the simulators' frames, with each car's last ones."""

    def __init__(self, world: RemoteWorld, observation: ObservationSpec) -> None:
        self._world = world
        self._observation = observation
        shape = (world.size, observation.stack, observation.height, observation.width, observation.channels)
        self._history: NDArray[np.uint8] = np.zeros(shape, np.uint8)
        self._fresh = np.ones(world.size, np.bool_)

    def forget(self, car: int) -> None:
        """A new episode: the next frame fills the whole stack."""
        self._fresh[car] = True

    def observe(
        self, cars: NDArray[np.int64] | None = None, commands: NDArray[np.float64] | None = None
    ) -> NDArray[np.uint8]:
        """Observations of all cars, which become their history; of some, for a last look before they are reset."""
        indices = np.arange(self._world.size) if cars is None else cars
        stacked = np.stack([self._stacked(int(car), commands) for car in indices])
        if cars is None:
            self._history = stacked
            self._fresh[:] = False
        axes = (0, 1, 4, 2, 3) if self._observation.channels_first else (0, 2, 3, 1, 4)
        return np.ascontiguousarray(stacked.transpose(axes)).reshape(len(indices), *self._observation.shape)

    def _stacked(self, car: int, commands: NDArray[np.float64] | None) -> NDArray[np.uint8]:
        frame = self._world.frames[car]
        assert frame is not None, "reset before the first frame"
        picture = cut_from_frame(frame.image, self._observation)
        if self._observation.command_rows:
            assert commands is not None, "an observation that shows commands needs them"
            picture = picture.copy()  # it may be the frame itself
            paint_commands(picture[None], commands[[car]], self._observation.command_rows)
        if self._fresh[car]:
            return np.repeat(picture[None], self._observation.stack, axis=0)
        return np.concatenate([self._history[car, 1:], picture[None]])


class RemoteStage:
    """World and cameras of a `RemoteBatch`, in the form of `Stage`."""

    def __init__(self, spec: EnvSpec, addresses: Sequence[str], conf: Mapping[str, Any]) -> None:
        self.spec = spec
        tracks = [spec.tracks[i % len(spec.tracks)] for i in range(len(addresses))]
        simulators = [
            RemoteSimulator(track, parse_conf({**_conf_of(spec), **conf, **_place(address)}))
            for track, address in zip(tracks, addresses)
        ]
        self.world = RemoteWorld(simulators)
        self.camera = RemoteCamera(self.world, spec.observation)

    def begin(self, arena: int, rng: np.random.Generator, reseeded: bool) -> Track:
        """A new episode of one car."""
        self.world.load(arena, named_track(self.world.simulators[arena].track))
        self.world.begin(arena, rng, reseeded)
        self.camera.forget(arena)
        return self.world.track(arena)

    def save_state(self) -> dict[str, Any]:
        """Never asked for: see `RemoteBatch.can_be_saved`."""
        raise NotImplementedError

    def load_state(self, saved: dict[str, Any]) -> None:
        """Never asked for, as `save_state`."""
        raise NotImplementedError


def _place(address: str) -> dict[str, Any]:
    host, port = parse_address(address)
    return {"host": host, "port": port}


def _conf_of(spec: EnvSpec) -> dict[str, Any]:
    """The camera of a spec as gym-donkeycar's conf."""
    observation, camera = spec.observation, spec.camera
    conf: dict[str, Any] = {"cam_resolution": (observation.camera_height, observation.camera_width, 3)}
    if camera != CameraSpec():
        names = ("x", "y", "z")
        conf["cam_config"] = {
            "fov": camera.fov,
            "fish_eye_x": camera.fisheye[0],
            "fish_eye_y": camera.fisheye[1],
            **{f"offset_{name}": value for name, value in zip(names, camera.offset)},
            **{f"rot_{name}": value for name, value in zip(names, camera.rotation)},
        }
    return conf
