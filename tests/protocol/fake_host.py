"""A simulator for tests: cars roll along z as told, frames are of one colour, and calls are written down."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rl_training.protocol import messages as m
from rl_training.protocol.camera import CameraSettings
from rl_training.protocol.scene_host import PERIOD, Crossing
from rl_training.protocol.server import SimServer
from rl_training.protocol.sessions import ServerOptions
from rl_training.protocol.telemetry import LidarPoint, Telemetry

SCENES = (
    *("generated_road", "warehouse", "sparkfun_avc", "generated_track", "roboracingleague_1", "waveshare"),
    *("mini_monaco", "warren", "circuit_launch", "mountain_track", "thunderhill"),
)
LINE_AT = 4.0  # [u] along z; a car that passes it crosses start line 7
FULL_SPEED = 16.0  # [u/s] at throttle 1


@dataclass
class FakeCar:
    z: float = 0.0
    x: float = 0.0
    time: float = 0.0
    steering: float = 0.0
    throttle: float = 0.0
    brake: float = 0.0
    hit: str = "none"
    name: str = ""
    camera: CameraSettings = field(default_factory=CameraSettings)
    second: CameraSettings | None = None
    lidar: m.LidarConfig | None = None

    @property
    def speed(self) -> float:
        return 0.0 if self.brake >= 1.0 else FULL_SPEED * self.throttle


class FakeHost:
    """Implements `SceneHost`."""

    scene_names: Sequence[str] = SCENES

    def __init__(self, nodes: int = 108) -> None:
        self.cars: dict[int, FakeCar] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.scene = ""
        self.nodes = nodes
        self._next = 0

    def load(self, scene: str, seed: int | None) -> None:
        self.calls.append(("load", scene, seed))
        self.scene, self.cars = scene, {}

    def exit(self) -> None:
        self.calls.append(("exit",))
        self.scene, self.cars = "", {}

    def add_car(self) -> int:
        self._next += 1
        self.cars[self._next] = FakeCar(x=5.0 * len(self.cars))
        return self._next

    def remove_car(self, car: int) -> None:
        self.calls.append(("remove", car))
        del self.cars[car]

    def set_body(self, car: int, config: m.CarConfig) -> None:
        self.calls.append(("body", config))
        self.cars[car].name = config.car_name

    def set_camera(self, car: int, settings: CameraSettings) -> None:
        self.cars[car].camera = settings

    def set_second_camera(self, car: int, settings: CameraSettings) -> None:
        self.cars[car].second = settings

    def set_lidar(self, car: int, config: m.LidarConfig) -> None:
        self.cars[car].lidar = config

    def control(self, car: int, steering: float, throttle: float, brake: float) -> None:
        row = self.cars[car]
        row.steering, row.throttle, row.brake = steering, throttle, brake

    def reset_car(self, car: int) -> None:
        row = self.cars[car]
        row.z, row.steering, row.throttle, row.brake = 0.0, 0.0, 0.0, 10.0

    def set_position(self, car: int, position: m.SetPosition) -> None:
        self.calls.append(("position", position))
        self.cars[car].x, self.cars[car].z = position.pos_x, position.pos_z

    def node_position(self, index: int) -> m.NodePosition | None:
        return m.NodePosition(index, 1.5, 0.5, 2.0 * index) if 0 <= index < self.nodes else None

    def regen_road(self, config: m.RegenRoad) -> bool:
        self.calls.append(("regen", config))
        return self.scene == "generated_road"

    def advance(self, cars: Sequence[int]) -> list[Crossing]:
        crossings = []
        for car in cars:
            row = self.cars[car]
            before = row.z
            row.z += row.speed * PERIOD
            row.time += PERIOD
            if before < LINE_AT <= row.z:
                crossings.append(Crossing(car, 7, row.time))
        return crossings

    def telemetry(self, car: int) -> Telemetry:
        row = self.cars[car]
        hit, row.hit = row.hit, "none"
        second = row.second
        return Telemetry(
            image=flat_image(row.camera, round(row.time / PERIOD) % 250),
            image_b=flat_image(second, 77) if second else None,
            lidar=None if row.lidar is None else (LidarPoint(3.25, 0.0, -1.0), LidarPoint(4.5, 2.0, -1.0)),
            steering_angle=row.steering,
            throttle=row.throttle,
            hit=hit,
            time=row.time,
            speed=abs(row.speed) / 8.0,
            cte=row.x,
            active_node=int(row.z),
            total_nodes=self.nodes,
            pos_x=row.x / 8.0,
            pos_y=0.0,
            pos_z=row.z / 8.0,
            vel_x=0.0,
            vel_y=0.0,
            vel_z=row.speed / 8.0,
            progress=row.z / 8.0,
        )


def flat_image(camera: CameraSettings, level: int) -> np.ndarray:
    return np.full((camera.height, camera.width, 3), level, np.uint8)


@contextlib.contextmanager
def running(host: FakeHost | None = None, **options: Any) -> Iterator[SimServer]:
    """A server on a free port in a thread of its own; a fault in the thread fails the test."""
    server = SimServer(host or FakeHost(), port=0, options=ServerOptions(**options))
    faults: list[BaseException] = []

    def serve() -> None:
        try:
            server.serve_forever()
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5.0)
        assert not thread.is_alive(), "the server did not stop"
        assert not faults, f"the server broke: {faults}"


class Wire:
    """A bare client: sends what it is told, byte for byte, and reads lines."""

    def __init__(self, address: tuple[str, int], timeout: float = 5.0) -> None:
        self.socket = socket.create_connection(address, timeout=timeout)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        """Objects one after another with nothing between, as the classic client sends them."""
        parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in messages]
        self.socket.sendall(b"".join(parts))

    def line(self) -> str:
        line = self._file.readline()
        if not line:
            raise EOFError("the server closed the connection")
        assert line.endswith(b"\n")
        return line.decode()

    def message(self) -> dict[str, Any]:
        """The next message that is not a keep-alive; TimeoutError when only those come."""
        end = time.monotonic() + 5.0
        while time.monotonic() < end:
            message: dict[str, Any] = json.loads(self.line())
            if message:
                return message
        raise TimeoutError

    def until(self, kind: str) -> dict[str, Any]:
        """The next message of a type; those before it are passed over."""
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            message = self.message()
            if message["msg_type"] == kind:
                return message
        raise TimeoutError(f"no {kind}")

    def until_closed(self) -> None:
        """Read until the server hangs up, perhaps in the middle of a line; TimeoutError when it does not."""
        end = time.monotonic() + 10.0
        with contextlib.suppress(ConnectionResetError):
            while self._file.readline():
                if time.monotonic() > end:
                    raise TimeoutError

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing arrives for a while. Only while no line is half read."""
        self.socket.settimeout(seconds)
        try:
            return not self._file.peek(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(5.0)
            self._file = self.socket.makefile("rb")

    def load(self, scene: str = "generated_track") -> None:
        self.until("scene_selection_ready")
        self.send({"msg_type": "load_scene", "scene_name": scene})
        self.until("car_loaded")


def control(steering: object = "0", throttle: object = "0", brake: object = "0", **more: object) -> dict[str, Any]:
    return {"msg_type": "control", "steering": steering, "throttle": throttle, "brake": brake, **more}


def eventually(condition: Any, seconds: float = 5.0) -> bool:
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return bool(condition())
