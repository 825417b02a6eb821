"""Pendulum from pixels: the recipe with which DrQ and DrQ-v2 solve it, and the runs that say how long it takes.

Frames are 48×48, grey, cut close around the pendulum, three in a stack, and each decision lasts two steps of the
environment. Rewards are divided by ten: a return is then a few tens instead of a few hundreds, which is what an entropy
coefficient near 0.1 and a learning rate of 5e-4 suit. A random policy earns about -1200; -250 counts as solved.
"""

from __future__ import annotations

import os
import time
from typing import Any

import cv2
import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

import rl_training

Array = NDArray[Any]
SIZE, STACK, REPEAT, REWARD_SCALE = 48, 3, 2, 0.1
SOLVED = -250.0
COMMON: dict[str, Any] = {
    "learning_rate": 5e-4,
    "batch_size": 128,
    "gamma": 0.98,
    "buffer_size": 50_000,
    "learning_starts": 1_000,
    "frame_stack": STACK,
    "device": "cpu",
}
RECIPES: dict[str, dict[str, Any]] = {
    "DrQ": {**COMMON, "ent_coef": "auto_0.1", "policy_kwargs": {"share_encoder": True}},
    "DrQv2": {
        **COMMON,
        "train_freq": 1,
        "n_steps": 3,
        "noise": (1.0, 0.1, 6_000),
        "policy_kwargs": {"encoder": "nature"},
    },
}


class PixelPendulum(gym.Wrapper[Array, Array, Any, Any]):
    """Pendulum-v1 seen; ``earned`` is the return of the episode in the environment's own rewards."""

    def __init__(self) -> None:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        super().__init__(gym.make("Pendulum-v1", render_mode="rgb_array"))
        self.observation_space = Box(0, 255, (STACK, SIZE, SIZE), np.uint8)
        self.action_space = Box(-1.0, 1.0, (1,), np.float32)

    def _frame(self) -> Array:
        picture = np.asarray(self.env.render())[95:405, 95:405]
        grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
        return cv2.resize(grey, (SIZE, SIZE), interpolation=cv2.INTER_AREA)[None]

    def reset(self, **kwargs: Any) -> tuple[Array, dict[str, Any]]:
        self.env.reset(**kwargs)
        self.earned = 0.0
        self.stack = np.repeat(self._frame(), STACK, axis=0)
        return self.stack, {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward, truncated = 0.0, False
        for _ in range(REPEAT):
            _, one, _, truncated, _ = self.env.step(2.0 * np.asarray(action))
            reward += float(one)
            if truncated:
                break
        self.earned += reward
        self.stack = np.concatenate([self.stack[1:], self._frame()])
        return self.stack, REWARD_SCALE * reward, False, truncated, {}


def mean_return(model: Any, episodes: int = 10) -> float:
    """The mean return of deterministic episodes, in the environment's own rewards."""
    env, returns = PixelPendulum(), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 + episode)
        ended = False
        while not ended:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, _, ended, _ = env.step(action)
        returns.append(env.earned)
    return float(np.mean(returns))


def solve(
    algorithm: str, seed: int, precision: str = "auto", limit: int = 10_000, every: int = 1_000
) -> dict[str, Any]:
    """Train until an evaluation counts as solved, or ``limit`` decisions; evaluations are not in the seconds."""
    model = getattr(rl_training, algorithm)(
        "CnnPolicy", PixelPendulum(), seed=seed, precision=precision, **RECIPES[algorithm]
    )
    cpu = wall = 0.0
    earned: list[float] = []
    while model.num_timesteps < limit:
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        model.learn(every, reset_num_timesteps=False)
        cpu, wall = cpu + time.process_time() - cpu_start, wall + time.perf_counter() - wall_start
        if model.num_timesteps < 3 * every:
            continue
        earned.append(mean_return(model))
        if earned[-1] >= SOLVED:
            break
    return {
        "algorithm": algorithm,
        "seed": seed,
        "precision": precision,
        "return": earned[-1],
        "solved": earned[-1] >= SOLVED,
        "env_steps": REPEAT * model.num_timesteps,
        "updates": model._n_updates,
        "cpu_minutes": cpu / 60,
        "wall_minutes": wall / 60,
    }
