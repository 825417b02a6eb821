"""A Gymnasium env seen through its own rendered pictures: render, resize, stack; channel first, uint8."""

from __future__ import annotations

from typing import Any

import cv2
import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_training.errors import SpaceError

Images = NDArray[np.uint8]


class PixelObservation(gym.Wrapper[Images, Any, Any, Any]):
    """Observations ``(stack × channels, size, size)``, the newest picture last; the first fills the whole stack.

    With ``action_repeat`` each action is held for so many steps, whose rewards are summed, and drawn once.
    """

    def __init__(
        self, env: gym.Env[Any, Any], size: int = 64, grey: bool = True, stack: int = 3, action_repeat: int = 1
    ) -> None:
        super().__init__(env)
        if env.render_mode != "rgb_array":
            raise SpaceError(
                f"{env} is made with render_mode={env.render_mode!r}; pictures need render_mode='rgb_array'."
            )
        self.size, self.grey, self.stack, self.action_repeat = size, grey, stack, action_repeat
        self._channels = 1 if grey else 3
        shape = (stack * self._channels, size, size)
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        self._pictures: Images = np.zeros(shape, np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Images, dict[str, Any]]:
        _, info = self.env.reset(seed=seed, options=options)
        self._pictures = np.tile(self._picture(), (self.stack, 1, 1))
        return self._pictures, info

    def step(self, action: Any) -> tuple[Images, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self.action_repeat):
            _, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        self._pictures = np.concatenate([self._pictures[self._channels :], self._picture()])
        return self._pictures, total, terminated, truncated, info

    def _picture(self) -> Images:
        """The present picture, ``(channels, size, size)``."""
        drawn = np.asarray(self.env.render())
        if self.grey:
            drawn = cv2.cvtColor(drawn, cv2.COLOR_RGB2GRAY)
        small = cv2.resize(drawn, (self.size, self.size), interpolation=cv2.INTER_AREA)
        planes = small[None] if self.grey else np.moveaxis(small, -1, 0)
        return np.ascontiguousarray(planes, np.uint8)
