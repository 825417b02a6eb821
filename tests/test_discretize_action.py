"""The action grid: what each discrete action stands for."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rl_training.errors import ConfigError, SpaceError
from rl_training.wrappers.discretize_action import DiscretizedActionWrapper, action_grid, decode_action


def test_decode_action() -> None:
    assert decode_action(7, n_steer=5, n_throttle=3) == (0.0, 0.5)
    assert decode_action(0, n_steer=5, n_throttle=3) == (-1.0, 0.0)
    assert decode_action(14, n_steer=5, n_throttle=3) == (1.0, 1.0)
    assert decode_action(4, 3, 2, low=(-0.5, 0.2), high=(0.5, 0.6)) == (0.5, 0.2)


@pytest.mark.parametrize("action", [-1, 15])
def test_an_action_off_the_grid_is_refused(action: int) -> None:
    with pytest.raises(ConfigError, match="0 to 14"):
        decode_action(action, 5, 3)


def test_one_value_lies_in_the_middle() -> None:
    assert decode_action(1, 3, 1, low=(-1.0, 0.2), high=(1.0, 0.6)) == (0.0, pytest.approx(0.4))


@given(st.integers(1, 9), st.integers(1, 5))
def test_actions_are_distinct_and_symmetric_in_steering(n_steer: int, n_throttle: int) -> None:
    grid = action_grid(n_steer, n_throttle)
    assert len({tuple(row) for row in grid}) == n_steer * n_throttle
    mirrored = {(-steer, throttle) for steer, throttle in grid.round(12).tolist()}
    assert mirrored == {tuple(row) for row in grid.round(12).tolist()}


class Echo(gym.Env[Any, Any]):
    """Its observation is the action it was given."""

    observation_space = spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = spaces.Box(np.array([-0.5, 0.1], np.float32), np.array([0.5, 0.9], np.float32))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return action, 0.0, False, False, {}


def test_the_wrapper_spans_the_envs_own_ranges() -> None:
    env = DiscretizedActionWrapper(Echo(), 5, 3)
    assert env.action_space == spaces.Discrete(15)
    np.testing.assert_allclose(env.step(7)[0], [0.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(env.step(np.int64(14))[0], [0.5, 0.9], atol=1e-6)
    with pytest.raises(SpaceError, match="not on the grid"):
        env.step(15)
    with pytest.raises(SpaceError, match="only once"):
        DiscretizedActionWrapper(env, 5, 3)
