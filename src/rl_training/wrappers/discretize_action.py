"""A grid of discrete actions over steering and throttle, for agents such as DQN.

Action ``a`` of an ``n_steer`` × ``n_throttle`` grid stands for steering value ``a // n_throttle`` and throttle value
``a % n_throttle``, each evenly spread from its lowest to its highest. With 5 × 3 over steering -1…1 and throttle 0…1,
action 7 is steering value 2 of 5 = 0.0 and throttle value 1 of 3 = 0.5.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rl_training.errors import ConfigError, SpaceError

STEER_THROTTLE_LOW = (-1.0, 0.0)
STEER_THROTTLE_HIGH = (1.0, 1.0)


def action_grid(
    n_steer: int, n_throttle: int, low: ArrayLike = STEER_THROTTLE_LOW, high: ArrayLike = STEER_THROTTLE_HIGH
) -> NDArray[np.float64]:
    """Row a is what action a stands for: (steering, throttle). One value alone lies in the middle of its range."""
    if n_steer < 1 or n_throttle < 1:
        raise ConfigError(f"An action grid of {n_steer} x {n_throttle} has no actions; expected 1 or more of each.")
    lowest, highest = np.asarray(low, np.float64), np.asarray(high, np.float64)
    steering, throttle = (
        np.linspace(lowest[k], highest[k], count) if count > 1 else np.array([0.5 * (lowest[k] + highest[k])])
        for k, count in enumerate((n_steer, n_throttle))
    )
    return np.column_stack((np.repeat(steering, n_throttle), np.tile(throttle, n_steer)))


def decode_action(
    action: int,
    n_steer: int,
    n_throttle: int,
    low: ArrayLike = STEER_THROTTLE_LOW,
    high: ArrayLike = STEER_THROTTLE_HIGH,
) -> tuple[float, float]:
    """(steering, throttle) of a discrete action."""
    grid = action_grid(n_steer, n_throttle, low, high)
    if not 0 <= action < len(grid):
        raise ConfigError(
            f"Action {action} is not on a grid of {n_steer} x {n_throttle}; expected 0 to {len(grid) - 1}."
        )
    steering, throttle = grid[action]
    return float(steering), float(throttle)


class DiscretizedActionWrapper(gym.ActionWrapper[Any, Any, Any]):
    """Makes a two-dimensional Box action space, steering and throttle, a `Discrete` one."""

    def __init__(self, env: gym.Env[Any, Any], n_steer: int, n_throttle: int) -> None:
        super().__init__(env)
        box = env.action_space
        if not isinstance(box, spaces.Box) or box.shape != (2,):
            raise SpaceError(
                f"DiscretizedActionWrapper needs a Box of steering and throttle, but this env's actions are {box}; "
                "use it on a donkey env, and only once."
            )
        self._grid = action_grid(n_steer, n_throttle, box.low, box.high).astype(box.dtype)
        self.action_space = spaces.Discrete(len(self._grid))

    def action(self, action: Any) -> NDArray[Any]:
        """Steering and throttle of a grid action."""
        if not self.action_space.contains(action):
            raise SpaceError(f"Action {action!r} is not on the grid; expected 0 to {len(self._grid) - 1}.")
        chosen: NDArray[Any] = self._grid[int(action)].copy()
        return chosen
