"""`EnvSpec`: everything that decides what a policy sees and does.

It is saved beside every model; evaluation, resume and export rebuild the env from it and never from flags that might
differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from rl_training.envs.conf import DonkeyConf
from rl_training.envs.typed_values import typed_value
from rl_training.errors import ConfigError, did_you_mean
from rl_training.simulator.randomize import DomainRandomization

T = TypeVar("T")


@dataclass(frozen=True)
class ObservationSpec:
    """The picture a policy gets: a crop of the camera's frame, resized, grey or RGB, stacked over time."""

    width: int = 160
    height: int = 120
    grey: bool = False
    stack: int = 1
    channels_first: bool = False
    camera_width: int = 160  # the frame that is cropped, in the camera's own pixels
    camera_height: int = 120
    crop_top: int = 0  # rows and columns cut off the frame before it is resized
    crop_bottom: int = 0
    crop_left: int = 0
    crop_right: int = 0
    command_rows: int = 0  # lowest rows of every frame that show the last command, see `cameras.paint_commands`

    def __post_init__(self) -> None:
        if min(self.width, self.height, self.stack, self.camera_width, self.camera_height) < 1:
            raise ConfigError(
                f"An observation of {self.width}x{self.height}x{self.stack} has no pixels; expected 1 or more."
            )
        if not 0 <= self.command_rows < self.height:
            raise ConfigError(f"command_rows is {self.command_rows}; expected 0 for none, or less than {self.height}.")
        if min(self.crop_top, self.crop_bottom, self.crop_left, self.crop_right) < 0:
            raise ConfigError("A crop cannot be negative; give the rows and columns to cut off each side.")
        if (
            self.crop_top + self.crop_bottom >= self.camera_height
            or self.crop_left + self.crop_right >= self.camera_width
        ):
            raise ConfigError(
                f"The crop leaves nothing of a {self.camera_width}x{self.camera_height} frame; cut off less of it."
            )

    @property
    def channels(self) -> int:
        """Channels of one frame."""
        return 1 if self.grey else 3

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one observation, the stack along the channels."""
        depth = self.channels * self.stack
        return (depth, self.height, self.width) if self.channels_first else (self.height, self.width, depth)


@dataclass(frozen=True)
class CameraSpec:
    """How the camera sits on the car and what lens it has; the defaults are the Unity car's."""

    fov: float = 90.0  # vertical [degrees]
    offset: tuple[float, float, float] = (0.0, 1.120395, 0.5528488)  # right, up, forward of the car's origin [u]
    rotation: tuple[float, float, float] = (15.0, 0.0, 0.0)  # down, right, roll [degrees]
    fisheye: tuple[float, float] = (0.0, 0.0)  # strengths across and down; zeros: none


# The view of the presets: the lower two thirds of the frame at half size, in grey, with one frame of history.
POLICY_VIEW = ObservationSpec(width=80, height=40, grey=True, stack=2, channels_first=True, crop_top=40)


@dataclass(frozen=True)
class ActionSpec:
    """What a policy may ask of the car: steering in ±steer_limit, throttle between its bounds.

    With `normalized` both actions run from -1 to 1 and are mapped onto those bounds, as SB3's policies like it.
    With `n_steer` and `n_throttle` the actions are the points of that grid over the bounds instead, numbered as
    `wrappers/discretize_action.py` says. A `throttle_min` above 0 keeps the car rolling whatever the policy wants.
    """

    steer_limit: float = 1.0
    throttle_min: float = 0.0
    throttle_max: float = 1.0
    normalized: bool = False
    n_steer: int = 0  # 0 for both: continuous
    n_throttle: int = 0
    steer_rate: float = 0.0  # most the steering may change in a control step of 0.05 s; 0 = at once

    def __post_init__(self) -> None:
        if not 0.0 < self.steer_limit <= 1.0:
            raise ConfigError(f"steer_limit is {self.steer_limit}; expected above 0 and at most 1.")
        if not -1.0 <= self.throttle_min <= self.throttle_max <= 1.0:
            raise ConfigError(
                f"The throttle runs from {self.throttle_min} to {self.throttle_max}; "
                "expected two values in order between -1 and 1."
            )
        if min(self.n_steer, self.n_throttle) < 0 or (self.n_steer == 0) != (self.n_throttle == 0):
            raise ConfigError(
                f"n_steer is {self.n_steer} and n_throttle {self.n_throttle}; "
                "expected both above 0, or both 0 for continuous actions."
            )
        if self.steer_rate < 0.0:
            raise ConfigError(f"steer_rate is {self.steer_rate}; expected 0 for no limit, or more.")

    @property
    def discrete(self) -> bool:
        """Whether actions are the points of a grid."""
        return self.n_steer > 0


@dataclass(frozen=True)
class StartSpec:
    """Where an episode begins: the scene's own start, or anywhere on the track, with some scatter."""

    anywhere: bool = False
    offset: float = 0.0  # uniform to both sides of the line [u]
    angle: float = 0.0  # uniform about the road's heading [degrees]


