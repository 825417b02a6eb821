"""What a server needs from a simulator. The protocol room knows worlds only through this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rl_training.protocol.camera import CameraSettings
from rl_training.protocol.messages import CarConfig, LidarConfig, NodePosition, RegenRoad, SetPosition
from rl_training.protocol.telemetry import Telemetry

PERIOD = 0.05  # simulated seconds between two telemetry packets of a car


@dataclass(frozen=True)
class Crossing:
    """A car's nose entered a start line's box."""

    car: int
    line: int
    time: float  # simulated seconds


class SceneHost(Protocol):
    """One scene with cars in it. All calls come from one thread. Units of messages: see `messages`."""

    @property
    def scene_names(self) -> Sequence[str]:
        """Scenes that can be loaded, in the order clients may index them."""

    def load(self, scene: str, seed: int | None) -> None:
        """Load a scene of the list; cars of the scene before are gone. `seed` None: as random as the scene is."""

    def exit(self) -> None:
        """Leave the scene; its cars are gone."""

    def add_car(self) -> int:
        """Put a car on the next free place of the grid and return its id."""

    def remove_car(self, car: int) -> None: ...

    def set_body(self, car: int, config: CarConfig) -> None: ...

    def set_camera(self, car: int, settings: CameraSettings) -> None: ...

    def set_second_camera(self, car: int, settings: CameraSettings) -> None:
        """Telemetry of this car carries `image_b` from now on."""

    def set_lidar(self, car: int, config: LidarConfig) -> None:
        """Telemetry of this car carries `lidar` from now on."""

    def control(self, car: int, steering: float, throttle: float, brake: float) -> None:
        """Values are inside their ranges and hold until the next call."""

    def reset_car(self, car: int) -> None:
        """Back to where it was put, at rest, steering and throttle 0, brake 10 until the next control, node 0."""

    def set_position(self, car: int, position: SetPosition) -> None:
        """Moves a car [u]; its velocity stays."""

    def node_position(self, index: int) -> NodePosition | None:
        """Where a path node stands; None when there is no such node."""

    def regen_road(self, config: RegenRoad) -> bool:
        """A new random road; False where the scene has a road that does not change."""

    def advance(self, cars: Sequence[int]) -> list[Crossing]:
        """Move these cars one PERIOD on, and say which start lines they entered."""

    def telemetry(self, car: int) -> Telemetry:
        """The packet of a car, images drawn; what it `hit` since the packet before is reported once."""
