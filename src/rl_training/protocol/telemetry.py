"""Telemetry: what the simulator says about a car 20 times a simulated second, images included.

Symbols, units and signs as in `messages`. Fields stand in the order in which the Unity simulator sends them.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from rl_training.errors import ProtocolError
from rl_training.protocol import images
from rl_training.protocol.framing import RawMessage
from rl_training.protocol.images import Image
from rl_training.protocol.messages import read_integer, read_number, read_text

UNITS_PER_METRE = 8.0


class LidarPoint(NamedTuple):
    """One ray that met something: distance [u], degrees clockwise from the nose, degrees above the level."""

    d: float
    rx: float
    ry: float


@dataclass(frozen=True, eq=False)
class Telemetry:
    """A car at one moment. Optional values are None where the simulator does not send them."""

    msg_type: ClassVar[str] = "telemetry"

    image: Image
    image_b: Image | None = None
    lidar: tuple[LidarPoint, ...] | None = None  # None: no lidar; empty: nothing in reach
    steering_angle: float = 0.0  # as last requested, -1..1
    throttle: float = 0.0
    front_left_odom: float = 0.0  # wheel revolutions
    front_right_odom: float = 0.0
    rear_left_odom: float = 0.0
    rear_right_odom: float = 0.0
    hit: str = "none"  # name of what was touched anew since the packet before
    time: float = 0.0
    speed: float = 0.0  # never negative
    accel_x: float = 0.0
    accel_y: float = 0.0
    accel_z: float = 0.0
    gyro_x: float = 0.0
    gyro_y: float = 0.0
    gyro_z: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0
    cte: float | None = None
    active_node: int = 0
    total_nodes: int = 0
    pos_x: float | None = None
    pos_y: float | None = None
    pos_z: float | None = None
    vel_x: float | None = None
    vel_y: float | None = None
    vel_z: float | None = None
    # Ours, for clients that ask: by following the car's projection on the path. Distances in metres.
    progress: float | None = None  # since the reset, negative backwards
    furthest: float | None = None  # the greatest progress so far
    road_length: float | None = None
    road_ends: int | None = None  # 1: an open road, 0: a closed one
    laps: int | None = None  # full lengths of the road
    last_lap_time: float | None = None  # [s], 0 before the first
    road_offset: float | None = None  # from the path, + = right [u]; unlike cte never to a stale segment
    # Set by the reader: the release sent raw units (8 per metre) and they were converted.
    old_units: bool = False


_RENAMED = {"active_node": "activeNode", "total_nodes": "totalNodes"}
_EXTRAS = ("progress", "furthest", "road_length", "road_ends", "laps", "last_lap_time", "road_offset")
_INTEGERS = {"active_node", "total_nodes", "road_ends", "laps"}
_NOT_SCALAR = {"image", "image_b", "lidar", "old_units"}
# (attribute, name on the wire), in order; the two before the images first.
_SCALARS = tuple(
    (field.name, _RENAMED.get(field.name, field.name))
    for field in dataclasses.fields(Telemetry)
    if field.name not in _NOT_SCALAR
)
_READERS: dict[str, Callable[[Any, str], Any]] = {
    **{attribute: read_number for attribute, _ in _SCALARS},
    **dict.fromkeys(_INTEGERS, read_integer),
    "hit": read_text,
}
_BEFORE_IMAGES, _AFTER_IMAGES = _SCALARS[:2], tuple(item for item in _SCALARS[2:] if item[0] not in _EXTRAS)
_ODOMETERS = ("front_left_odom", "front_right_odom", "rear_left_odom", "rear_right_odom")
_METRIC = (
    *("speed", "accel_x", "accel_y", "accel_z"),
    *("pos_x", "pos_y", "pos_z", "vel_x", "vel_y", "vel_z"),
)


@dataclass(frozen=True)
class ImageEncoding:
    """How a camera's images are put on the wire."""

    code: str = "JPG"
    grey: bool = False

    def text(self, image: Image) -> str:
        """Base64 of the image file."""
        shown = images.to_grey(image) if self.grey else image
        return base64.b64encode(images.encode(shown, self.code)).decode("ascii")


def write_telemetry(
    telemetry: Telemetry, encoding: ImageEncoding, encoding_b: ImageEncoding, extras: bool = False
) -> RawMessage:
    """The JSON object of a telemetry packet, fields in Unity's order. The second image goes under both its names."""
    raw: RawMessage = {"msg_type": "telemetry"}
    for attribute, name in _BEFORE_IMAGES:
        raw[name] = getattr(telemetry, attribute)
    raw["image"] = encoding.text(telemetry.image)
    if telemetry.image_b is not None:
        raw["imageb"] = raw["image_b"] = encoding_b.text(telemetry.image_b)
    if telemetry.lidar is not None:
        raw["lidar"] = [{"d": point.d, "rx": point.rx, "ry": point.ry} for point in telemetry.lidar] or None
    for attribute, name in _AFTER_IMAGES:
        value = getattr(telemetry, attribute)
        if value is not None:
            raw[name] = value
    if extras:
        raw.update((name, getattr(telemetry, name)) for name in _EXTRAS)
    return raw


def read_telemetry(raw: RawMessage) -> Telemetry:
    """The typed packet; ProtocolError when a value is not what it must be or the image cannot be decoded."""
    values: dict[str, Any] = {}
    for attribute, name in _SCALARS:
        value = raw.get(name)
        if value is not None:
            read = _READERS[attribute]
            values[attribute] = read(value, name)
    if "odom" in raw:
        _convert_old_release(raw["odom"], values)
    second = raw.get("image_b") or raw.get("imageb")
    return Telemetry(
        image=_read_image(raw.get("image"), "image"),
        image_b=_read_image(second, "image_b") if second else None,
        lidar=_read_lidar(raw["lidar"]) if "lidar" in raw else None,
        **values,
    )


def _convert_old_release(odometers: Any, values: dict[str, Any]) -> None:
    """Releases up to 22.03 nest the odometers and send distances in u: bring both to what came later."""
    values["old_units"] = True
    for name in _METRIC:
        if name in values:
            values[name] /= UNITS_PER_METRE
    if isinstance(odometers, list) and len(odometers) == len(_ODOMETERS):
        for name, value in zip(_ODOMETERS, odometers, strict=True):
            values[name] = read_number(value, "odom")


def _read_image(value: Any, name: str) -> Image:
    if not isinstance(value, str):
        raise ProtocolError(f"Telemetry has no '{name}'.")
    try:
        data = base64.b64decode(value, validate=False)
    except (binascii.Error, ValueError):
        raise ProtocolError(f"Field '{name}' is not base64.") from None
    return images.decode(data)


def _read_lidar(value: Any) -> tuple[LidarPoint, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ProtocolError(f"Field 'lidar' is {str(value)[:40]!r}, expected a list of points.")
    points = []
    for point in value:
        if isinstance(point, dict):
            points.append(LidarPoint(*(read_number(point.get(axis), f"lidar {axis}") for axis in ("d", "rx", "ry"))))
    return tuple(points)
