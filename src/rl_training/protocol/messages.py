"""Every message of the Unity simulator's protocol, typed, both ways.

A message is a flat JSON object whose `msg_type` names it. Commands go from a client to the simulator; the Unity one
reads only strings there, so numbers are written as strings. Events come back, numbers as numbers. Reading is lenient
both ways: numbers may be strings, with a decimal comma, optional fields may be missing, unknown fields are ignored.

Units and signs
    steering, throttle  -1..1, + = right, + = forward;   brake 0..1
    position of set_position, node_position and cte   [u];   8 u = 1 m
    pos, vel, speed, accel of telemetry   [m], [m/s], [m/s²]; vel and accel in car axes: x right, y up, z forward
    pitch, yaw, roll   degrees 0..360, yaw clockwise from +z;   gyro rad/s;   time s since the scene was loaded
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from rl_training.errors import ProtocolError
from rl_training.protocol.framing import RawMessage

PROTOCOL_VERSION = "2"


def wire(name: str, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field whose name on the wire is not a Python name."""
    return dataclasses.field(default=default, metadata={"wire": name})


def ours(default: Any) -> Any:
    """A field the Unity simulator does not have: sent only when it says something, ignored by who does not know it."""
    return dataclasses.field(default=default, metadata={"ours": True})


@dataclass(frozen=True)
class Message:
    """Base of all messages; a subclass is what its fields say."""

    msg_type: ClassVar[str]


# --- Commands: client to simulator ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GetProtocolVersion(Message):
    """`extras` is ours: telemetry then carries the fields the Unity simulator does not have."""

    msg_type = "get_protocol_version"
    extras: int = ours(0)


@dataclass(frozen=True)
class GetSceneNames(Message):
    msg_type = "get_scene_names"


@dataclass(frozen=True)
class LoadScene(Message):
    msg_type = "load_scene"
    scene_name: str


@dataclass(frozen=True)
class ExitScene(Message):
    msg_type = "exit_scene"


@dataclass(frozen=True)
class QuitApp(Message):
    msg_type = "quit_app"


@dataclass(frozen=True)
class Control(Message):
    """Held until the next one. `hold` is ours: in lockstep the answer shows the world as it stands, no time passes."""

    msg_type = "control"
    steering: float
    throttle: float
    brake: float
    hold: int = ours(0)


@dataclass(frozen=True)
class ResetCar(Message):
    msg_type = "reset_car"


@dataclass(frozen=True)
class CarConfig(Message):
    msg_type = "car_config"
    body_style: str = "donkey"
    body_r: int = 255
    body_g: int = 255
    body_b: int = 255
    car_name: str = ""
    font_size: int = 100


@dataclass(frozen=True)
class CamConfig(Message):
    """A zero keeps what was set before; see `CameraSettings.merged`."""

    msg_type = "cam_config"
    fov: float = 0.0
    fish_eye_x: float = 0.0
    fish_eye_y: float = 0.0
    img_w: int = 0
    img_h: int = 0
    img_d: int = 0
    img_enc: str = ""
    offset_x: float = 0.0
    offset_y: float = 0.0
    offset_z: float = 0.0
    rot_x: float = 0.0
    rot_y: float = 0.0
    rot_z: float = 0.0


@dataclass(frozen=True)
class CamConfigB(CamConfig):
    """The same for the second camera, which it also turns on."""

    msg_type = "cam_config_b"


@dataclass(frozen=True)
class LidarConfig(Message):
    """Turns the lidar on. Angles in degrees, offsets and range in u."""

    msg_type = "lidar_config"
    offset_x: float = 0.0
    offset_y: float = 0.5
    offset_z: float = 0.5
    rot_x: float = 0.0
    deg_per_sweep: float = wire("degPerSweepInc", 2.0)
    deg_down: float = wire("degAngDown", 25.0)
    deg_delta: float = wire("degAngDelta", -1.0)
    max_range: float = wire("maxRange", 50.0)
    noise: float = 0.0
    levels: int = wire("numSweepsLevels", 25)


@dataclass(frozen=True)
class SetPosition(Message):
    msg_type = "set_position"
    pos_x: float
    pos_y: float
    pos_z: float
    qx: float = wire("Qx", 0.0)
    qy: float = wire("Qy", 0.0)
    qz: float = wire("Qz", 0.0)
    qw: float = wire("Qw", 1.0)


@dataclass(frozen=True)
class GetNodePosition(Message):
    msg_type = "node_position"
    index: int


@dataclass(frozen=True)
class RegenRoad(Message):
    msg_type = "regen_road"
    road_style: int = 0
    rand_seed: int = 0
    turn_increment: float = 0.0


@dataclass(frozen=True)
class StepMode(Message):
    """ "synchronous": each control is answered by exactly one telemetry packet. Anything else: real time."""

    msg_type = "step_mode"
    step_mode: str = "asynchronous"
    time_step: float = 0.05


@dataclass(frozen=True)
class RacerInfo(Message):
    msg_type = "racer_info"
    racer_name: str = ""
    car_name: str = ""
    bio: str = ""
    country: str = ""
    guid: str = ""


# --- Events: simulator to client; telemetry, the one with images, has a module of its own -----------------------------


@dataclass(frozen=True)
class SceneSelectionReady(Message):
    msg_type = "scene_selection_ready"
    loaded: str = "1"


@dataclass(frozen=True)
class ProtocolVersion(Message):
    """`server` and `lockstep` are ours; the Unity simulator sends the version alone."""

    msg_type = "protocol_version"
    version: str = PROTOCOL_VERSION
    server: str = ours("")
    lockstep: int = ours(0)


