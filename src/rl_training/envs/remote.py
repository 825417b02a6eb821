"""`RemoteSimulator`: a car in a simulator at the end of a socket, ours or the Unity one, behind the `Simulator` seam.

A connection that breaks is an error of the step in which it breaks; the next reset connects anew, and brings scene and
configuration back. In real time the car is braked when the learner stays away, for instance while it updates.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rl_training.envs.cameras import cut_from_frame
from rl_training.envs.conf import DonkeyConf
from rl_training.envs.frame import Frame
from rl_training.envs.process import SimulatorProcess
from rl_training.envs.spec import ObservationSpec
from rl_training.envs.wire import LapCounter, frame_of_telemetry
from rl_training.errors import ConfigError, SimulatorError, SimulatorLost
from rl_training.protocol import messages as m
from rl_training.protocol.client import Dial, SimClient
from rl_training.protocol.deadlines import Deadlines
from rl_training.protocol.telemetry import Telemetry
from rl_training.protocol.transport import DEFAULT_PORT

logger = logging.getLogger(__name__)

_RESET_ATTEMPTS = 3
_AWAY = 0.25  # [s] without a step after which the car is braked, five frames


class RemoteSimulator:
    """One client with one car. `dial` replaces TCP to the host and port of `conf`."""

    def __init__(
        self, track: str, conf: DonkeyConf, dial: Dial | None = None, deadlines: Deadlines | None = None
    ) -> None:
        if track.startswith("random") or track.endswith((".yaml", ".yml")):
            raise ConfigError(
                f"Track '{track}' exists in the embedded world only; choose one of the simulator's scenes, "
                "or leave host and port out of conf."
            )
        port = conf.port or DEFAULT_PORT
        self.track = track
        self.client = SimClient(conf.host or "127.0.0.1", port, deadlines, dial)
        height, width, depth = conf.cam_resolution
        self._observation = ObservationSpec(width, height, grey=depth == 1, camera_width=width, camera_height=height)
        self._configs = configs_of(conf)
        self._laps = LapCounter()
        self._process = SimulatorProcess(conf.exe_path, port, conf.headless) if conf.exe_path else None
        self._warned = False
        self._lock = threading.Lock()
        self._brake = _BrakeWhileAway(self)

    def reset(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Frame:
        """Begin an episode, on a new connection if the old one is gone; SimulatorLost when that does not help."""
        with self._lock:
            telemetry = self._begin_at_last(rng, bool(options.get("reseeded", False)))
            self._warn_of_what_is_missing(telemetry)
            self._laps = LapCounter()
            self._brake.start_watching()
            return self._frame(telemetry)

    def _warn_of_what_is_missing(self, telemetry: Telemetry) -> None:
        """Once: without cte a car far from the road is rewarded as if it were in its middle, and drives on for ever."""
        if telemetry.cte is None and not self._warned:
            self._warned = True
            logger.warning(
                "The simulator at %s sends no cte: rewards and ends of episodes cannot see the road. "
                "Turn its extended telemetry on.",
                self.client.name,
            )

    def _begin_at_last(self, rng: np.random.Generator, reseeded: bool) -> Telemetry:
        """Try again while there is time: a simulator that is being restarted refuses, accepts and hangs up at will."""
        start = time.monotonic()
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._begin(rng, reseeded)
            except SimulatorError as error:
                self.client.close()
                if self._process is not None:
                    self._process.check()
                waited = time.monotonic() - start
                if attempts == _RESET_ATTEMPTS or waited > 0.8 * self.client.deadlines.connect:
                    tried = f" Tried {attempts} times in {waited:.0f} s to begin an episode." if attempts > 1 else ""
                    raise SimulatorLost(f"{error}{tried}") from error

    def _begin(self, rng: np.random.Generator, reseeded: bool) -> Telemetry:
        if not self.client.is_connected:
            self.client.connect()
            self.client.load_scene(self.track)
            self.client.configure(*self._configs)
        if self.track == "generated_road" and reseeded:
            self.client.regen_road(m.RegenRoad(rand_seed=int(rng.integers(2**31))))
        return self.client.reset()

    def step(self, steering: float, throttle: float, brake: float) -> Frame:
        """One control, and the first frame that is newer than it."""
        self.send(steering, throttle, brake)
        return self.wait()

    def send(self, steering: float, throttle: float, brake: float) -> None:
        """The first half of a step: with several simulators, send to all before waiting for any."""
        with self._lock, self._hanging_up_on_faults():
            self.client.send_control(steering, throttle, brake)
            self._brake.driven()

    def wait(self) -> Frame:
        """The second half of a step."""
        with self._lock, self._hanging_up_on_faults():
            telemetry = self.client.wait_frame()
            self._brake.driven()
            return self._frame(telemetry)

    @contextlib.contextmanager
    def _hanging_up_on_faults(self) -> Iterator[None]:
        """In whatever state a connection is after a fault, the next reset begins on a new one."""
        try:
            yield
        except SimulatorError:
            self.client.close()
            raise

    def brake(self) -> None:
        """Stop the car until the next step."""
        with self._lock:
            if self.client.is_connected:
                self.client.brake()

    def close(self) -> None:
        """Hang up, and end the program if it was started here."""
        self._brake.stop()
        with self._lock:
            self.client.close()
        if self._process is not None:
            self._process.stop()

    def _frame(self, telemetry: Telemetry) -> Frame:
        crossings = list(self.client.crossings)
        self.client.crossings.clear()
        frame = frame_of_telemetry(telemetry, crossings, self._laps.progress(telemetry, crossings))
        frame.image = cut_from_frame(telemetry.image, self._observation)
        return frame


class _BrakeWhileAway:
    """Brakes a real-time car when no step came for a while: the road does not wait for a learner's update."""

    def __init__(self, simulator: RemoteSimulator) -> None:
        self._simulator = simulator
        self._last_step = 0.0  # 0: nothing to do until the next step
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start_watching(self) -> None:
        """From the first episode on; a simulator in lockstep waits by itself."""
        if self._thread is None and not self._simulator.client.lockstep:
            self._thread = threading.Thread(target=self._watch, name="brake-while-away", daemon=True)
            self._thread.start()

    def driven(self) -> None:
        self._last_step = time.monotonic()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_AWAY / 4.0):
            if self._last_step and time.monotonic() - self._last_step > _AWAY:
                self._last_step = 0.0
                with contextlib.suppress(SimulatorError):  # the next step will meet the same fault, and say so
                    self._simulator.brake()


def configs_of(conf: DonkeyConf) -> list[m.Message]:
    """The messages that set up car, cameras and lidar as `conf` asks; none for what it does not mention."""
    configs: list[m.Message] = []
    height, width, depth = conf.cam_resolution
    if conf.body_style is not None or conf.car_name is not None:
        red, green, blue = conf.body_rgb or (255, 255, 255)
        name = conf.car_name or "car"
        configs.append(m.CarConfig(conf.body_style or "donkey", red, green, blue, name, conf.font_size))
    camera = {"img_w": width, "img_h": height, "img_d": depth, **conf.cam_config}
    if conf.cam_config or conf.cam_resolution != (120, 160, 3):
        configs.append(m.read_fields(camera, m.CamConfig))
    if conf.cam_config_b:
        configs.append(m.read_fields(conf.cam_config_b, m.CamConfigB))
    if conf.lidar_config:
        configs.append(m.read_fields(conf.lidar_config, m.LidarConfig))
    if conf.racer_name is not None:
        texts = (conf.racer_name, conf.car_name, conf.bio, conf.country, conf.guid)
        configs.append(m.RacerInfo(*(text or "" for text in texts)))
    return configs
