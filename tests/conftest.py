"""Small environments that several tests learn from."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray


class Walk(gym.Env[Any, Any]):
    """A point that moves by its action; an episode ends when it is far away and is cut after ``limit`` steps."""

    def __init__(self, discrete: bool = False, limit: int = 7) -> None:
        self.observation_space = Box(-10, 10, (3,), np.float32)
        self.action_space = Discrete(2) if discrete else Box(-1.0, 1.0, (1,), np.float32)
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.time = float(self.np_random.uniform(-1, 1)), 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        self.last_action = action
        self.place += 2.0 * float(action) - 1.0 if isinstance(self.action_space, Discrete) else float(action[0])
        self.time += 1
        ended = abs(self.place) > 2.0
        return self._observation(), 1.0 - abs(self.place), ended, self.time >= self.limit and not ended, {}

    def _observation(self) -> NDArray[Any]:
        return np.array([self.place, self.time / self.limit, 1.0], np.float32)


class Brightness(gym.Env[Any, Any]):
    """Say how bright the image is: the reward is minus the squared error; images roll through a stack of two."""

    def __init__(self, discrete: bool = False, limit: int = 6, size: int = 28) -> None:
        self.observation_space = Box(0, 255, (2, size, size), np.uint8)
        self.action_space = Discrete(2) if discrete else Box(-1.0, 1.0, (1,), np.float32)
        self.limit, self.size = limit, size

    def _frame(self) -> NDArray[Any]:
        self.level = float(self.np_random.uniform(-1, 1))
        noise = self.np_random.integers(-20, 21, (1, self.size, self.size))
        frame: NDArray[Any] = (128 + 100 * self.level + noise).astype(np.uint8)
        return frame

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.time, self.stack = 0, np.repeat(self._frame(), 2, axis=0)
        return self.stack, {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        said = 2.0 * float(action) - 1.0 if isinstance(self.action_space, Discrete) else float(action[0])
        reward = -((said - self.level) ** 2)
        self.time += 1
        self.stack = np.concatenate([self.stack[1:], self._frame()])
        return self.stack, reward, False, self.time >= self.limit, {}


@pytest.fixture
def walk() -> type[Walk]:
    return Walk


@pytest.fixture
def brightness() -> type[Brightness]:
    return Brightness


@pytest.fixture(autouse=True)
def one_torch_thread() -> None:
    """Small networks are faster on one thread, and their sums come in one order."""
    import torch

    torch.set_num_threads(1)
