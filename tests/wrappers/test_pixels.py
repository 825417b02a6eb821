"""Rendered observations: shape, order of the stack, repeated actions, on an env whose pictures are easy to tell."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from rl_training.errors import SpaceError
from rl_training.wrappers.pixels import PixelObservation


class Counter(gym.Env[Any, Any]):
    """Its picture is as bright as the number of steps, red twice that; ends after five."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = spaces.Box(0, 9, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode: str | None = "rgb_array") -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.zeros(1), float(self.steps), self.steps >= 5, False, {}

    def render(self) -> Any:
        return np.full((30, 30, 3), (2 * self.steps, self.steps, self.steps), np.uint8)


def test_the_newest_picture_is_last_and_the_first_fills_the_stack() -> None:
    env = PixelObservation(Counter(), size=12, grey=False, stack=2)
    first, _ = env.reset()
    assert first.shape == (6, 12, 12) == env.observation_space.shape
    assert first.max() == 0
    env.step(0)
    second = env.step(0)[0]
    np.testing.assert_array_equal(second[:, 5, 5], [2, 1, 1, 4, 2, 2])


def test_repeated_actions_sum_their_rewards_and_stop_at_the_end() -> None:
    env = PixelObservation(Counter(), size=8, stack=1, action_repeat=3)
    env.reset()
    _, reward, terminated, _, _ = env.step(0)
    assert (reward, terminated) == (1.0 + 2.0 + 3.0, False)
    _, reward, terminated, _, _ = env.step(0)
    assert (reward, terminated) == (4.0 + 5.0, True)


def test_an_env_that_draws_nothing_is_refused() -> None:
    with pytest.raises(SpaceError, match="render_mode='rgb_array'"):
        PixelObservation(Counter(render_mode=None))
