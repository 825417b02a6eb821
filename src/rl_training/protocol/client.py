"""A learner's end: drives one simulator, ours or the Unity one, and never waits without a deadline.

A wait that reaches its deadline raises `SimulatorTimeout`, a closed connection `SimulatorLost`; both say what was
waited for and for how long. Nothing that arrives is overwritten: messages queue until somebody takes them, and only
telemetry that is older than a control is passed over. `send_control` and `wait_frame` are apart so that many simulators
can be stepped at once: send to all, then wait for each.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from rl_training.errors import ConfigError, ProtocolError, SimulatorLost, SimulatorTimeout, did_you_mean
from rl_training.protocol import messages as m
from rl_training.protocol.deadlines import Deadlines, Wait
from rl_training.protocol.framing import FrameDecoder, RawMessage, encode_bare
from rl_training.protocol.scenes import scene_of
from rl_training.protocol.telemetry import Telemetry, read_telemetry
from rl_training.protocol.transport import DEFAULT_PORT, TcpTransport, Transport

logger = logging.getLogger(__name__)

M = TypeVar("M")
Dial = Callable[[float], Transport]  # a deadline → a connected transport; OSError while nobody answers

_MENU, _UNTOLD = "", "?"
_ECHO_TOLERANCE = 0.01  # of a control that telemetry repeats
_ECHO_PATIENCE = 0.12  # [s], two frames at 20 Hz
_ECHOES_TRIED = 3  # controls without an echo after which none is expected any more
_STANDS_STILL = 0.5  # [m/s]
_MOST_READS = 100
_ASK_AGAIN_AFTER = 1.0
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.05, 2.0
_WORTH_A_WORD = 0.4  # a pause, after which the user is told what is waited for


class SimClient:
    """One connection, one car. `dial` replaces TCP to host:port, for instance by a transport in memory."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        deadlines: Deadlines | None = None,
        dial: Dial | None = None,
    ) -> None:
        if not 0 < port < 65536:
            raise ConfigError(f"Port {port} of the simulator does not exist; expected 1 to 65535, 9091 as a rule.")
        self.deadlines = deadlines or Deadlines()
        self.crossings: list[m.StartLineCrossed] = []  # since they were last cleared, by the caller or by reset
        self.lockstep = False  # each control is answered by exactly one frame
        self.version = ""  # of the protocol, as the other end tells it
        self.server = ""  # what the other end calls itself; empty for the Unity simulator
        self.skipped = 0  # messages that could not be understood
        self._not_understood = ""  # why not, if the last one could not
        self.name = f"{host}:{port}"
        self._dial: Dial = dial or (lambda deadline: TcpTransport.connect(host, port, deadline))
        self._transport: Transport | None = None
        self._decoder = FrameDecoder()
        self._inbox: deque[m.Message | Telemetry] = deque()
        self._scene: str | None = None  # _MENU, _UNTOLD or a name; None before the simulator has said anything
        self._configs: dict[type[m.Message], m.Message] = {}
        self._passed_hit = "none"  # told by a frame that was passed over
        self._owed = 0  # frames a lockstep server still has to send
        self._sent: tuple[float, float] | None = None  # steering and throttle that a frame should echo
        self._unechoed = 0  # controls in a row that no frame echoed

    # --- Connection ---------------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._transport is not None

    @property
    def scene(self) -> str | None:
        """The scene this client drives in, None in the menu."""
        return self._scene if self._scene not in (_MENU, _UNTOLD) else None

    def connect(self) -> None:
        """Connect, trying again with growing pauses until the deadline, and learn what kind of simulator it is."""
        self.close()
        self._transport = self._dial_until(time.monotonic() + self.deadlines.connect)
        self._decoder = FrameDecoder()
        self._inbox.clear()
        self._scene = None
        self._owed, self._sent, self._unechoed = 0, None, 0
        self._passed_hit, self._not_understood = "none", ""
        try:
            version = self._ask(m.GetProtocolVersion(extras=1), "its protocol version", m.ProtocolVersion)
        except SimulatorTimeout:
            if not self._inbox:
                self.close()
                raise
            version = m.ProtocolVersion(version="")  # it does speak, but is too old to be asked
        self.version, self.server, self.lockstep = version.version, version.server, bool(version.lockstep)

    def _dial_until(self, deadline: float) -> Transport:
        pause = _FIRST_BACKOFF
        while True:
            try:
                return self._dial(deadline)
            except OSError as error:
                if pause >= _WORTH_A_WORD > pause / 2.0:
                    limit = self.deadlines.connect
                    logger.warning("No simulator answers at %s yet; waiting for one, %g s at most.", self.name, limit)
                if time.monotonic() + pause >= deadline:
                    raise SimulatorLost(
                        f"No simulator answered at {self.name} within {self.deadlines.connect:g} s "
                        f"({error.strerror or error}). Start one there with 'donkey-rl sim', or correct host and port."
                    ) from error
            time.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_BACKOFF)

    def reconnect(self) -> None:
        """Connect anew and bring back the scene, the step mode and the configuration there were."""
        scene, lockstep = self.scene, self.lockstep
        self.connect()
        if lockstep and not self.lockstep:
            self.use_lockstep()
        if scene is not None:
            self.load_scene(scene)
            self._send(*self._configs.values())

    def close(self) -> None:
        """Hang up; harmless when not connected."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def ping(self) -> float:
        """Seconds for a question and its answer."""
        start = time.perf_counter()
        self._ask(m.GetProtocolVersion(), "an answer to a ping", m.ProtocolVersion)
        return time.perf_counter() - start

    def use_lockstep(self, on: bool = True) -> None:
        """Ask one of our simulators to wait for each control, or to stop doing so; the Unity one cannot."""
        if not self.server:
            raise ConfigError("The Unity simulator runs in real time only; for lockstep start 'donkey-rl sim'.")
        self._send(m.StepMode("synchronous" if on else "asynchronous"))
        self.lockstep = bool(self._ask(m.GetProtocolVersion(), "its step mode", m.ProtocolVersion).lockstep)
        self._drop_telemetry()

    # --- Scene and car ------------------------------------------------------------------------------------------------

    def load_scene(self, name: str) -> None:
        """Have the scene loaded and a car in it; another scene that is loaded is left first, for all its clients."""
        wait = Wait(f"scene '{name}' and a car in it", self.deadlines.scene)
        self._scene = self._where(wait)
        if self._scene == name:
            return
        if self._scene != _MENU:
            self.exit_scene()
        offered = self._scene_names(wait)
        if name not in offered:
            raise ConfigError(f"The simulator at {self.name} has no scene '{name}'.{did_you_mean(name, offered)}")
        self._inbox.clear()
        self._send(m.LoadScene(name))
        self._wait(wait, m.CarLoaded)
        self._drop_telemetry()
        self._scene = name

    def exit_scene(self) -> None:
        """Back to the menu, for all clients of this simulator; it does not answer."""
        self._send(m.ExitScene())
        self._scene = _MENU

    def scene_names(self) -> tuple[str, ...]:
        """Scenes the simulator offers; it tells only while it is in its menu."""
        return self._scene_names(Wait("its scene names", self.deadlines.answer))

    def where(self) -> str:
        """The loaded scene, "" in the menu, "?" when a scene is loaded and cannot be told."""
        self._scene = self._where(Wait("its first message", self.deadlines.scene))
        return self._scene

    def _where(self, wait: Wait) -> str:
        if self._scene is not None:
            return self._scene
        first = self._wait(wait, m.SceneSelectionReady, m.CarLoaded, Telemetry)
        if isinstance(first, m.SceneSelectionReady):
            return _MENU
        if isinstance(first, m.CarLoaded):
            if first.scene_name or self.lockstep:
                return first.scene_name or _UNTOLD
            first = self._wait(wait, Telemetry)
        assert isinstance(first, Telemetry), "one of the three"
        return scene_of(first.total_nodes) or _UNTOLD

    def _scene_names(self, wait: Wait) -> tuple[str, ...]:
        """Asked again from time to time: the Unity simulator loses what arrives while it changes scenes."""
        while True:
            self._send(m.GetSceneNames())
            patience = min(wait.deadline, time.monotonic() + _ASK_AGAIN_AFTER)
            try:
                return self._wait(wait, m.SceneNames, deadline=patience).scene_names
            except SimulatorTimeout:
                # A wait that ended early will never be met: the twin in memory knows that nothing comes.
                if time.monotonic() < patience or patience == wait.deadline:
                    raise

    def configure(self, *configs: m.Message) -> None:
        """Send car, camera and lidar settings; the last of each kind is sent again after a reconnect."""
        self._configs.update({type(config): config for config in configs})
        self._send(*configs)

    def node_position(self, index: int) -> m.NodePosition:
        """Where a path node stands [u]; the simulator does not answer when there is none."""
        return self._ask(m.GetNodePosition(index), f"the position of node {index}", m.NodePosition)

    def set_position(self, position: m.SetPosition) -> None:
        """Move the car [u]; its velocity stays."""
        self._send(position)

    def regen_road(self, config: m.RegenRoad) -> None:
        """A new random road, in scene generated_road only. Reset the car afterwards: its node does not follow."""
        self._send(config)

    # --- Driving ------------------------------------------------------------------------------------------------------

    def reset(self) -> Telemetry:
        """Put the car back to its start, brake on, and return the first frame that shows it there."""
        self._send(m.ResetCar())
        if self.lockstep:
            self.send_control(0.0, 0.0, 1.0, hold=True)
            frame = self.wait_frame()
        else:
            self.send_control(0.0, 0.0, 1.0)
            wait = Wait("a frame of the car standing at its start", self.deadlines.reset)
            self._wait(wait, Telemetry)  # may have been drawn before the reset took effect; the next one was not
            frame = self._wait(wait, Telemetry)
            while frame.speed >= _STANDS_STILL:
                frame = self._next_frame(frame, wait)
        self._sent, self._passed_hit = None, "none"
        self.crossings.clear()
        return replace(frame, hit="none")  # what was touched before the reset is of the episode before

    def step(self, steering: float, throttle: float, brake: float = 0.0) -> Telemetry:
        """Send a control and return the first frame that is newer than it."""
        self.send_control(steering, throttle, brake)
        return self.wait_frame()

    def brake(self) -> None:
        """Stop the car while nobody looks, for instance while a learner updates. In lockstep time stands anyway."""
        if not self.lockstep:
            self.send_control(0.0, 0.0, 1.0)

    def send_control(self, steering: float, throttle: float, brake: float = 0.0, hold: bool = False) -> None:
        """Send a control; in real time, frames that are already here are older than it and are passed over."""
        if self.lockstep:
            self._owed += 1
        else:
            self._drain()
            self._drop_telemetry()
        steering, throttle = _clamp(steering), _clamp(throttle)
        self._send(m.Control(steering, throttle, float(brake), hold=int(hold)))
        self._sent = (steering, throttle)

    def wait_frame(self) -> Telemetry:
        """The first frame newer than the last control."""
        wait = Wait("a frame", self.deadlines.frame)
        frame = self._wait(wait, Telemetry)
        if self.lockstep:
            while self._owed > 0 or any(isinstance(message, Telemetry) for message in self._inbox):
                frame = self._next_frame(frame, wait)  # it answered a control whose frame nobody waited for
        elif not self._echoes(frame):
            # On its way when the control was sent. Not waited for long: some releases echo other values.
            patience = time.monotonic() + _ECHO_PATIENCE
            while not self._echoes(frame) and time.monotonic() < patience:
                frame = self._next_frame(frame, wait)
            self._unechoed = 0 if self._echoes(frame) else self._unechoed + 1
        self._sent = None
        passed_hit, self._passed_hit = self._passed_hit, "none"
        return replace(frame, hit=passed_hit) if frame.hit == "none" and passed_hit != "none" else frame

    def _next_frame(self, frame: Telemetry, wait: Wait) -> Telemetry:
        """Instead of this one. Frames may come faster than they are read: the deadline holds all the same."""
        self._pass_over(frame)
        if wait.is_over:
            raise self._in_vain(wait)
        return self._wait(wait, Telemetry)

    def _pass_over(self, frame: Telemetry) -> None:
        """A frame nobody will see; a hit is told only once, so the next frame tells it instead."""
        if frame.hit != "none":
            self._passed_hit = frame.hit

    def _echoes(self, frame: Telemetry) -> bool:
        if self._sent is None or self._unechoed >= _ECHOES_TRIED:
            return True
        steering, throttle = self._sent
        return max(abs(frame.steering_angle - steering), abs(frame.throttle - throttle)) <= _ECHO_TOLERANCE

    # --- Messages -----------------------------------------------------------------------------------------------------

    def _ask(self, question: m.Message, what: str, answer: type[M]) -> M:
        self._send(question)
        return self._wait(Wait(what, self.deadlines.answer), answer)

    def _send(self, *messages: m.Message) -> None:
        data = b"".join(encode_bare(m.write_command(message)) for message in messages)
        try:
            self._connected().send(data, time.monotonic() + self.deadlines.answer)
        except SimulatorLost:
            self.close()
            raise

    def _connected(self) -> Transport:
        if self._transport is None:
            raise SimulatorLost(f"There is no connection to the simulator at {self.name}: connect() first.")
        return self._transport

    def _wait(self, wait: Wait, *kinds: type[M], deadline: float | None = None) -> M:
        """Take the oldest message of these kinds; the others stay where they are."""
        limit = wait.deadline if deadline is None else deadline
        looked_at = 0
        late = False
        while True:
            for index in range(looked_at, len(self._inbox)):
                message = self._inbox[index]
                if isinstance(message, kinds):
                    del self._inbox[index]
                    return cast(M, message)
            if late:
                raise self._in_vain(wait)
            looked_at = len(self._inbox)
            late = time.monotonic() >= limit  # a flood of other messages does not put the deadline off
            late = not self._receive(limit, wait) or late

    def _in_vain(self, wait: Wait) -> SimulatorTimeout:
        unusable = f"What it sends cannot be used: {self._not_understood}"
        why = unusable if self._not_understood else "Is it busy, paused or in its menu?"
        return SimulatorTimeout(f"Waited {wait} from the simulator at {self.name}, in vain. {why}")

    def _receive(self, deadline: float, wait: Wait | None = None) -> bool:
        """Read what arrives by the deadline into the inbox; False when nothing did."""
        try:
            data = self._connected().receive(deadline)
        except SimulatorLost as error:
            self.close()
            waited = f" Waited {wait}." if wait else ""
            raise SimulatorLost(f"{error}{waited}") from error
        for raw in self._decoder.feed(data):
            self._sort(raw)
        return bool(data)

    def _sort(self, raw: RawMessage) -> None:
        is_telemetry = raw.get("msg_type") == Telemetry.msg_type
        if is_telemetry and self._owed > 0:
            self._owed -= 1
        try:
            message = read_telemetry(raw) if is_telemetry else m.read_message(raw, m.EVENTS)
        except ProtocolError as error:
            self.skipped += 1
            self._not_understood = str(error)
            return
        self._not_understood = ""
        if isinstance(message, m.StartLineCrossed):
            self.crossings.append(message)
        elif not isinstance(message, m.Unknown):
            self._inbox.append(message)

    def _drain(self) -> None:
        """Read what has arrived, waiting for nothing, and not for ever should it arrive faster than it is read."""
        for _ in range(_MOST_READS):
            if not self._receive(deadline=0.0):
                break

    def _drop_telemetry(self) -> None:
        for message in self._inbox:
            if isinstance(message, Telemetry):
                self._pass_over(message)
        self._inbox = deque(message for message in self._inbox if not isinstance(message, Telemetry))


def _clamp(value: float) -> float:
    return min(max(float(value), -1.0), 1.0)
