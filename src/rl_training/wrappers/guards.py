"""Guards end episodes that lead nowhere: a car that does not move, makes no progress or farms the start line, and a
simulator so slow that a limit in steps would last for minutes.

Being stuck or without progress and a short lap terminate, as a crash does; running out of wall-clock time truncates.
`GuardWrapper` holds the same rules over any env whose `info` has gym-donkeycar's keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rl_training.envs.spec import Limits
from rl_training.simulator import state as s
from rl_training.wrappers.moment import Flags, Floats, Moment, moment_of_info

MOVED = 0.05  # a car that stays within this distance of where it was does not move [m]
ADVANCED = 0.01  # new progress smaller than this is none [m]
CONTROL_STEP = 0.05  # [s]


class Cause(IntEnum):
    """Why a guard ended an episode; the names in lower case are what `info["end_cause"]` says."""

    NONE = 0
    STUCK = 1
    NO_PROGRESS = 2
    SHORT_LAP = 3


class Guards:
    """The guards of a batch. `limits` counts in control steps, of which a step of the env takes `frame_skip`."""

    def __init__(self, limits: Limits, cars: int, frame_skip: int = 1) -> None:
        self.limits = limits
        self._skip = frame_skip
        self._place = np.zeros((cars, 2))
        self._still = np.zeros(cars, np.int64)
        self._furthest = np.zeros(cars)
        self._idle = np.zeros(cars, np.int64)

    def begin(self, car: int, cars: Floats) -> None:
        """A new episode of one car, which stands at its start."""
        self._place[car] = cars[car, [s.X, s.Z]] / s.METRE
        self._furthest[car] = cars[car, s.FURTHEST] / s.METRE
        self._still[car] = self._idle[car] = 0

    def check(self, moment: Moment) -> NDArray[np.int8]:
        """A `Cause` for each car."""
        limits = self.limits
        causes: NDArray[np.int8] = np.zeros(len(moment.cars), np.int8)
        if limits.stuck_steps:
            causes[self._stuck(moment)] = Cause.STUCK
        if limits.no_progress_steps:
            causes[self._no_progress(moment)] = Cause.NO_PROGRESS
        if limits.min_lap_seconds:
            lap = moment.lap_seconds
            causes[(lap > 0.0) & (lap < limits.min_lap_seconds)] = Cause.SHORT_LAP
        return causes

    def _stuck(self, moment: Moment) -> Flags:
        place = moment.position
        moved = ((place - self._place) ** 2).sum(axis=1) > MOVED**2
        self._place[moved] = place[moved]
        self._still = np.where(moved, 0, self._still + self._skip)
        return self._still >= self.limits.stuck_steps

    def _no_progress(self, moment: Moment) -> Flags:
        furthest = moment.furthest
        advanced = furthest > self._furthest + ADVANCED
        self._furthest[advanced] = furthest[advanced]
        self._idle = np.where(advanced, 0, self._idle + self._skip)
        return self._idle >= self.limits.no_progress_steps


class GuardWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """The same guards over one env; `Limits.max_cte`, `end_on_hit` and `max_steps` are left to the env itself."""

    def __init__(self, env: gym.Env[Any, Any], limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(env)
        self._guards = Guards(limits, 1)
        self._clock = clock
        self._laps = 0
        self._started = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode, with a new clock."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._guards.begin(0, self._moment(info).cars)
        self._laps = int(info.get("lap_count", 0))
        self._started = self._clock()
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step, which a guard may make the last."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        moment = self._moment(info)
        laps = int(info.get("lap_count", 0))
        if laps > self._laps:
            moment.lap_seconds[0] = float(info.get("last_lap_time", 0.0))
        self._laps = laps
        cause = Cause(int(self._guards.check(moment)[0]))
        if terminated or truncated:
            return observation, reward, terminated, truncated, info
        limit = self._guards.limits.max_seconds
        if cause is not Cause.NONE:
            terminated, info["end_cause"] = True, cause.name.lower()
        elif limit and self._clock() - self._started > limit:
            truncated, info["end_cause"] = True, "wall_clock"
        return observation, reward, terminated, truncated, info

    def _moment(self, info: dict[str, Any]) -> Moment:
        return moment_of_info(info, seconds=CONTROL_STEP, max_cte=self._guards.limits.max_cte, crashed=False)
