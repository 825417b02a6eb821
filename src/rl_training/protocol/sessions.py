"""What the simulator does with each message, for any number of clients, with no socket in it.

A `Session` is one client: what it sent and not yet was answered, what waits to be sent to it, and its car. `SimEngine`
owns the sessions and the scene. Whoever carries the bytes calls

    open → receive(bytes)… → work() while it says there is more → outbox.next_chunk() … → close

and `tick()` once per period of real time. Two ways for time to pass: cars in real time move together at each tick;
a car in lockstep moves one period at each of its controls, which is answered by exactly one telemetry packet.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rl_training.errors import DonkeyRLError, ProtocolError
from rl_training.protocol import messages as m
from rl_training.protocol.camera import SECOND_CAMERA, CameraSettings
from rl_training.protocol.framing import SERVER_LIMIT, FrameDecoder, RawMessage, encode_line
from rl_training.protocol.scene_host import Crossing, SceneHost
from rl_training.protocol.telemetry import UNITS_PER_METRE, Telemetry, write_telemetry

logger = logging.getLogger(__name__)

SERVER_NAME = "donkey-rl"
KEEP_ALIVE = b"{}\n"
OUTBOX_LIMIT = 1 << 20  # bytes waiting for a client above which nothing more is read from it
TELEMETRY_WAITING = 2  # packets kept for a slow reader in real time; the oldest are dropped
MOST_LIDAR_RAYS = 20_000
WORLD_EDGE = 10_000.0  # [u]
_IDLE_DISTANCE = 1.0  # [u]
_DEFAULT_CAR_NAME = "Racer Name"  # clients send this while the user has not chosen a name


@dataclass(frozen=True)
class ServerOptions:
    """How the simulator runs. Times in seconds; `idle_limit` is simulated time, `probe_after` wall time."""

    speed: float = 1.0
    lockstep: bool = False
    seed: int | None = None
    idle_limit: float = 300.0
    probe_after: float = 3.0
    allow_quit: bool = False  # also for clients of other machines


class Outbox:
    """Bytes on their way to one client; remembers which of them may be dropped."""

    def __init__(self) -> None:
        self.dropped = 0
        self._chunks: deque[tuple[bytes, bool]] = deque()
        self._current = memoryview(b"")
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._size

    def put(self, data: bytes, keep_newest: int | None = None) -> None:
        """Queue data. With `keep_newest`, no more than so many droppable chunks wait: the oldest give way."""
        if keep_newest is not None:
            droppable = [chunk for chunk in self._chunks if chunk[1]]
            for chunk in droppable[: max(0, len(droppable) + 1 - keep_newest)]:
                self._chunks.remove(chunk)
                self._size -= len(chunk[0])
                self.dropped += 1
        self._chunks.append((data, keep_newest is not None))
        self._size += len(data)

    def next_chunk(self) -> memoryview:
        """What to send next; empty when nothing waits."""
        if not self._current and self._chunks:
            self._current = memoryview(self._chunks.popleft()[0])
        return self._current

    def sent(self, count: int) -> None:
        """So many bytes of the chunk are gone."""
        self._current = self._current[count:]
        self._size -= count


class Session:
    """One client."""

    def __init__(self, name: str, is_local: bool, lockstep: bool) -> None:
        self.name = name
        self.is_local = is_local
        self.lockstep = lockstep
        self.extras = False  # whether it asked for the fields of telemetry that are ours
        self.is_open = True
        self.refused = 0  # messages that could not be understood
        self.outbox = Outbox()
        self.car: int | None = None
        self.camera = CameraSettings()
        self.second_camera: CameraSettings | None = None
        self.stood_at: tuple[float, float, float] | None = None  # x, z [u] and since when, for the idle limit
        self._decoder = FrameDecoder(SERVER_LIMIT)
        self._pending: deque[RawMessage] = deque()

    @property
    def wants_input(self) -> bool:
        """False while the client has to take its answers, or wait for them, before more is read from it."""
        return self.outbox.size < OUTBOX_LIMIT and len(self._pending) < 64

    @property
    def has_work(self) -> bool:
        return bool(self._pending) and self.outbox.size < OUTBOX_LIMIT

    @property
    def errors(self) -> int:
        """Messages and runs of bytes that were skipped."""
        return self.refused + self._decoder.errors

    def receive(self, data: bytes) -> None:
        self._pending.extend(self._decoder.feed(data))

    def next_message(self) -> RawMessage:
        return self._pending.popleft()

    def send(self, event: m.Message) -> None:
        self.outbox.put(encode_line(m.write_event(event)))


class SimEngine:
    """The simulator as its clients see it: a menu or one loaded scene, and a car for each client."""

    def __init__(self, host: SceneHost, options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        self.scene: str | None = None  # None: the menu
        self.quit_requested = False
        self._host = host
        self._sessions: list[Session] = []
        self._anywhere: dict[type[m.Message], Callable[[Session, Any], None]] = {
            m.GetProtocolVersion: self._protocol_version,
            m.QuitApp: self._quit,
            m.StepMode: self._step_mode,
        }
        self._in_menu = self._anywhere | {
            m.GetSceneNames: self._scene_names,
            m.LoadScene: self._load_scene,
        }
        self._on_track = self._anywhere | {
            m.Control: self._control,
            m.ResetCar: self._reset_car,
            m.ExitScene: self._exit_scene,
            m.CarConfig: self._car_config,
            m.CamConfig: self._cam_config,
            m.CamConfigB: self._cam_config,
            m.LidarConfig: self._lidar_config,
            m.SetPosition: self._set_position,
            m.GetNodePosition: self._node_position,
            m.RegenRoad: self._regen_road,
        }

    # --- Sessions -----------------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> Iterable[Session]:
        return tuple(self._sessions)

    @property
    def runs_by_clock(self) -> bool:
        """True while a car moves in real time, so that `tick` is due every period."""
        return any(session.car is not None and not session.lockstep for session in self._sessions)

    def open(self, name: str, is_local: bool = True) -> Session:
        """A client connected: in the menu it may choose a scene, on a track it gets a car."""
        session = Session(name, is_local, self.options.lockstep)
        self._sessions.append(session)
        if self.scene is None:
            session.send(m.SceneSelectionReady())
        else:
            self._add_car(session)
        return session

    def close(self, session: Session) -> None:
        """A client is gone, and its car with it; the scene stays loaded."""
        if session in self._sessions:
            self._sessions.remove(session)
            if session.car is not None:
                self._host.remove_car(session.car)
                session.car = None
            if session.errors or session.outbox.dropped:
                details = f"{session.errors} messages not understood, {session.outbox.dropped} packets dropped"
                logger.warning("Client %s: %s.", session.name, details)
        session.is_open = False

    def work(self, session: Session) -> bool:
        """Handle what a client sent, up to a control that moves the world; True when there is more to do."""
        while session.is_open and session.has_work:
            if self._handle(session, session.next_message()):
                break
        return session.is_open and session.has_work

    def _handle(self, session: Session, raw: RawMessage) -> bool:
        """One message; True when it made time pass."""
        try:
            message = m.read_message(raw, m.COMMANDS)
            handlers = self._in_menu if self.scene is None else self._on_track
            handler = handlers.get(type(message))
            if handler is not None:
                handler(session, message)
            elif isinstance(message, m.Unknown):
                raise ProtocolError(f"Message type '{message.name}' is not known.")
        except ProtocolError as error:
            session.refused += 1
            logger.debug("Client %s: %s Ignored.", session.name, error)
            return False
        except Exception:  # one client's message must not take the simulator from the others
            session.refused += 1
            logger.exception("Client %s: a message could not be handled. Ignored.", session.name)
            return False
        return handler is not None and session.lockstep and isinstance(message, m.Control)

    # --- Time ---------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """One period of simulated time for all cars that run by the clock."""
        self._advance([session for session in self._sessions if session.car is not None and not session.lockstep])

    def probe(self, session: Session) -> None:
        """Keep-alive for a client that has been silent; pointless while it has not read what came before."""
        if session.outbox.size == 0:
            session.outbox.put(KEEP_ALIVE)

    def _advance(self, moving: list[Session]) -> None:
        cars = [session.car for session in moving if session.car is not None]
        crossings = self._host.advance(cars)
        for session in moving:
            self._report(session, [crossing for crossing in crossings if crossing.car == session.car])

    def _report(self, session: Session, crossings: Iterable[Crossing] = ()) -> None:
        assert session.car is not None, "only a client with a car gets telemetry"
        for crossing in crossings:
            session.send(m.StartLineCrossed(crossing.line, crossing.time))
        telemetry = self._host.telemetry(session.car)
        second = session.second_camera or SECOND_CAMERA
        line = encode_line(write_telemetry(telemetry, session.camera.encoding, second.encoding, session.extras))
        # A hit is told once: a slow reader that loses other packets gets this one, unless it reads nothing at all.
        must_arrive = session.lockstep or (telemetry.hit != "none" and session.outbox.size < OUTBOX_LIMIT)
        session.outbox.put(line, keep_newest=None if must_arrive else TELEMETRY_WAITING)
        if self._stands_too_long(session, telemetry):
            logger.warning("Client %s: its car has not moved for %g s.", session.name, self.options.idle_limit)
            self.close(session)

    def _stands_too_long(self, session: Session, telemetry: Telemetry) -> bool:
        if telemetry.pos_x is None or telemetry.pos_z is None:
            return False
        x, z = telemetry.pos_x * UNITS_PER_METRE, telemetry.pos_z * UNITS_PER_METRE
        if session.stood_at is None or math.dist((x, z), session.stood_at[:2]) >= _IDLE_DISTANCE:
            session.stood_at = (x, z, telemetry.time)
        return telemetry.time - session.stood_at[2] >= self.options.idle_limit

    def _add_car(self, session: Session) -> None:
        try:
            session.car = self._host.add_car()
        except DonkeyRLError as error:  # no room: hanging up tells more than a silence would
            logger.warning("Client %s: %s", session.name, error)
            self.close(session)
            return
        session.camera, session.second_camera, session.stood_at = CameraSettings(), None, None
        session.send(m.CarLoaded(scene_name=self.scene or ""))

    # --- Messages -----------------------------------------------------------------------------------------------------

    def _protocol_version(self, session: Session, message: m.GetProtocolVersion) -> None:
        session.extras = session.extras or bool(message.extras)
        session.send(m.ProtocolVersion(server=SERVER_NAME, lockstep=int(session.lockstep)))

    def _quit(self, session: Session, message: m.QuitApp) -> None:
        if session.is_local or self.options.allow_quit:
            self.quit_requested = True
        else:
            raise ProtocolError("quit_app is taken from this machine only, unless the server allows it.")

    def _step_mode(self, session: Session, message: m.StepMode) -> None:
        session.lockstep = message.step_mode.lower() == "synchronous"

    def _scene_names(self, session: Session, message: m.GetSceneNames) -> None:
        session.send(m.SceneNames(tuple(self._host.scene_names)))

    def _load_scene(self, session: Session, message: m.LoadScene) -> None:
        if message.scene_name in self._host.scene_names:
            self.load(message.scene_name)
        else:
            raise ProtocolError(f"Scene '{message.scene_name}' does not exist.")

    def load(self, scene: str) -> None:
        """Load a scene for everybody; each client gets a car."""
        try:
            self._host.load(scene, self.options.seed)
        except DonkeyRLError as error:
            raise ProtocolError(f"Scene '{scene}' could not be loaded: {error}") from error
        self.scene = scene
        for session in self.sessions:  # a copy: who finds no room is closed
            self._add_car(session)

    def _exit_scene(self, session: Session, message: m.ExitScene) -> None:
        """Back to the menu for everybody. As in the original, nobody is told."""
        self.scene = None
        for other in self._sessions:
            other.car = None
        self._host.exit()

    def _control(self, session: Session, message: m.Control) -> None:
        car = _car_of(session)
        steering, throttle = _clamp(message.steering, -1.0, 1.0), _clamp(message.throttle, -1.0, 1.0)
        self._host.control(car, steering, throttle, _clamp(message.brake, 0.0, 1.0))
        if session.lockstep and message.hold:
            self._report(session)
        elif session.lockstep:
            self._advance([session])

    def _reset_car(self, session: Session, message: m.ResetCar) -> None:
        session.stood_at = None
        self._host.reset_car(_car_of(session))

    def _car_config(self, session: Session, message: m.CarConfig) -> None:
        if message.car_name != _DEFAULT_CAR_NAME:
            self._host.set_body(_car_of(session), message)

    def _cam_config(self, session: Session, message: m.CamConfig) -> None:
        if isinstance(message, m.CamConfigB):
            session.second_camera = (session.second_camera or SECOND_CAMERA).merged(message)
            self._host.set_second_camera(_car_of(session), session.second_camera)
        else:
            session.camera = session.camera.merged(message)
            self._host.set_camera(_car_of(session), session.camera)

    def _lidar_config(self, session: Session, message: m.LidarConfig) -> None:
        rays = message.levels * 360.0 / message.deg_per_sweep if message.deg_per_sweep > 0.0 else 0.0
        if not 1.0 <= rays <= MOST_LIDAR_RAYS or message.max_range <= 0.0:
            raise ProtocolError(f"A lidar has 1 to {MOST_LIDAR_RAYS} rays and a range above 0.")
        self._host.set_lidar(_car_of(session), message)

    def _set_position(self, session: Session, message: m.SetPosition) -> None:
        if max(abs(message.pos_x), abs(message.pos_y), abs(message.pos_z)) > WORLD_EDGE:
            raise ProtocolError(f"A position lies within {WORLD_EDGE:g} u of the middle of the world.")
        if not 1e-6 < math.hypot(message.qx, message.qy, message.qz, message.qw) < 1e6:
            raise ProtocolError("A rotation is a quaternion of length 1, or not far from it.")
        self._host.set_position(_car_of(session), message)

    def _node_position(self, session: Session, message: m.GetNodePosition) -> None:
        node = self._host.node_position(message.index)
        if node is None:
            raise ProtocolError(f"There is no path node {message.index}.")
        session.send(node)

    def _regen_road(self, session: Session, message: m.RegenRoad) -> None:
        if not self._host.regen_road(message):
            raise ProtocolError(f"The road of scene '{self.scene}' cannot be made anew.")


def _car_of(session: Session) -> int:
    assert session.car is not None, "on a track every client has a car"
    return session.car


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
