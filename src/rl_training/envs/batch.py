"""`DonkeyBatch`: many cars straight on the batched world, with no subprocess and no per-car Python on the hot path.

It knows episodes (tracks, starts, looks, rewards, ends) and nothing of who resets when: Gymnasium's vector env and
SB3's VecEnv wrap it with their own conventions. Each car has a generator of its own, so car i of a batch lives exactly
as a single env with the same seed does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from rl_training.envs.rules import donkey_reward, episode_over
from rl_training.envs.spec import EnvSpec
from rl_training.envs.stage import Stage
from rl_training.errors import ConfigError, UsageError, did_you_mean
from rl_training.simulator import state
from rl_training.simulator.state import METRE

REWARDS = ("donkey",)
END_OF_ROAD = 16.0  # an open road ends this far before its last point [u]

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


class DonkeyBatch:
    """`num_envs` cars, each in an arena of its own, living by one `EnvSpec`."""

    def __init__(self, spec: EnvSpec, num_envs: int, *, seed: int | None = None, threads: int = 1) -> None:
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; expected 1 or more.")
        if spec.reward not in REWARDS:
            raise ConfigError(f"There is no reward '{spec.reward}'.{did_you_mean(spec.reward, REWARDS)}")
        self.spec = spec
        self.num_envs = num_envs
        self.stage = Stage(spec, num_envs, threads=threads)
        self.world, self.camera = self.stage.world, self.stage.camera
        action = spec.action
        self._low = np.array([-action.steer_limit, action.throttle_min])
        self._high = np.array([action.steer_limit, action.throttle_max])
        self.action_space = (
            spaces.Box(-1.0, 1.0, (2,), np.float32)
            if action.normalized
            else spaces.Box(self._low.astype(np.float32), self._high.astype(np.float32))
        )
        self.observation_space = spaces.Box(0, 255, spec.observation.shape, np.uint8)
        self._rngs: list[np.random.Generator | None] = [None] * num_envs
        self._reseeded = np.zeros(num_envs, np.bool_)
        self._controls: Floats = np.zeros((num_envs, 3))
        self._lengths: Floats = np.full(num_envs, np.inf)  # of open roads; closed ones never end
        self.steps = np.zeros(num_envs, np.int64)  # control steps in the present episode
        self.returns: Floats = np.zeros(num_envs)
        self.hit: Flags = np.zeros(num_envs, np.bool_)
        self.seed(seed)

    def seed(self, seed: int | Sequence[int | None] | None) -> list[int]:
        """Seed all cars for their next reset: car i gets seed + i, or its own of a sequence."""
        seeds = (
            [None if seed is None else seed + i for i in range(self.num_envs)]
            if not isinstance(seed, Sequence)
            else seed
        )
        if len(seeds) != self.num_envs:
            raise UsageError(f"{len(seeds)} seeds were given for {self.num_envs} envs; expected one for each.")
        used: list[int] = []
        for i, value in enumerate(seeds):
            if value is not None or self._rngs[i] is None:
                self._rngs[i], drawn = seeding.np_random(value)
                self._reseeded[i] = value is not None
                used.append(drawn)
        return used

    # ---- episodes

    def reset(self, indices: Iterable[int] | None = None) -> None:
        """Begin a new episode in these cars, or in all."""
        for i in range(self.num_envs) if indices is None else indices:
            self._reset_one(int(i))

    def _reset_one(self, i: int) -> None:
        rng = self._rngs[i]
        assert rng is not None
        track = self.stage.begin(i, rng, bool(self._reseeded[i]))
        self._reseeded[i] = False
        self._lengths[i] = np.inf if track.closed else track.length - END_OF_ROAD
        self.steps[i] = 0
        self.returns[i] = 0.0
        self.hit[i] = False

    def advance(self, actions: NDArray[Any]) -> tuple[Floats, Flags, Flags]:
        """One action for every car: (rewards, terminated, truncated)."""
        if self.spec.action.normalized:
            actions = self._low + (np.asarray(actions, np.float64) + 1.0) * 0.5 * (self._high - self._low)
        np.clip(actions, self._low, self._high, out=self._controls[:, :2])
        self.hit[:] = False
        over: Flags = np.zeros(self.num_envs, np.bool_)
        limits = self.spec.limits
        cars = self.world.state
        for _ in range(self.spec.frame_skip):
            self.world.step(self._controls)
            self.hit |= cars[:, state.HIT] >= 0.0
            over |= episode_over(cars[:, state.CTE], self.hit, limits.max_cte, limits.end_on_hit)
        self.steps += self.spec.frame_skip
        rewards = donkey_reward(cars[:, state.FORWARD] / METRE, cars[:, state.CTE], over, limits.max_cte)
        self.returns += rewards
        truncated: Flags = cars[:, state.PROGRESS] > self._lengths
        if limits.max_steps:
            truncated |= self.steps >= limits.max_steps
        truncated &= ~over
        return rewards, over, truncated

    def observe(self, indices: NDArray[np.int64] | None = None) -> NDArray[np.uint8]:
        """Fresh frames of all cars, or of some; an array of its own that later steps leave alone."""
        return self.camera.observe(indices)

    # ---- what happened

    def episode_info(self, i: int) -> dict[str, Any]:
        """How the episode of car i stands, in gym-donkeycar's words where it has them."""
        car = self.world.state[i]
        track = self.world.track(i)
        return {
            "cte": float(car[state.CTE]),
            "speed": float(np.hypot(car[state.FORWARD], car[state.LATERAL])) / METRE,
            "forward_vel": float(car[state.FORWARD]) / METRE,
            "hit": self.world.hit_name(i),
            "track": track.name,
            "steps": int(self.steps[i]),
            "progress": float(car[state.PROGRESS]) / METRE,
            "furthest": float(car[state.FURTHEST]) / METRE,
            "laps": float(car[state.FURTHEST]) / track.length,
            "lap_count": int(car[state.LAPS]),
            "last_lap_time": float(car[state.LAST_LAP]),
        }

    def end_cause(self, i: int, terminated: bool) -> str:
        """Why the episode of car i ended."""
        if terminated:
            return f"hit {self.world.hit_name(i)}" if self.hit[i] else "off_road"
        return (
            "time_limit"
            if self.spec.limits.max_steps and self.steps[i] >= self.spec.limits.max_steps
            else "end_of_road"
        )

    def save_state(self) -> dict[str, Any]:
        """All that a later `load_state` needs to go on bit for bit: cars, generators, counters, frame history."""
        return {
            "world": self.world.save_state(),
            "camera": self.camera.save_state(),
            "rngs": [rng.bit_generator.state if rng is not None else None for rng in self._rngs],
            "tracks": [self.world.track(i).name for i in range(self.num_envs)],
            "steps": self.steps.copy(),
            "returns": self.returns.copy(),
        }

    def close(self) -> None:
        """Release the world."""
        self.world.close()
