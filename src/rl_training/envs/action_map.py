"""What a policy's actions mean for the cars of a batch: ranges, grid and steering rate of an `ActionSpec`."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_training.envs.spec import ActionSpec
from rl_training.errors import UsageError
from rl_training.wrappers.discretize_action import action_grid

Floats = NDArray[np.float64]


class ActionMap:
    """From actions to controls (n, 3): steering, throttle, brake. The brake is never used."""

    def __init__(self, spec: ActionSpec, cars: int) -> None:
        self._low = np.array([-spec.steer_limit, spec.throttle_min])
        self._high = np.array([spec.steer_limit, spec.throttle_max])
        self._normalized = spec.normalized
        self._rate = spec.steer_rate
        self._grid = action_grid(spec.n_steer, spec.n_throttle, self._low, self._high) if spec.discrete else None
        self._asked: Floats = np.zeros((cars, 2))
        self.controls: Floats = np.zeros((cars, 3))
        self.space: spaces.Box | spaces.Discrete
        if self._grid is not None:
            self.space = spaces.Discrete(len(self._grid))
        elif spec.normalized:
            self.space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        else:
            self.space = spaces.Box(self._low.astype(np.float32), self._high.astype(np.float32))

    def begin(self, car: int) -> None:
        """A new episode: the wheels stand straight."""
        self.controls[car] = 0.0

    def ask(self, actions: NDArray[Any]) -> None:
        """Take one action for every car; `controls` follow at the next `tick`."""
        cars = len(self._asked)
        if self._grid is not None:
            chosen = np.asarray(actions, np.int64).reshape(-1)
            if len(chosen) != cars or chosen.min() < 0 or chosen.max() >= len(self._grid):
                raise UsageError(
                    f"The actions are {chosen.tolist()}; expected {cars}, each from 0 to {len(self._grid) - 1}."
                )
            self._asked[:] = self._grid[chosen]
            return
        asked = np.asarray(actions, np.float64)
        if asked.shape != (cars, 2):
            raise UsageError(f"The actions have the shape {asked.shape}; expected {(cars, 2)}: steering and throttle.")
        if not np.isfinite(asked).all():
            car = int(np.isfinite(asked).all(axis=1).argmin())
            raise UsageError(f"The action of car {car} is {asked[car].tolist()}; expected two finite numbers.")
        if self._normalized:
            asked = self._low + (asked + 1.0) * 0.5 * (self._high - self._low)
        np.clip(asked, self._low, self._high, out=self._asked)

    def tick(self) -> Floats:
        """The controls of the next control step; the steering moves no faster than its rate."""
        steering, asked = self.controls[:, 0], self._asked[:, 0]
        self.controls[:, 1] = self._asked[:, 1]
        if self._rate:
            asked = np.clip(asked, steering - self._rate, steering + self._rate)
        self.controls[:, 0] = asked
        return self.controls
