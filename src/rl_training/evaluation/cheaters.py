"""Scripted drivers that do what reward functions were seen to pay for without racing: a test list for every reward.

Each exploits the world from its true state, better than a policy that sees pixels could. `HONEST_SPEED` is the slow,
clean lap they are measured against. Lengths and speeds in world units u and u/s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.evaluation.drivers import Driver, PurePursuit
from rl_training.simulator.track import LINE_X, LINE_Z, Track

HONEST_SPEED = 7.0  # half of what the car is comfortable with
FAST = 14.0
CIRCLE_RADIUS = 6.5  # a little more than full lock needs
WEAVE_BEYOND = 0.5  # the waves' middle beyond the road's edge
WEAVE_REACH = 3.0  # to either side of that
WEAVE_LENGTH = 22.0
OUTSIDE = 2.5  # beyond the road's edge
PRESSED = 12.0  # aim so far beyond a road's edge that its walls are pressed against
SHUTTLE_SECONDS = 2.5  # one way
Points = NDArray[np.float64]


class Held:
    """One action for ever."""

    def __init__(self, steering: float, throttle: float) -> None:
        self._action = np.array([steering, throttle], np.float32)

    def __call__(self, info: Mapping[str, Any]) -> NDArray[np.float32]:
        return self._action


class Shuttle:
    """Forth and back on the first straight."""

    def __init__(self) -> None:
        self._start: float | None = None

    def __call__(self, info: Mapping[str, Any]) -> NDArray[np.float32]:
        self._start = info["time"] if self._start is None else self._start
        forth = (info["time"] - self._start) % (2.0 * SHUTTLE_SECONDS) < SHUTTLE_SECONDS
        return np.array([0.0, 0.6 if forth else -0.6], np.float32)


def _along(track: Track, points: Points, speed: float, closed: bool = True) -> Driver:
    """Pursues any line on the ground as if it were the track's."""
    if closed:
        points = np.vstack((points, points[:1]))
    marks = np.concatenate(([0.0], np.hypot(*np.diff(points, axis=0).T).cumsum()))
    even = np.linspace(0.0, marks[-1], int(marks[-1] / 0.5) + 2)[: -1 if closed else None]
    line = np.zeros((len(even), 3))
    line[:, 0], line[:, 2] = np.interp(even, marks, points[:, 0]), np.interp(even, marks, points[:, 1])
    return PurePursuit(replace(track, line=line, length=float(marks[-1]), closed=closed), top_speed=speed)


def _circle(x: float, z: float, radius: float) -> Points:
    angle = np.linspace(0.0, 2.0 * np.pi, 90, endpoint=False)
    return np.column_stack((x + radius * np.sin(angle), z + radius * np.cos(angle)))


def _rightwards(track: Track) -> Points:
    """Unit vectors to the right of the line."""
    ahead = np.roll(track.line[:, [0, 2]], -2, axis=0) - np.roll(track.line[:, [0, 2]], 2, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    return np.column_stack((ahead[:, 1], -ahead[:, 0]))


def _weave(track: Track) -> Driver:
    """In waves over the right edge of the road."""
    along = np.arange(len(track.line)) * track.length / len(track.line)
    waves = max(1, round(track.length / WEAVE_LENGTH))
    offset = track.half_widths[1] + WEAVE_BEYOND + WEAVE_REACH * np.sin(2.0 * np.pi * waves * along / track.length)
    return _along(track, track.line[:, [0, 2]] + offset[:, None] * _rightwards(track), FAST)


def _circle_on_line(track: Track) -> Driver:
    x, _, z, yaw = track.starts[0]
    ahead = 12.0 * np.array([np.sin(yaw), np.cos(yaw)])
    index = np.argmin(((track.line[:, [0, 2]] - (x + ahead[0], z + ahead[1])) ** 2).sum(axis=1))
    return _along(track, _circle(track.line[index, 0], track.line[index, 2], CIRCLE_RADIUS), FAST)


def _circle_over_start(track: Track) -> Driver:
    x, z = (
        (track.start_lines[0, LINE_X], track.start_lines[0, LINE_Z])
        if len(track.start_lines)
        else track.starts[0, [0, 2]]
    )
    return _along(track, _circle(float(x), float(z) + CIRCLE_RADIUS, CIRCLE_RADIUS), FAST)


def _far_circle(track: Track) -> Driver:
    middle = track.line[:, [0, 2]].mean(axis=0)
    radius = float(np.hypot(*(track.line[:, [0, 2]] - middle).T).max()) + 12.0
    return _along(track, _circle(middle[0], middle[1], radius), FAST)


def _infield(track: Track) -> Driver:
    """From the start straight to the line's far side and back, again and again, round a long narrow loop."""
    x, _, z, _ = track.starts[0]
    nearest = int(np.argmin(((track.line[:, [0, 2]] - (x, z)) ** 2).sum(axis=1)))
    here = track.line[nearest, [0, 2]]
    far = track.line[(nearest + len(track.line) // 2) % len(track.line), [0, 2]]
    across = (far - here) / np.linalg.norm(far - here)
    aside = 2.0 * CIRCLE_RADIUS * np.array([across[1], -across[0]])
    return _along(track, np.array([here, far, far + aside, here + aside]), FAST)


@dataclass(frozen=True)
class Cheater:
    """An entry of the list."""

    description: str
    make: Callable[[Track], Driver]


CHEATERS: dict[str, Cheater] = {
    "still": Cheater("stands still", lambda track: Held(0.0, 0.0)),
    "weave": Cheater("weaves fast over the road's edge", _weave),
    "spin": Cheater("full lock and full throttle on the spot", lambda track: Held(1.0, 1.0)),
    "small_circle": Cheater("drives small circles about a point of the centre line", _circle_on_line),
    "start_line": Cheater("circles over the start line for its laps", _circle_over_start),
    "shuttle": Cheater("drives forth and back on a straight", lambda track: Shuttle()),
    "outside": Cheater(
        "laps the track beside the road",
        lambda track: PurePursuit(track, top_speed=FAST, target_offset=track.half_widths[1] + OUTSIDE),
    ),
    "far_circle": Cheater("drives one big circle far round the track", _far_circle),
    "grass": Cheater("leaves the road at full throttle and never comes back", lambda track: Held(0.25, 1.0)),
    "barrier": Cheater("straight ahead until its nose rests on something", lambda track: Held(0.0, 0.4)),
    "wall_slide": Cheater(
        "presses on along the wall beside the road",
        lambda track: PurePursuit(track, top_speed=FAST, target_offset=track.half_widths[1] + PRESSED),
    ),
    "infield": Cheater("cuts across the infield to the far side", _infield),
    "backwards": Cheater(
        "turns round and drives against the direction", lambda track: _along(track, track.line[::-1, [0, 2]], FAST)
    ),
}


def honest(track: Track) -> Driver:
    """A slow and clean lap."""
    return PurePursuit(track, top_speed=HONEST_SPEED)
