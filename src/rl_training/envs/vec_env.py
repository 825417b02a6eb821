"""`DonkeyVecEnv`: Stable-Baselines3's VecEnv straight on the batched world.

An ended car is reset within the same step, as SB3 expects: its last frame is ``info["terminal_observation"]``, a time
limit is ``info["TimeLimit.truncated"]``, and the episode's return and length are in ``info["episode"]`` as `Monitor`
writes them, so no wrapper is needed for SB3 to log them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from rl_training.envs.batch import DonkeyBatch
from rl_training.envs.spec import EnvSpec
from rl_training.errors import UsageError


class DonkeyVecEnv(VecEnv):
    """A batch of cars for SB3.

    :param batch: cars that live elsewhere, such as a `RemoteBatch`, instead of the embedded world's
    :param full_infos: fill every car's info at every step and not only when its episode ends (slower)
    """

    def __init__(
        self,
        env_spec: EnvSpec,
        num_envs: int,
        *,
        seed: int | None = None,
        threads: int = 1,
        full_infos: bool = False,
        batch: DonkeyBatch | None = None,
    ) -> None:
        self.env_spec = env_spec
        self.batch = batch or DonkeyBatch(env_spec, num_envs, seed=seed, threads=threads)
        self.render_mode = "rgb_array"
        self.full_infos = full_infos
        super().__init__(num_envs, self.batch.observation_space, self.batch.action_space)
        self._actions: NDArray[Any] = np.zeros((num_envs, 2))
        self._frames: NDArray[np.uint8] | None = None
        self._started = time.time()

    def reset(self) -> VecEnvObs:
        """Begin new episodes in all cars."""
        if any(seed is not None for seed in self._seeds):
            self.batch.seed(self._seeds)
        self._reset_seeds()
        self._reset_options()
        self.batch.reset()
        self._frames = self.batch.observe()
        return self._frames

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        if self._frames is None:
            raise UsageError("step() was called before reset(); call reset() first.")
        rewards, terminated, truncated = self.batch.advance(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self.full_infos:
            infos = [self.batch.episode_info(i) for i in range(self.num_envs)]
        done = terminated | truncated
        if done.any():
            self._finish(np.flatnonzero(done), terminated, infos)
        self._frames = self.batch.observe()
        return self._frames, rewards.astype(np.float32), done, infos

    def _finish(self, indices: NDArray[np.int64], terminated: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        for i, frame in zip(indices.tolist(), self.batch.observe(indices)):
            infos[i] = {
                **self.batch.episode_info(i),
                "terminal_observation": frame,
                "TimeLimit.truncated": not terminated[i],
                "end_cause": self.batch.end_cause(i, bool(terminated[i])),
                "episode": {
                    "r": float(self.batch.returns[i]),
                    "l": int(self.batch.steps[i]) // self.env_spec.frame_skip,
                    "t": time.time() - self._started,
                },
            }
        self.batch.reset(indices)

    def save_state(self) -> dict[str, Any] | None:
        """All that `load_state` needs to go on bit for bit in the middle of episodes; None where that cannot be."""
        if not self.batch.can_be_saved:
            return None
        return {"batch": self.batch.save_state(), "frames": None if self._frames is None else self._frames.copy()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """The inverse of `save_state`, on envs of the same `EnvSpec` and number; no reset is needed after it."""
        self.batch.load_state(saved["batch"])
        self._frames = saved["frames"]
        self._reset_seeds()

    def close(self) -> None:
        self.batch.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """The last observation of every car, as pictures."""
        if self._frames is None:
            return [None] * self.num_envs
        if self.env_spec.observation.channels_first:
            return list(np.moveaxis(self._frames, 1, -1))
        return list(self._frames)

    # ---- what SB3 asks of single envs; all cars share one batch

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        source = self if hasattr(self, attr_name) else self.batch
        return [getattr(source, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        setattr(self.batch, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        method = getattr(self.batch, method_name)
        return [method(i, *method_args, **method_kwargs) for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        # Returns and lengths are reported as Monitor reports them, so SB3 need not warn of a missing one.
        from stable_baselines3.common.monitor import Monitor

        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))
