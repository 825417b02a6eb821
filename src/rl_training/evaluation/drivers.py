"""Scripted drivers on the public API: they read `info` and the track's own line, so they drive any simulator.

A driver is called with the `info` of the last step and answers with an action (steering, throttle).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rl_training.errors import UsageError, did_you_mean
from rl_training.simulator.state import METRE, CarParams
from rl_training.simulator.track import Track

WHEELBASE = 1.602  # [u]
COAST = 4.9  # time constant of a coasting car [s]; so braking by coasting loses 1/COAST u/s a unit of road
REAR_AXLE = 0.765  # behind the car's origin [u]


class Driver(Protocol):
    """Anything that turns what the car knows into an action."""

    def __call__(self, info: Mapping[str, Any]) -> NDArray[np.float32]: ...


class PurePursuit:
    """Steers for a point ahead on the line, at the speed that the corners ahead allow to a car that can only coast."""

    def __init__(
        self, track: Track, *, top_speed: float = 14.0, grip: float = 22.0, target_offset: float = 0.0
    ) -> None:
        self.line = _offset_line(track, target_offset)
        self.closed = track.closed
        self.gap = track.length / len(track.line)
        self.speeds = _speed_profile(self.line, self.gap, track.closed, top_speed, grip)
        self.max_steer = CarParams().max_steer
        self._index: int | None = None

    def __call__(self, info: Mapping[str, Any]) -> NDArray[np.float32]:
        position = np.array([info["pos"][0], info["pos"][2]]) * METRE
        yaw = math.radians(info["car"][2])
        speed = float(info["speed"]) * METRE
        rear = position - REAR_AXLE * np.array([math.sin(yaw), math.cos(yaw)])
        index = self._nearest(position)
        ahead = 3.0 + 0.22 * speed
        target = self.line[self._step(index, round(ahead / self.gap))] - rear
        right = target[0] * math.cos(yaw) - target[1] * math.sin(yaw)
        distance = max(float(target @ target), 1e-6)
        steer = math.atan(2.0 * WHEELBASE * right / distance) / self.max_steer
        lead = self._step(index, round(0.15 * speed / self.gap))  # the throttle acts on where the car will be
        throttle = 0.011 * self.speeds[lead] + 0.12 * (self.speeds[lead] - speed)
        return np.array([np.clip(steer, -1.0, 1.0), np.clip(throttle, 0.0, 1.0)], np.float32)

    def _step(self, index: int, count: int) -> int:
        return (index + count) % len(self.line) if self.closed else min(index + count, len(self.line) - 1)

    def _nearest(self, position: NDArray[np.float64]) -> int:
        """Nearest point of the line near the last one, so that crossings do not lead astray."""
        reach = round(12.0 / self.gap)
        if self._index is None:
            candidates = np.arange(len(self.line))
        else:
            candidates = self._index + np.arange(-reach, reach)
            candidates = candidates % len(self.line) if self.closed else candidates.clip(0, len(self.line) - 1)
        squares = ((self.line[candidates] - position) ** 2).sum(axis=1)
        if self._index is not None and squares.min() > 15.0**2:  # put back to the start, or thrown off
            self._index = None
            return self._nearest(position)
        self._index = int(candidates[squares.argmin()])
        return self._index


def _offset_line(track: Track, offset: float) -> NDArray[np.float64]:
    """The track's line in the plane, moved `offset` to the right."""
    line: NDArray[np.float64] = track.line[:, [0, 2]]
    ahead: NDArray[np.float64] = np.roll(line, -1, axis=0) - np.roll(line, 1, axis=0)
    if not track.closed:
        ahead[[0, -1]] = line[[1, -1]] - line[[0, -2]]
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    right = np.column_stack((ahead[:, 1], -ahead[:, 0]))
    return np.asarray(line + offset * right, np.float64)


def _speed_profile(
    line: NDArray[np.float64], gap: float, closed: bool, top_speed: float, grip: float
) -> NDArray[np.float64]:
    """Speed at each point: what the corner's radius allows, lowered before corners by what coasting cannot lose."""
    span = max(1, round(2.0 / gap))
    if closed:
        before, after = np.roll(line, span, axis=0), np.roll(line, -span, axis=0)
    else:
        index = np.arange(len(line))
        before, after = line[(index - span).clip(0)], line[(index + span).clip(max=len(line) - 1)]
    inward, outward = line - before, after - line
    turn = np.arctan2(inward[:, 0] * outward[:, 1] - inward[:, 1] * outward[:, 0], (inward * outward).sum(axis=1))
    curvature = np.abs(turn) / (span * gap)
    speeds = np.minimum(top_speed, np.sqrt(grip / np.maximum(curvature, 1e-6)))
    for _ in range(2 if closed else 1):  # the second pass carries a corner's limit over the start of a loop
        for i in range(len(speeds) - 1, -1, -1):
            following = speeds[(i + 1) % len(speeds)] if closed or i + 1 < len(speeds) else top_speed
            speeds[i] = min(speeds[i], following + gap / COAST)
    return np.asarray(speeds, np.float64)


DRIVERS = {"pursuit": PurePursuit}


def make_driver(name: str, track: Track) -> Driver:
    """A scripted driver by name."""
    if name not in DRIVERS:
        raise UsageError(f"There is no driver '{name}'.{did_you_mean(name, DRIVERS)}")
    return DRIVERS[name](track)
