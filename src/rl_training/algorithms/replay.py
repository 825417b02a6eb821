"""Replay for images: every frame is stored once, as uint8, and stacks are put together when a batch is drawn.

Observations are channel-first stacks ``(k·C, H, W)`` of the last ``k = frame_stack`` frames of ``C`` channels, the
newest last; ``k = 1`` stores whole observations, still once instead of twice. Each environment owns a ring of ``F``
frames and numbers them from 0 upwards; frame number ``i`` lies at ``i % F``. The first observation of an episode
writes all of its ``k`` frames, each later one writes its newest, so any padding of the first stack is kept as it was.
A transition knows the number ``newest`` of its observation's last frame; its next observation ends at ``newest + 1``.

Where episodes are very short, their first frames fill the ring before the transitions do, and the oldest transitions
are dropped early. With ``n_steps > 1`` a sample looks up to that many steps ahead, never past the end of an episode:
``rewards`` is the discounted sum, ``discounts`` is γ to the number of steps taken. A time limit is not an end: its
``dones`` is 0 and the value of the last observation counts. Rewards are stored as they came and drawn times
``reward_scale``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import Space
from gymnasium.spaces import Box
from numpy.typing import NDArray
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from rl_training.errors import ConfigError, SpaceError

Array = NDArray[Any]
#: Frames beyond one for each transition, as a share: room for the first stacks of episodes of ordinary length.
SPARE_FRAMES = 1 / 20


class ImageReplayBuffer(ReplayBuffer):
    """A drop-in for stable-baselines3's ``ReplayBuffer`` on images, for DrQ, DrQ-v2, SAC and DQN."""

    def __init__(
        self,
        buffer_size: int,
        observation_space: Space[Any],
        action_space: Space[Any],
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        *,
        frame_stack: int = 1,
        n_steps: int = 1,
        gamma: float = 0.99,
        reward_scale: float = 1.0,
    ) -> None:
        # Not ReplayBuffer's own, which would allocate two stacks for each transition.
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        del optimize_memory_usage  # this buffer always does
        if not isinstance(observation_space, Box) or len(observation_space.shape) != 3:
            raise SpaceError(f"ImageReplayBuffer stores images (channels, height, width), not {observation_space}.")
        channels, height, width = observation_space.shape
        if channels % frame_stack:
            raise ConfigError(
                f"Images of {channels} channels are no stack of {frame_stack} frames; set frame_stack to a divisor."
            )
        self.frame_stack, self.frame_channels = frame_stack, channels // frame_stack
        self.n_steps, self.gamma, self.reward_scale = n_steps, gamma, reward_scale
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.n_frames = int(self.buffer_size * (1 + SPARE_FRAMES)) + 2 * (frame_stack + 1)
        self.frames = np.zeros((n_envs, self.n_frames, self.frame_channels, height, width), observation_space.dtype)
        size = (self.buffer_size, n_envs)
        self.newest = np.zeros(size, np.int64)
        self.starts = np.zeros(size, bool)
        self.actions = np.zeros((*size, self.action_dim), self._maybe_cast_dtype(action_space.dtype))
        self.rewards = np.zeros(size, np.float32)
        self.dones = np.zeros(size, np.float32)
        self.added = 0  # transitions of each environment since the beginning
        self.oldest = np.zeros(n_envs, np.int64)  # the first of them whose frames are all still there
        self.written = np.zeros(n_envs, np.int64)  # frames of each environment since the beginning
        self.last_seen = np.zeros((n_envs, *self.obs_shape), observation_space.dtype)
        self.ended = np.ones(n_envs, bool)  # whether what was last seen was the end of an episode

    def add(
        self, obs: Array, next_obs: Array, action: Array, reward: Array, done: Array, infos: list[dict[str, Any]]
    ) -> None:
        """Store one transition of every environment; one that does not go on from the last begins an episode."""
        starts = self.ended | (obs != self.last_seen).any(axis=(1, 2, 3))
        for env in np.flatnonzero(starts):
            for frame in obs[env].reshape(self.frame_stack, self.frame_channels, *obs.shape[2:]):
                self.frames[env, self.written[env] % self.n_frames] = frame
                self.written[env] += 1
        self._require_rolling(obs, next_obs)
        every = np.arange(self.n_envs)
        self.newest[self.pos] = self.written - 1
        self.frames[every, self.written % self.n_frames] = next_obs[:, -self.frame_channels :]
        self.written += 1

        timeouts = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        self.starts[self.pos] = starts
        self.actions[self.pos] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[self.pos] = reward
        self.dones[self.pos] = np.logical_and(done, ~timeouts)
        self.last_seen[:] = next_obs
        self.ended[:] = done
        self.added += 1
        self.pos = self.added % self.buffer_size
        self.full = self.added >= self.buffer_size
        self._forget_overwritten()

    def _require_rolling(self, obs: Array, next_obs: Array) -> None:
        """Early on, make sure that an observation is the one before it moved on by a frame."""
        shared = obs.shape[1] - self.frame_channels
        if self.added < 8 and not np.array_equal(obs[:, self.frame_channels :], next_obs[:, :shared]):
            raise SpaceError(
                f"These observations are not the last {self.frame_stack} frames of {self.frame_channels} channels, "
                "newest last; set frame_stack to how many frames the environment stacks, or to 1."
            )

    def _forget_overwritten(self) -> None:
        """Move ``oldest`` past transitions that lost their place or a frame of theirs."""
        np.maximum(self.oldest, self.added - self.buffer_size, out=self.oldest)
        every = np.arange(self.n_envs)
        while True:
            first_frame = self.newest[self.oldest % self.buffer_size, every] - self.frame_stack + 1
            lost = (first_frame < self.written - self.n_frames) & (self.oldest < self.added - 1)
            if not lost.any():
                return
            self.oldest += lost

    def size(self) -> int:
        """Transitions that can be drawn, of the environment with the fewest."""
        return int(self.added - self.oldest.max())

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Transitions drawn evenly, first the environment and then the step; draws come from torch's generator."""
        if env is not None and env.norm_obs:
            raise ConfigError("Images are normalised by the encoder; wrap the environment with norm_obs=False.")
        envs = torch.randint(self.n_envs, (batch_size,)).numpy()
        share = torch.rand(batch_size, dtype=torch.float64).numpy()
        oldest = self.oldest[envs]
        return self._transitions(oldest + (share * (self.added - oldest)).astype(np.int64), envs, env)

    def _transitions(self, numbers: Array, envs: Array, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """The transitions of those numbers, with their rewards up to ``n_steps`` ahead."""
        ahead = numbers[:, None] + np.arange(self.n_steps)
        places, env_of = ahead % self.buffer_size, envs[:, None]
        ended = (ahead >= self.added) | self.starts[places, env_of]
        ended[:, 0] = False
        within = ~np.logical_or.accumulate(ended, axis=1)
        each = self.reward_scale * self._normalize_reward(self.rewards[places, env_of], env)
        rewards = (each * within * self.gamma ** np.arange(self.n_steps)).sum(axis=1)
        count = within.sum(axis=1)
        first, last = numbers % self.buffer_size, (numbers + count - 1) % self.buffer_size
        discounts = None if self.n_steps == 1 else self._column(self.gamma**count)
        arguments = (
            self._stacks(self.newest[first, envs], envs),
            self.to_torch(self.actions[first, envs], copy=False),
            self._stacks(self.newest[last, envs] + 1, envs),
            self._column(self.dones[last, envs]),
            self._column(rewards),
        )
        if discounts is None:
            return ReplayBufferSamples(*arguments)
        return ReplayBufferSamples(*arguments, discounts=discounts)

    def _stacks(self, newest: Array, envs: Array) -> torch.Tensor:
        """The observations whose last frames have those numbers."""
        numbers = newest[:, None] - np.arange(self.frame_stack - 1, -1, -1)
        frames = self.frames[envs[:, None], numbers % self.n_frames]
        return self.to_torch(frames.reshape(len(newest), *self.obs_shape), copy=False)

    def _column(self, values: Array) -> torch.Tensor:
        return self.to_torch(values.astype(np.float32).reshape(-1, 1), copy=False)

    def __getstate__(self) -> dict[str, Any]:
        """What is filled, so that a young buffer makes a small file."""
        state = self.__dict__.copy()
        frames = min(int(self.written.max()), self.n_frames)
        state["frames"] = self.frames[:, :frames].copy()
        for name in ("newest", "starts", "actions", "rewards", "dones"):
            state[name] = getattr(self, name)[: min(self.added, self.buffer_size)].copy()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.frames = _extended(self.frames, axis=1, length=self.n_frames)
        for name in ("newest", "starts", "actions", "rewards", "dones"):
            setattr(self, name, _extended(getattr(self, name), axis=0, length=self.buffer_size))


def _extended(array: Array, axis: int, length: int) -> Array:
    """The array with zeros behind it, up to ``length`` along ``axis``."""
    shape = list(array.shape)
    shape[axis] = length
    result: Array = np.zeros(shape, array.dtype)
    result[tuple(slice(0, size) for size in array.shape)] = array
    return result
