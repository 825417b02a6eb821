"""Domain randomisation: what may differ from one episode to the next, and how far. Off unless asked for.

Every figure is a half-range or a standard deviation around the faithful value, so zero means exactly the Unity world.
A sample is drawn from the car's own generator at reset: nothing here holds state.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.errors import ConfigError, did_you_mean
from rl_training.simulator.track import Light, Track


@dataclass(frozen=True)
class DomainRandomization:
    """Ranges. Colours are RGB 0–255, angles degrees, lengths u, latency seconds."""

    sun_direction: float = 0.0  # degrees the sun may stand elsewhere
    sun_color: float = 0.0  # share by which each channel of the sun may be weaker
    brightness: float = 0.0  # share by which the whole light may be stronger or weaker
    palette: float = 0.0  # RGB distance by which each material's colour may move
    sky: float = 0.0  # RGB distance for the sky's colours
    repaint: float = 0.0  # probability that ground and road get colours of their own, whatever the track's
    camera_offset: float = 0.0
    camera_angle: float = 0.0
    camera_fov: float = 0.0
    friction: float = 0.0  # share, each way
    motor: float = 0.0  # share, each way
    latency: float = 0.0  # uniform in [0, latency]
    noise: float = 0.0  # standard deviation of the pixel noise may be up to this
    blur: float = 0.0  # probability of a 3×3 blur

    @classmethod
    def preset(cls, name: str) -> DomainRandomization:
        """`none`, `light` or `strong`."""
        if name not in PRESETS:
            raise ConfigError(f"There is no randomisation preset '{name}'.{did_you_mean(name, PRESETS)}")
        return PRESETS[name]

    @property
    def enabled(self) -> bool:
        """Whether anything at all is randomised."""
        return any(getattr(self, item.name) for item in fields(self))


PRESETS = {
    "none": DomainRandomization(),
    "light": DomainRandomization(
        sun_direction=20.0,
        sun_color=0.1,
        brightness=0.15,
        palette=14.0,
        sky=20.0,
        camera_offset=0.02,
        camera_angle=0.7,
        friction=0.05,
        motor=0.05,
        noise=2.0,
    ),
    "strong": DomainRandomization(
        sun_direction=50.0,
        sun_color=0.3,
        brightness=0.35,
        palette=32.0,
        sky=60.0,
        repaint=0.5,
        camera_offset=0.08,
        camera_angle=2.0,
        camera_fov=4.0,
        friction=0.15,
        motor=0.15,
        latency=0.05,
        noise=6.0,
        blur=0.3,
    ),
}


class Appearance(NamedTuple):
    """One draw: how the world looks and the car behaves for an episode."""

    colors: NDArray[np.uint8]  # (16, 3)
    light: Light
    camera_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)  # added to the camera's own [u]
    camera_angle: tuple[float, float, float] = (0.0, 0.0, 0.0)  # added pitch, yaw, roll [rad]
    camera_fov: float = 0.0  # added to the vertical field of view [rad]
    friction: float = 1.0  # factors
    motor: float = 1.0
    latency: float = 0.0  # [s]
    noise: float = 0.0  # standard deviation of pixel noise, 0–255
    blur: bool = False
    noise_seed: int = 0


def faithful(track: Track) -> Appearance:
    """The track as Unity shows it."""
    return Appearance(track.colors, track.light)


def sample(ranges: DomainRandomization, track: Track, rng: np.random.Generator) -> Appearance:
    """Draw one appearance. The order of the draws is part of what a seed means: append, never reorder."""
    if not ranges.enabled:
        return faithful(track)
    angle = np.radians(ranges.camera_angle)
    offset = rng.uniform(-1.0, 1.0, 3) * ranges.camera_offset
    tilt = rng.uniform(-1.0, 1.0, 3) * angle
    return Appearance(
        colors=_colors(ranges, track, rng),
        light=_light(ranges, track.light, rng),
        camera_offset=_triple(offset),
        camera_angle=_triple(tilt),
        camera_fov=float(np.radians(rng.uniform(-1.0, 1.0) * ranges.camera_fov)),
        friction=1.0 + float(rng.uniform(-1.0, 1.0)) * ranges.friction,
        motor=1.0 + float(rng.uniform(-1.0, 1.0)) * ranges.motor,
        latency=float(rng.uniform(0.0, 1.0)) * ranges.latency,
        noise=float(rng.uniform(0.0, 1.0)) * ranges.noise,
        blur=bool(rng.random() < ranges.blur),
        noise_seed=int(rng.integers(2**31)),
    )


def _colors(ranges: DomainRandomization, track: Track, rng: np.random.Generator) -> NDArray[np.uint8]:
    colors = track.colors.astype(np.float64) + rng.uniform(-1.0, 1.0, (16, 3)) * ranges.palette
    new_ground, new_road = rng.uniform(20, 200, 3), rng.uniform(40, 160)
    if rng.random() < ranges.repaint:  # ground of any colour, road of any grey: lines keep standing out from it
        colors[0:2] = new_ground + rng.uniform(-12, 12, (2, 3))
        colors[2:4] = new_road + rng.uniform(-12, 12, (2, 3))
    return np.clip(colors, 0, 255).astype(np.uint8)


def _light(ranges: DomainRandomization, light: Light, rng: np.random.Generator) -> Light:
    direction = np.array(light.direction) + rng.normal(0.0, 1.0, 3) * np.tan(np.radians(ranges.sun_direction)) / 2.0
    direction[1] = min(direction[1], -0.25 * np.hypot(direction[0], direction[2]))  # the sun stays above the horizon
    direction /= np.linalg.norm(direction)
    color = np.array(light.color) * (1.0 - rng.uniform(0.0, 1.0, 3) * ranges.sun_color)
    factor = 1.0 + float(rng.uniform(-1.0, 1.0)) * ranges.brightness
    zenith, horizon = (
        np.clip(np.array(base) + rng.uniform(-1.0, 1.0, 3) * ranges.sky, 0, 255)
        for base in (light.zenith, light.horizon)
    )
    return replace(
        light,
        direction=_triple(direction),
        color=_triple(color),
        sun=light.sun * factor,
        ambient=light.ambient * factor,
        zenith=_triple(zenith),
        horizon=_triple(horizon),
    )


def _triple(values: NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z
