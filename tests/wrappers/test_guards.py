"""Guards: what ends an episode that leads nowhere, and what does not."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ConfigError
from rl_training.wrappers.guards import GuardWrapper

SMALL = ObservationSpec(32, 24, camera_width=32, camera_height=24)


def drive_until_it_ends(limits: Limits, action: tuple[float, float], skip: int = 1) -> tuple[int, dict[str, Any]]:
    spec = EnvSpec(observation=SMALL, limits=limits, frame_skip=skip, action=ActionSpec(throttle_min=-1.0))
    env = DonkeyVecEnv(spec, 2, seed=0)
    env.reset()
    for k in range(1, 400):
        _, _, done, infos = env.step(np.tile(action, (2, 1)).astype(np.float32))
        if done[0]:
            return k, infos[0]
    raise AssertionError("it never ended")


def test_a_car_that_does_not_move_is_stuck() -> None:
    steps, info = drive_until_it_ends(Limits(stuck_steps=40), (0.0, 0.0))
    assert (steps, info["end_cause"], info["TimeLimit.truncated"]) == (40, "stuck", False)


def test_limits_count_control_steps_also_when_frames_are_skipped() -> None:
    assert drive_until_it_ends(Limits(stuck_steps=40), (0.0, 0.0), skip=4)[0] == 10


def test_a_car_that_goes_backwards_makes_no_progress_but_is_not_stuck() -> None:
    steps, info = drive_until_it_ends(Limits(stuck_steps=40, no_progress_steps=60), (0.0, -0.3))
    assert (steps, info["end_cause"]) == (60, "no_progress")


def test_a_car_that_drives_on_meets_the_time_limit_alone() -> None:
    limits = Limits(stuck_steps=10, no_progress_steps=10, min_lap_seconds=5.0, max_steps=50)
    steps, info = drive_until_it_ends(limits, (0.0, 0.5))
    assert (steps, info["end_cause"], info["TimeLimit.truncated"]) == (50, "time_limit", True)


def test_a_guards_end_costs_what_a_crash_costs() -> None:
    env = DonkeyVecEnv(EnvSpec(observation=SMALL, reward="race", limits=Limits(stuck_steps=3)), 1, seed=0)
    env.reset()
    rewards = [float(env.step(np.zeros((1, 2), np.float32))[1][0]) for _ in range(3)]
    assert rewards == [0.0, 0.0, -5.0]


def test_wall_clock_truncates() -> None:
    steps, info = drive_until_it_ends(Limits(max_seconds=1e-6), (0.0, 0.1))
    assert (steps, info["end_cause"], info["TimeLimit.truncated"]) == (1, "wall_clock", True)


def test_a_rewards_own_end_is_named() -> None:
    env = DonkeyVecEnv(EnvSpec(observation=SMALL, reward="v7"), 1, seed=0)
    env.reset()
    for _ in range(100):
        _, _, done, infos = env.step(np.zeros((1, 2), np.float32))
        if done[0]:
            break
    assert infos[0]["end_cause"] == "reward"
    assert not infos[0]["TimeLimit.truncated"]


def test_impossible_limits_are_refused() -> None:
    with pytest.raises(ConfigError, match="stuck_steps"):
        Limits(stuck_steps=-1)


class Lapper(gym.Env[Any, Any]):
    """Drives on by 0.1 m a step; a lap of `lap_seconds` ends at step 5."""

    observation_space = action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, lap_seconds: float, step: float = 0.1) -> None:
        self.lap_seconds, self.step_size, self.count = lap_seconds, step, 0

    def _info(self) -> dict[str, Any]:
        place = self.step_size * self.count
        laps = int(self.count >= 5)
        return {"pos": (place, 0.0, 0.0), "furthest": place, "lap_count": laps, "last_lap_time": self.lap_seconds}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.count = 0
        return np.zeros(2, np.float32), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.zeros(2, np.float32), 1.0, False, False, self._info()


def end_of(env: gym.Env[Any, Any]) -> tuple[int, bool, bool, str]:
    env.reset()
    for k in range(1, 30):
        _, _, terminated, truncated, info = env.step(np.zeros(2, np.float32))
        if terminated or truncated:
            return k, terminated, truncated, info["end_cause"]
    return 0, False, False, ""


def test_the_wrapper_holds_the_same_guards_over_a_single_env() -> None:
    assert end_of(GuardWrapper(Lapper(1.5), Limits(min_lap_seconds=5.0))) == (5, True, False, "short_lap")
    assert end_of(GuardWrapper(Lapper(9.0), Limits(min_lap_seconds=5.0))) == (0, False, False, "")
    assert end_of(GuardWrapper(Lapper(9.0, step=0.0), Limits(stuck_steps=7))) == (7, True, False, "stuck")


def test_the_wrappers_clock_truncates_a_slow_simulator() -> None:
    now = iter(range(100))
    slow = GuardWrapper(Lapper(9.0), Limits(max_seconds=10.0), clock=lambda: float(next(now)))
    assert end_of(slow) == (11, False, True, "wall_clock")
