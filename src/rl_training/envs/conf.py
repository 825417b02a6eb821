"""gym-donkeycar's `conf` dictionary: the same keys and defaults, checked, and never changed in the caller's hands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rl_training.envs.typed_values import typed_value
from rl_training.errors import ConfigError, did_you_mean

LOCALHOST = "127.0.0.1"

CAMERA_KEYS = (
    "fov",
    "fish_eye_x",
    "fish_eye_y",
    "img_w",
    "img_h",
    "img_d",
    "img_enc",
    "offset_x",
    "offset_y",
    "offset_z",
    "rot_x",
    "rot_y",
    "rot_z",
)
LIDAR_KEYS = (
    "degPerSweepInc",
    "degAngDown",
    "degAngDelta",
    "numSweepsLevels",
    "maxRange",
    "noise",
    "offset_x",
    "offset_y",
    "offset_z",
    "rot_x",
)


@dataclass(frozen=True)
class DonkeyConf:
    """What a user of gym-donkeycar may pass as `conf`. Lengths in u, angles in degrees."""

    host: str | None = None  # with `host` or `port` the env drives a simulator over TCP
    port: int | None = None
    exe_path: str | None = None  # a Unity binary to start as our child; "remote": it runs already
    start_delay: float = 5.0
    headless: bool = False
    max_cte: float = 8.0
    frame_skip: int = 1
    cam_resolution: tuple[int, int, int] = (120, 160, 3)
    steer_limit: float = 1.0
    throttle_min: float = 0.0
    throttle_max: float = 1.0
    cam_config: dict[str, Any] = field(default_factory=dict)
    cam_config_b: dict[str, Any] = field(default_factory=dict)
    lidar_config: dict[str, Any] = field(default_factory=dict)
    body_style: str | None = None
    body_rgb: tuple[int, int, int] | None = None
    car_name: str | None = None
    font_size: int = 100
    racer_name: str | None = None
    country: str | None = None
    bio: str | None = None
    guid: str | None = None
    level: str | None = None
    log_level: int = 20

    @property
    def remote(self) -> bool:
        """Whether the env is to drive a simulator over TCP and not the embedded world."""
        return self.host is not None or self.port is not None or self.exe_path is not None


def parse_conf(conf: Mapping[str, Any] | None) -> DonkeyConf:
    """`conf` as a checked value; camera keys at the top level, as older clients send them, go to `cam_config`."""
    given = _mapping("conf", conf)
    known = {item.name: str(item.type) for item in fields(DonkeyConf)}
    camera = _mapping("conf['cam_config']", given.pop("cam_config", None))
    for key in CAMERA_KEYS:
        if key in given:
            camera.setdefault(key, given.pop(key))
    values: dict[str, Any] = {"cam_config": _group("cam_config", camera, CAMERA_KEYS)}
    for group, keys in (("cam_config_b", CAMERA_KEYS), ("lidar_config", LIDAR_KEYS)):
        values[group] = _group(group, given.pop(group, None), keys)
    given.setdefault("cam_resolution", _resolution(camera))
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"conf has no key '{key}'.{did_you_mean(str(key), [*known, *CAMERA_KEYS])}")
        values[key] = _value(key, value, known[key])
    if values.get("exe_path") == "remote":  # DonkeyCar's word for a simulator that somebody else started
        values.update(exe_path=None, host=values.get("host") or LOCALHOST)
    parsed = DonkeyConf(**values)
    _check_ranges(parsed)
    return parsed


def _mapping(name: str, value: Any) -> dict[str, Any]:
    """A copy of a mapping, empty for None."""
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}; expected a mapping of keys to values.")
    return dict(value or {})


def _value(key: str, value: Any, annotation: str) -> Any:
    """A value as its field holds it; numpy's numbers and tuples count, and DonkeyCar's numbers where text is meant."""
    optional, kind = annotation.endswith(" | None"), annotation.removesuffix(" | None")
    if optional and value is None:
        return None
    plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if kind == "str" and isinstance(plain, int):
        plain = str(plain)
    return typed_value(f"conf['{key}']", plain, kind)


def _group(group: str, value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Settings of a camera or lidar: known keys with numbers, also as text, but for the name of the encoding."""
    given = _mapping(f"conf['{group}']", value)
    for key, number in given.items():
        if key not in keys:
            raise ConfigError(f"conf['{group}'] has no key '{key}'.{did_you_mean(str(key), keys)}")
        if key == "img_enc":
            continue
        try:
            finite = math.isfinite(float(number))
        except (TypeError, ValueError):
            finite = False
        if not finite:
            raise ConfigError(f"conf['{group}']['{key}'] is {number!r}; expected a number.")
    return given


def _resolution(camera: Mapping[str, Any]) -> tuple[int, int, int]:
    """The frame's size where only the camera's own keys name it; the classic default otherwise."""
    height, width, depth = (int(float(camera.get(key, 0))) for key in ("img_h", "img_w", "img_d"))
    return height or 120, width or 160, depth or 3


def _check_ranges(conf: DonkeyConf) -> None:
    if not conf.max_cte > 0:
        raise ConfigError(
            f"conf['max_cte'] is {conf.max_cte}; expected a positive distance in Unity units, such as 8.0."
        )
    if min(conf.cam_resolution) < 1 or conf.cam_resolution[2] not in (1, 3):
        raise ConfigError(f"conf['cam_resolution'] is {conf.cam_resolution}; expected (height, width, 1 or 3).")
    for key, least in (("degPerSweepInc", 0.01), ("numSweepsLevels", 1.0), ("maxRange", 0.01)):
        if float(conf.lidar_config.get(key, least)) < least:
            raise ConfigError(f"conf['lidar_config']['{key}'] is {conf.lidar_config[key]}; expected {least:g} or more.")
    if conf.frame_skip < 1:
        raise ConfigError(f"conf['frame_skip'] is {conf.frame_skip}; expected 1 or more.")
    if not 0 < conf.steer_limit <= 1:
        raise ConfigError(f"conf['steer_limit'] is {conf.steer_limit}; expected more than 0 and at most 1.")
    if not -1 <= conf.throttle_min < conf.throttle_max <= 1:
        raise ConfigError(
            f"conf has throttle_min {conf.throttle_min} and throttle_max {conf.throttle_max}; "
            "expected -1 <= throttle_min < throttle_max <= 1."
        )
