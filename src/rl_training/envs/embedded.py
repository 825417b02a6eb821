"""The embedded world behind the `Simulator` seam: one car, told about in the wire's own units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rl_training.envs.cameras import StackedCamera
from rl_training.envs.conf import DonkeyConf
from rl_training.envs.frame import Frame, Progress
from rl_training.envs.lidar import lidar_of, scan_points
from rl_training.envs.spec import CameraSpec, ObservationSpec, camera_from_conf, spec_from_conf
from rl_training.envs.stage import Stage
from rl_training.simulator import state as s
from rl_training.simulator.randomize import DomainRandomization, faithful
from rl_training.simulator.state import METRE
from rl_training.simulator.track import LINE_INDEX, Track
from rl_training.simulator.world import World

CAMERA_B = CameraSpec(offset=(0.452, 1.12, 0.5528))


class EmbeddedSimulator:
    """One car on one track."""

    def __init__(self, track: str, conf: DonkeyConf, randomization: DomainRandomization) -> None:
        self._stage = Stage(spec_from_conf((track,), conf, randomization), 1)
        self.world = self._stage.world
        self._camera_b = _second_camera(self.world, conf)
        self._lidar = lidar_of(conf.lidar_config) if conf.lidar_config else None
        self.track: Track | None = None  # of the present episode

    def reset(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Frame:
        """Begin an episode."""
        self.track = self._stage.begin(0, rng, bool(options.get("reseeded", False)))
        if self._camera_b is not None:
            self._camera_b.dress(0, faithful(self.track))
        return self._frame()

    def step(self, steering: float, throttle: float, brake: float) -> Frame:
        """One control step of 0.05 s."""
        self.world.step(np.array([[steering, throttle, brake]]))
        return self._frame()

    def _frame(self) -> Frame:
        assert self.track is not None, "reset before the first frame"
        frame = frame_of(self.world, 0, self._stage.camera.observe()[0])
        if self._camera_b is not None:
            frame.image_b = self._camera_b.observe()[0]
        if self._lidar is not None:
            frame.lidar = scan_points(self.world, 0, self._lidar)
        return frame

    def close(self) -> None:
        """Release the world."""
        self.world.close()


def _second_camera(world: World, conf: DonkeyConf) -> StackedCamera | None:
    if not conf.cam_config_b:
        return None
    config = conf.cam_config_b
    width, height = int(config.get("img_w", 0) or 160), int(config.get("img_h", 0) or 120)
    observation = ObservationSpec(
        width, height, grey=int(config.get("img_d", 0) or 3) == 1, camera_width=width, camera_height=height
    )
    return StackedCamera(world, observation, camera_from_conf(config, CAMERA_B))


def _degrees(angle: float) -> float:
    return math.degrees(angle) % 360.0


def turned(right: Any, ahead: Any, yaw: Any) -> tuple[Any, Any]:
    """Vectors of cars' axes (right, ahead) in the world's (x, z); with -yaw the other way round."""
    sine, cosine = np.sin(yaw), np.cos(yaw)
    return right * cosine + ahead * sine, ahead * cosine - right * sine


def frame_of(world: World, car: int, image: Any) -> Frame:
    """What a car of the world would send. Its wheels never leave the ground: along its own up axis it does not move."""
    row = world.state[car].tolist()
    gyro_x, gyro_z = turned(row[s.PITCH_RATE], row[s.ROLL_RATE], row[s.YAW])
    track = world.track(car // world.cars)
    line = int(row[s.LINE_EVENT])
    return Frame(
        image=image,
        position=(row[s.X] / METRE, row[s.Y] / METRE, row[s.Z] / METRE),
        velocity=(row[s.LATERAL] / METRE, 0.0, row[s.FORWARD] / METRE),
        accel=(row[s.ACCEL_LATERAL] / METRE, 0.0, row[s.ACCEL_FORWARD] / METRE),
        gyro=(float(gyro_x), row[s.YAW_RATE], float(gyro_z)),
        orientation=(_degrees(row[s.PITCH]), _degrees(row[s.YAW]), _degrees(row[s.ROLL])),
        odometry=(row[s.ODOM_FL], row[s.ODOM_FR], row[s.ODOM_RL], row[s.ODOM_RR]),
        speed=math.hypot(row[s.FORWARD], row[s.LATERAL]) / METRE,
        cte=float(row[s.CTE]),
        active_node=int(row[s.NODE]),
        total_nodes=len(track.nodes),
        hit=world.hit_name(car),
        time=float(row[s.TIME]),
        steering_angle=float(row[s.STEER]),
        throttle=float(row[s.THROTTLE]),
        start_line=None if line < 0 else (int(track.start_lines[line, LINE_INDEX]), float(row[s.LINE_TIME])),
        progress=Progress(
            distance=row[s.PROGRESS] / METRE,
            furthest=row[s.FURTHEST] / METRE,
            length=track.length / METRE,
            closed=track.closed,
            laps=int(row[s.LAPS]),
            last_lap_time=float(row[s.LAST_LAP]),
            offset=float(row[s.OFFSET]),
        ),
    )
