"""`Moment`: what rewards and guards see of the cars after one step of an env, in a batch or one alone.

Arrays hold one value a car. Lengths and speeds are in metres of telemetry (world units / 8) as in `info`; cte, offset
and road edges are in world units u as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator import state as s
from rl_training.simulator.state import METRE

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

UNKNOWN_EDGE = 5.0  # half a road's width where a simulator does not tell it [u]


@dataclass
class Moment:
    """The cars just after a step. `cars` has the columns of `simulator.state`."""

    cars: Floats
    edges: Floats  # (n, 2) offsets of the road's left and right edge
    seconds: float  # simulated time of one step of the env
    max_cte: float
    crashed: Flags  # left the road, hit something or was ended by a guard
    lap_seconds: Floats  # time of a lap from start line to start line that ended in this step, else 0

    @property
    def position(self) -> Floats:
        """Place on the ground plane, (n, 2)."""
        place: Floats = self.cars[:, [s.X, s.Z]] / METRE
        return place

    @property
    def forward(self) -> Floats:
        """Speed along the nose, negative in reverse."""
        speed: Floats = self.cars[:, s.FORWARD] / METRE
        return speed

    @property
    def speed(self) -> Floats:
        """Speed, whatever the direction."""
        speed: Floats = np.hypot(self.cars[:, s.FORWARD], self.cars[:, s.LATERAL]) / METRE
        return speed

    @property
    def furthest(self) -> Floats:
        """Greatest distance along the track's line since the episode began."""
        furthest: Floats = self.cars[:, s.FURTHEST] / METRE
        return furthest

    @property
    def closeness(self) -> Floats:
        """1 on the line, falling to 0 at `max_cte` and staying there."""
        share: Floats = 1.0 - np.minimum(np.abs(self.cars[:, s.CTE]) / self.max_cte, 1.0)
        return share

    @property
    def beyond_edge(self) -> Floats:
        """How far a car's middle is off the road [u]; 0 on it."""
        offset = self.cars[:, s.OFFSET]
        beyond: Floats = np.maximum(np.maximum(self.edges[:, 0] - offset, offset - self.edges[:, 1]), 0.0)
        return beyond

    @property
    def hit(self) -> Flags:
        """Touched something anew in this step."""
        anew: Flags = self.cars[:, s.HIT] >= 0.0
        return anew

    @property
    def touching(self) -> Flags:
        """In contact with something."""
        contact: Flags = self.cars[:, s.TOUCHING] >= 0.0
        return contact


class StartLineClock:
    """Times laps from start line to start line as gym-donkeycar does; circling over the line makes short ones."""

    def __init__(self, cars: int) -> None:
        self._line = np.full(cars, -1.0)
        self._since = np.zeros(cars)
        self.lap_seconds: Floats = np.zeros(cars)

    def begin(self, car: int) -> None:
        """A new episode: the clock starts at the first crossing."""
        self._line[car] = -1.0
        self.lap_seconds[car] = 0.0

    def tick(self, cars: Floats) -> None:
        """After each control step."""
        crossed = cars[:, s.LINE_EVENT]
        if not (crossed >= 0.0).any():
            return
        now = cars[:, s.LINE_TIME]
        lap = (crossed >= 0.0) & (crossed == self._line)
        first = (crossed >= 0.0) & (self._line < 0.0)
        self.lap_seconds[lap] = now[lap] - self._since[lap]
        self._line[first] = crossed[first]
        self._since[lap | first] = now[lap | first]

    def clear(self) -> None:
        """Before each step of the env."""
        self.lap_seconds[:] = 0.0


def moment_of_info(info: Mapping[str, Any], *, seconds: float, max_cte: float, crashed: bool) -> Moment:
    """The same of one car's `info`, whichever simulator sent it. A lap is told by `lap_count` elsewhere."""
    car = np.zeros((1, s.STATE_COLUMNS))
    position = info.get("pos", (0.0, 0.0, 0.0))
    speed = float(info.get("speed", 0.0))
    forward = float(info.get("forward_vel", speed))
    car[0, s.X], car[0, s.Z] = position[0] * METRE, position[2] * METRE
    car[0, s.FORWARD] = forward * METRE
    car[0, s.LATERAL] = np.sqrt(max(speed**2 - forward**2, 0.0)) * METRE
    car[0, s.CTE] = float(info.get("cte", 0.0))
    car[0, s.OFFSET] = float(info.get("offset", car[0, s.CTE]))
    car[0, s.HIT] = car[0, s.TOUCHING] = 0.0 if info.get("hit", "none") != "none" else -1.0
    car[0, s.FURTHEST] = float(info.get("furthest", 0.0)) * METRE
    edges = np.array([[-UNKNOWN_EDGE, UNKNOWN_EDGE]])
    return Moment(car, edges, seconds, max_cte, np.array([crashed]), np.zeros(1))