@dataclass(frozen=True)
class SceneNames(Message):
    msg_type = "scene_names"
    scene_names: tuple[str, ...]


@dataclass(frozen=True)
class CarLoaded(Message):
    """`scene_name` is ours; the Unity simulator does not say which scene the car stands in."""

    msg_type = "car_loaded"
    scene_name: str = ours("")


@dataclass(frozen=True)
class StartLineCrossed(Message):
    msg_type = "collision_with_starting_line"
    starting_line_index: int
    time_stamp: float = wire("timeStamp")


@dataclass(frozen=True)
class NodePosition(Message):
    """Where a path node stands [u] and which way it looks."""

    msg_type = "node_position"
    index: int
    pos_x: float
    pos_y: float
    pos_z: float
    qx: float = wire("Qx", 0.0)
    qy: float = wire("Qy", 0.0)
    qz: float = wire("Qz", 0.0)
    qw: float = wire("Qw", 1.0)


@dataclass(frozen=True)
class Unknown(Message):
    """A message of a type this package does not know: kept for the log, ignored otherwise."""

    name: str

    msg_type = ""


COMMANDS: dict[str, type[Message]] = {
    kind.msg_type: kind
    for kind in (
        GetProtocolVersion,
        GetSceneNames,
        LoadScene,
        ExitScene,
        QuitApp,
        Control,
        ResetCar,
        CarConfig,
        CamConfig,
        CamConfigB,
        LidarConfig,
        SetPosition,
        GetNodePosition,
        RegenRoad,
        StepMode,
        RacerInfo,
    )
}
EVENTS: dict[str, type[Message]] = {
    kind.msg_type: kind
    for kind in (SceneSelectionReady, ProtocolVersion, SceneNames, CarLoaded, StartLineCrossed, NodePosition)
}

M = TypeVar("M", bound=Message)
Converter = Callable[[Any, str], Any]


def read_number(value: Any, name: str) -> float:
    """A finite number from a JSON number or a string, decimal comma allowed."""
    if type(value) is float and value - value == 0.0:  # nearly all of them: a packet has forty
        return value
    try:
        number = float(value.replace(",", ".") if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise ProtocolError(f"Field '{name}' is {str(value)[:40]!r}, expected a finite number.")
    return number


def read_integer(value: Any, name: str) -> int:
    """A whole number; `"3"`, `3` and `3.0` are the same."""
    number = read_number(value, name)
    if number != int(number):
        raise ProtocolError(f"Field '{name}' is {str(value)[:40]!r}, expected a whole number.")
    return int(number)


def read_text(value: Any, name: str) -> str:
    """A string; a number is taken as its digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    raise ProtocolError(f"Field '{name}' is {str(value)[:40]!r}, expected text.")


def _read_texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ProtocolError(f"Field '{name}' is {str(value)[:40]!r}, expected a list of names.")
    return tuple(read_text(item, name) for item in value)


_CONVERTERS: dict[str, Converter] = {
    "float": read_number,
    "int": read_integer,
    "str": read_text,
    "tuple[str, ...]": _read_texts,
}


class _Entry(NamedTuple):
    """How one field is read and written."""

    attribute: str
    name: str  # on the wire
    convert: Converter
    default: Any
    ours: bool


def _layout(kind: type[Message]) -> tuple[_Entry, ...]:
    """The fields of a message class in the order they are sent."""
    return tuple(
        _Entry(
            attribute=field.name,
            name=field.metadata.get("wire", field.name),
            convert=_CONVERTERS[str(field.type)],
            default=field.default,
            ours="ours" in field.metadata,
        )
        for field in dataclasses.fields(kind)
    )


_LAYOUTS = {kind: _layout(kind) for kind in (*COMMANDS.values(), *EVENTS.values())}


def read_message(raw: RawMessage, kinds: Mapping[str, type[Message]]) -> Message:
    """The typed message in a JSON object; ProtocolError names the field that is missing or wrong."""
    name = raw.get("msg_type")
    if not isinstance(name, str):
        raise ProtocolError("A message has no 'msg_type'.")
    kind = kinds.get(name)
    return Unknown(name[:80]) if kind is None else read_fields(raw, kind)


def read_fields(raw: RawMessage, kind: type[M]) -> M:
    """The fields of a message whose type is known."""
    values = {}
    for entry in _LAYOUTS[kind]:
        if entry.name in raw:
            values[entry.attribute] = entry.convert(raw[entry.name], entry.name)
        elif entry.default is dataclasses.MISSING:
            raise ProtocolError(f"Message '{kind.msg_type}' has no field '{entry.name}'.")
    return kind(**values)


def _fields_to_send(message: Message) -> Iterator[tuple[str, Any]]:
    for entry in _LAYOUTS[type(message)]:
        value = getattr(message, entry.attribute)
        if not (entry.ours and value == entry.default):
            yield entry.name, value


def write_command(command: Message) -> RawMessage:
    """The JSON object of a command, every value a string."""
    fields = {name: value if isinstance(value, str) else repr(value) for name, value in _fields_to_send(command)}
    return {"msg_type": command.msg_type, **fields}


def write_event(event: Message) -> RawMessage:
    """The JSON object of an event, numbers as numbers."""
    fields = dict(_fields_to_send(event))
    if isinstance(event, SceneNames):  # the one message whose type comes last
        return {**fields, "msg_type": event.msg_type}
    return {"msg_type": event.msg_type, **fields}
