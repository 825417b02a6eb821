"""`Frame`: what a simulator tells after one control step, in the wire's own units, whichever simulator it was.

pos, vel, accel and speed are in metres of telemetry (world units / 8); cte, lidar and node positions in world units u.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Triple = tuple[float, float, float]


@dataclass
class Progress:
    """How far the car came, by following its projection on the track's line; nothing a car does out of line counts."""

    distance: float = 0.0  # signed, along the line since reset [m]
    furthest: float = 0.0  # greatest distance so far [m]
    length: float = 0.0  # of the line [m]; 0 where it is not known
    closed: bool = True  # False: an open road, which ends
    laps: int = 0
    last_lap_time: float = 0.0  # [s], 0 before the first full lap
    offset: float = 0.0  # from the line, + = right [u]


@dataclass
class Frame:
    """One telemetry packet and its image."""

    image: NDArray[np.uint8]
    position: Triple
    velocity: Triple  # car-local: right, up, forward
    accel: Triple  # car-local
    gyro: Triple  # world axes [rad/s]
    orientation: Triple  # pitch, yaw, roll [degrees, 0..360)
    odometry: tuple[float, float, float, float]
    speed: float
    cte: float
    active_node: int
    total_nodes: int
    hit: str
    time: float  # seconds since the scene was loaded
    steering_angle: float = 0.0
    throttle: float = 0.0
    image_b: NDArray[np.uint8] | None = None
    lidar: list[Mapping[str, float]] | None = None
    start_line: tuple[int, float] | None = None  # (index, time) of a crossing during this step
    progress: Progress = field(default_factory=Progress)

    @property
    def forward_velocity(self) -> float:
        """Speed along the nose, negative in reverse [m/s]."""
        return self.velocity[2]


class Simulator(Protocol):
    """The seam between the env and whatever moves the car: the embedded world or a program at the end of a socket."""

    def reset(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Frame: ...

    def step(self, steering: float, throttle: float, brake: float) -> Frame: ...

    def close(self) -> None: ...


def info_of(frame: Frame, lidar: NDArray[np.float64] | None = None) -> dict[str, Any]:
    """gym-donkeycar's `info` with all of its keys, and ours; `lidar`: the frame's scan, as distances."""
    pitch, yaw, roll = frame.orientation
    progress = frame.progress
    info: dict[str, Any] = {
        "pos": frame.position,
        "cte": frame.cte,
        "speed": frame.speed,
        "forward_vel": frame.forward_velocity,
        "hit": frame.hit,
        "gyro": frame.gyro,
        "accel": frame.accel,
        "vel": frame.velocity,
        "odom": frame.odometry,
        "lidar": [] if lidar is None else lidar,
        "orientation": (roll, pitch, yaw),
        "car": (roll, pitch, yaw),
        "last_lap_time": progress.last_lap_time,
        "lap_count": progress.laps,
        "active_node": frame.active_node,
        "total_nodes": frame.total_nodes,
        "time": frame.time,
        "progress": progress.distance,
        "furthest": progress.furthest,
        "laps": progress.furthest / progress.length if progress.length > 0.0 else 0.0,
        "offset": progress.offset,
        "start_line": frame.start_line,
    }
    if frame.image_b is not None:
        info["image_b"] = frame.image_b
    return info
