"""Action grids, floors and steering rates in the batch."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ConfigError
from rl_training.simulator import state

SMALL = ObservationSpec(32, 24, camera_width=32, camera_height=24)


def make(action: ActionSpec, cars: int = 1, skip: int = 1) -> DonkeyVecEnv:
    env = DonkeyVecEnv(EnvSpec(observation=SMALL, action=action, frame_skip=skip, limits=Limits()), cars, seed=0)
    env.reset()
    return env


def test_a_grid_action_is_the_continuous_one_it_stands_for() -> None:
    grid = make(ActionSpec(n_steer=5, n_throttle=3), cars=2)
    plain = make(ActionSpec(), cars=2)
    assert grid.action_space == spaces.Discrete(15)
    for _ in range(5):
        grid.step(np.array([7, 14]))
        plain.step(np.array([[0.0, 0.5], [1.0, 1.0]], np.float32))
    np.testing.assert_array_equal(grid.batch.world.state, plain.batch.world.state)


def test_the_grid_spans_the_specs_bounds() -> None:
    env = make(ActionSpec(steer_limit=0.5, throttle_min=0.2, throttle_max=0.6, n_steer=3, n_throttle=2), cars=2)
    env.step(np.array([0, 5]))
    np.testing.assert_allclose(env.batch.world.state[:, [state.STEER, state.THROTTLE]], [[-0.5, 0.2], [0.5, 0.6]])


def test_the_throttle_floor_moves_a_car_that_asks_for_nothing() -> None:
    env = make(ActionSpec(throttle_min=0.3))
    for _ in range(20):
        env.step(np.array([[0.0, 0.0]], np.float32))
    assert env.batch.world.state[0, state.FORWARD] > 1.0


def test_the_steering_moves_no_faster_than_its_rate() -> None:
    env = make(ActionSpec(steer_rate=0.3))
    seen = []
    for asked in (1.0, 1.0, 1.0, 1.0, -1.0):
        env.step(np.array([[asked, 0.0]], np.float32))
        seen.append(float(env.batch.world.state[0, state.STEER]))
    np.testing.assert_allclose(seen, [0.3, 0.6, 0.9, 1.0, 0.7])
    env.reset()
    env.step(np.array([[-1.0, 0.0]], np.float32))
    assert env.batch.world.state[0, state.STEER] == pytest.approx(-0.3)


def test_the_rate_is_for_each_control_step_of_a_longer_one() -> None:
    env = make(ActionSpec(steer_rate=0.1), skip=3)
    env.step(np.array([[1.0, 0.0]], np.float32))
    assert env.batch.world.state[0, state.STEER] == pytest.approx(0.3)


def test_a_hit_in_the_first_of_several_control_steps_is_not_forgotten() -> None:
    hits = []
    for skip in (1, 5):
        spec = EnvSpec(("mini_monaco",), SMALL, limits=Limits(max_cte=1e9), frame_skip=skip)
        env = DonkeyVecEnv(spec, 1, seed=0)
        env.reset()
        for _ in range(400):
            _, _, done, infos = env.step(np.array([[0.0, 0.6]], np.float32))
            if done[0]:
                break
        hits.append(infos[0]["end_cause"])
    assert hits[0].startswith("hit ")
    assert hits[1] == hits[0] != "hit none"


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_steer": 5},
        {"n_throttle": 3},
        {"steer_limit": 0.0},
        {"throttle_min": 0.5, "throttle_max": 0.2},
        {"steer_rate": -1.0},
    ],
)
def test_impossible_actions_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        ActionSpec(**wrong)  # type: ignore[arg-type]
