"""gym-donkeycar's `conf` dictionary: the same keys and defaults, checked, and never changed in the caller's hands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rl_training.errors import ConfigError, did_you_mean

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
    exe_path: str | None = None  # a Unity binary to start as our child
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
    given = dict(conf or {})
    known = {item.name for item in fields(DonkeyConf)}
    camera = dict(given.pop("cam_config", None) or {})
    for key in CAMERA_KEYS:
        if key in given:
            camera.setdefault(key, given.pop(key))
    for key in given:
        if key not in known:
            raise ConfigError(f"conf has no key '{key}'.{did_you_mean(key, [*known, *CAMERA_KEYS])}")
    for group, keys in (("cam_config_b", CAMERA_KEYS), ("lidar_config", LIDAR_KEYS)):
        _check_group(group, dict(given.get(group) or {}), keys)
        given[group] = dict(given.get(group) or {})
    _check_group("cam_config", camera, CAMERA_KEYS)
    resolution = tuple(int(size) for size in given.pop("cam_resolution", _resolution(camera)))
    if len(resolution) != 3 or min(resolution) < 1 or resolution[2] not in (1, 3):
        raise ConfigError(f"conf['cam_resolution'] is {resolution}; expected (height, width, 1 or 3).")
    parsed = DonkeyConf(cam_config=camera, cam_resolution=resolution, **given)  # type: ignore[arg-type]
    _check_ranges(parsed)
    return parsed


def _resolution(camera: Mapping[str, Any]) -> tuple[int, int, int]:
    """The frame's size where only the camera's own keys name it; the classic default otherwise."""
    return int(camera.get("img_h", 0) or 120), int(camera.get("img_w", 0) or 160), int(camera.get("img_d", 0) or 3)


def _check_group(group: str, values: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in values:
        if key not in keys:
            raise ConfigError(f"conf['{group}'] has no key '{key}'.{did_you_mean(key, keys)}")


def _check_ranges(conf: DonkeyConf) -> None:
    if not conf.max_cte > 0:
        raise ConfigError(
            f"conf['max_cte'] is {conf.max_cte}; expected a positive distance in Unity units, such as 8.0."
        )
    if conf.frame_skip < 1:
        raise ConfigError(f"conf['frame_skip'] is {conf.frame_skip}; expected 1 or more.")
    if not 0 < conf.steer_limit <= 1:
        raise ConfigError(f"conf['steer_limit'] is {conf.steer_limit}; expected more than 0 and at most 1.")
    if not -1 <= conf.throttle_min < conf.throttle_max <= 1:
        raise ConfigError(
            f"conf has throttle_min {conf.throttle_min} and throttle_max {conf.throttle_max}; "
            "expected -1 <= throttle_min < throttle_max <= 1."
        )
