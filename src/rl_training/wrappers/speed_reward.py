"""Rewards for a single env, from what its `info` tells: the specification's speed reward, and any of `REWARDS`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rl_training.errors import UsageError
from rl_training.wrappers.moment import moment_of_info
from rl_training.wrappers.rewards import CRASH, make_reward

MAX_CTE = 8.0


class SpeedRewardWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """speed × (1 - min(|cte| / max_cte, 1)), and `crash` when the episode terminates.

    Where `info` lacks ``speed`` or ``cte`` the env's own reward is passed on; it is always in ``info["env_reward"]``.
    """

    def __init__(self, env: gym.Env[Any, Any], max_cte: float = MAX_CTE, crash: float = CRASH) -> None:
        super().__init__(env)
        if max_cte <= 0.0:
            raise UsageError(f"max_cte is {max_cte}; expected a distance above 0.")
        self._max_cte = max_cte
        self._crash = crash

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step with the reward replaced."""
        observation, own, terminated, truncated, info = self.env.step(action)
        info = {**info, "env_reward": own}
        speed, cte = info.get("speed"), info.get("cte")
        if speed is None or cte is None:
            return observation, own, terminated, truncated, info
        closeness = 1.0 - min(abs(float(cte)) / self._max_cte, 1.0)
        reward = self._crash if terminated else float(speed) * closeness
        return observation, reward, terminated, truncated, info


class RewardWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Any named reward over one env, for simulators at the end of a socket; batches have it built in.

    `race` and `v7` need the progress that our simulators tell. The Unity one tells none; use `speed` there.
    """

    def __init__(self, env: gym.Env[Any, Any], reward: str, max_cte: float = MAX_CTE, seconds: float = 0.05) -> None:
        super().__init__(env)
        self._reward = make_reward(reward, 1)
        self._needs_progress = reward in ("race", "v7")
        self._name = reward
        self._max_cte = max_cte
        self._seconds = seconds
        self._laps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        if self._needs_progress and "furthest" not in info:
            raise UsageError(f"Reward '{self._name}' needs the progress along the track, which this env does not tell; "
                             "use 'speed' or 'donkey'.")  # fmt: skip
        moment = moment_of_info(info, seconds=self._seconds, max_cte=self._max_cte, crashed=False)
        self._reward.begin(0, moment.cars)
        self._laps = int(info.get("lap_count", 0))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step with the reward replaced; a reward may end the episode."""
        observation, own, terminated, truncated, info = self.env.step(action)
        moment = moment_of_info(info, seconds=self._seconds, max_cte=self._max_cte, crashed=terminated)
        laps = int(info.get("lap_count", 0))
        if laps > self._laps:
            moment.lap_seconds[0] = float(info.get("last_lap_time", 0.0))
        self._laps = laps
        rewards, ended = self._reward(moment)
        info = {**info, "env_reward": own}
        if ended[0] and not (terminated or truncated):
            terminated, info["end_cause"] = True, "reward"
        return observation, float(rewards[0]), terminated, truncated, info