@dataclass(frozen=True)
class Limits:
    """When an episode ends; 0 switches a limit off. Steps are control steps of 0.05 s.

    Leaving the road, a hit, being stuck, no progress and a short lap terminate; running out of time or road truncates.
    """

    max_cte: float = 8.0
    end_on_hit: bool = True
    max_steps: int = 0
    stuck_steps: int = 0  # without moving
    no_progress_steps: int = 0  # without getting further along the track than ever in this episode
    min_lap_seconds: float = 0.0  # a lap from start line to start line that is shorter was not driven round the track
    max_seconds: float = 0.0  # wall clock, for simulators whose steps may take long; makes runs depend on the machine

    def __post_init__(self) -> None:
        for name in ("max_steps", "stuck_steps", "no_progress_steps", "min_lap_seconds", "max_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"limits.{name} is {getattr(self, name)}; expected 0 for no limit, or more.")
        if not self.max_cte > 0.0:
            raise ConfigError(f"limits.max_cte is {self.max_cte}; expected a distance above 0.")


@dataclass(frozen=True)
class EnvSpec:
    """One env, or a batch of them: car i drives ``tracks[i % len(tracks)]``."""

    tracks: tuple[str, ...] = ("generated_track",)
    observation: ObservationSpec = field(default_factory=ObservationSpec)
    camera: CameraSpec = field(default_factory=CameraSpec)
    action: ActionSpec = field(default_factory=ActionSpec)
    start: StartSpec = field(default_factory=StartSpec)
    limits: Limits = field(default_factory=Limits)
    reward: str = "donkey"
    frame_skip: int = 1
    randomization: DomainRandomization = field(default_factory=DomainRandomization)

    def __post_init__(self) -> None:
        if not self.tracks:
            raise ConfigError("An EnvSpec needs at least one track, such as 'generated_track'.")
        if self.frame_skip < 1:
            raise ConfigError(f"frame_skip is {self.frame_skip}; expected 1 or more.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EnvSpec:
        """The inverse of `to_dict`; an unknown key is an error that names the nearest."""
        return _build(cls, values, "EnvSpec")


def _build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """A frozen dataclass from plain values, its nested dataclasses too."""
    known = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{where} has no key '{key}'.{did_you_mean(key, known)}")
        factory = known[key].default_factory
        nested = factory() if factory is not dataclasses.MISSING else None
        if key == "randomization" and isinstance(value, str):
            arguments[key] = DomainRandomization.preset(value)
        elif dataclasses.is_dataclass(nested):
            arguments[key] = _build(type(nested), mapping_of(f"{where}.{key}", value), f"{where}.{key}")
        else:
            arguments[key] = typed_value(f"{where}.{key}", value, str(known[key].type))
    return cls(**arguments)


def mapping_of(name: str, value: Any) -> Mapping[str, Any]:
    """``value``, if it is a mapping of keys to values."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}; expected a mapping of keys to values, such as {{max_steps: 600}}.")
    return value


def camera_from_conf(config: Mapping[str, Any], base: CameraSpec | None = None) -> CameraSpec:
    """`cam_config` by the simulator's rules: zero keeps the old value, one non-zero offset or angle sets all three."""
    camera = base or CameraSpec()
    given = {key: float(value) for key, value in config.items() if key not in ("img_w", "img_h", "img_d", "img_enc")}
    offset = tuple(given.get(f"offset_{axis}", 0.0) for axis in "xyz")
    rotation = tuple(given.get(f"rot_{axis}", 0.0) for axis in "xyz")
    fisheye = (given.get("fish_eye_x", 0.0), given.get("fish_eye_y", 0.0))
    return CameraSpec(
        fov=given.get("fov", 0.0) or camera.fov,
        offset=offset if any(offset) else camera.offset,  # type: ignore[arg-type]
        rotation=rotation if any(rotation) else camera.rotation,  # type: ignore[arg-type]
        fisheye=fisheye if any(fisheye) else camera.fisheye,
    )


def spec_from_conf(
    tracks: tuple[str, ...], conf: DonkeyConf, randomization: str | DomainRandomization = "none", max_steps: int = 0
) -> EnvSpec:
    """What gym-donkeycar's `conf` means for a batch in the embedded world."""
    height, width, depth = conf.cam_resolution
    ranges = DomainRandomization.preset(randomization) if isinstance(randomization, str) else randomization
    return EnvSpec(
        tracks=(conf.level,) if conf.level else tracks,
        observation=ObservationSpec(width, height, grey=depth == 1, camera_width=width, camera_height=height),
        camera=camera_from_conf(conf.cam_config),
        action=ActionSpec(conf.steer_limit, conf.throttle_min, conf.throttle_max),
        limits=Limits(max_cte=conf.max_cte, max_steps=max_steps),
        reward="donkey",
        frame_skip=conf.frame_skip,
        randomization=ranges,
    )
