"""Collecting a rollout for PPO and PPG, at a fraction of stable-baselines3's cost per step and with its meaning.

During the rollout only actions are computed. After it, values come from the stored features in one batch, and
log-probabilities from the very action parameters the actions were drawn from, so they are those of the collecting
policy to the last bit. The noise of all draws is made in one call. A truncated episode is bootstrapped with the value
of its last observation, all of them in one batch. ``T`` steps, ``N`` environments; arrays are ``(T, N, ...)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from rl_training.algorithms.actor_critic import ActorCritic, rollout_encoder
from rl_training.algorithms.reward_normalizer import RewardNormalizer

Array = NDArray[Any]


class Truncation(NamedTuple):
    """An episode cut by a limit, at step ``step`` of environment ``env``."""

    step: int
    env: int
    last_observation: Array


def truncations(step: int, dones: Array, infos: list[dict[str, Any]]) -> list[Truncation]:
    """The episodes that a limit cut at this step, not an end."""
    return [
        Truncation(step, int(env), infos[env]["terminal_observation"])
        for env in np.flatnonzero(dones)
        if infos[env].get("TimeLimit.truncated", False) and infos[env].get("terminal_observation") is not None
    ]


def advantages(
    rewards: Array, values: Array, starts: Array, last_values: Array, dones: Array, gamma: float, gae_lambda: float
) -> Array:
    """Generalised advantage estimation (arXiv:1506.02438), ``(T, N)``; nothing crosses the end of an episode."""
    alive: Array = 1.0 - np.concatenate([starts[1:], dones[None].astype(np.float32)])
    next_values = np.concatenate([values[1:], last_values[None]])
    errors = rewards + gamma * alive * next_values - values
    decay = gamma * gae_lambda * alive
    result: Array = np.empty_like(errors)
    running = np.zeros_like(last_values)
    for step in range(len(errors) - 1, -1, -1):
        running = errors[step] + decay[step] * running
        result[step] = running
    return result


def _steps(
    algorithm: OnPolicyAlgorithm,
    env: VecEnv,
    callback: BaseCallback,
    buffer: RolloutBuffer,
    actor_critic: ActorCritic,
    encoder: nn.Module | None,
) -> tuple[Tensor, Tensor, list[Truncation]] | None:
    """Run the environments; features ``(T, N, F)``, action parameters ``(T, N, A)``, truncations; None to stop."""
    space = algorithm.action_space
    bounds = (space.low, space.high) if isinstance(space, Box) else None
    n_steps, n_envs, device = buffer.buffer_size, env.num_envs, algorithm.device
    distribution = actor_critic.distribution
    features_of, parameters_of = [], []
    cut: list[Truncation] = []
    noise: Array | None = None
    last_obs, starts = algorithm._last_obs, algorithm._last_episode_starts
    assert isinstance(last_obs, np.ndarray), "collect needs the observation to start from"
    for step in range(n_steps):
        # Before the step, since an environment may write its next observation over this one.
        buffer.observations[step] = last_obs
        buffer.episode_starts[step] = starts
        with torch.inference_mode():
            features = actor_critic.features(torch.as_tensor(last_obs, device=device), encoder)
            parameters = actor_critic.action_parameters(features)
        features_of.append(features)
        parameters_of.append(parameters)
        if noise is None:
            noise = distribution.draw_noise(n_steps, *parameters.shape)
        drawn = distribution.sample(parameters.cpu().numpy(), noise[step])
        actions = drawn.reshape(n_envs, *space.shape)  # type: ignore[misc]
        clipped_actions = np.clip(actions, *bounds) if bounds else actions

        new_obs, rewards, dones, infos = env.step(clipped_actions)
        algorithm.num_timesteps += n_envs
        told = {"n_steps": step, "actions": actions, "clipped_actions": clipped_actions}
        told |= {"new_obs": new_obs, "rewards": rewards, "dones": dones, "infos": infos}
        callback.update_locals({"self": algorithm, "env": env, **told})
        if not callback.on_step():
            return None
        algorithm._update_info_buffer(infos, dones)
        if dones.any():
            cut += truncations(step, dones, infos)

        buffer.actions[step] = actions.reshape(n_envs, -1)
        buffer.rewards[step] = rewards
        assert isinstance(new_obs, np.ndarray)
        algorithm._last_obs = last_obs = new_obs
        algorithm._last_episode_starts = starts = dones
    return torch.stack(features_of), torch.stack(parameters_of), cut


@torch.inference_mode()
def _fill(
    algorithm: OnPolicyAlgorithm,
    buffer: RolloutBuffer,
    actor_critic: ActorCritic,
    encoder: nn.Module | None,
    steps: tuple[Tensor, Tensor, list[Truncation]],
    normalizer: RewardNormalizer | None,
) -> None:
    """Everything the update needs beside what the environments said."""
    features, parameters, cut = steps
    shape = buffer.rewards.shape
    dones = np.asarray(algorithm._last_episode_starts)
    if normalizer is not None:
        ends = np.concatenate([buffer.episode_starts[1:], dones[None].astype(np.float32)])
        buffer.rewards[:] = normalizer.normalize(buffer.rewards, ends)

    def values_of(observations: Array) -> Array:
        seen = actor_critic.features(torch.as_tensor(observations, device=algorithm.device), encoder)
        result: Array = actor_critic.values(seen).float().cpu().numpy()
        return result

    if cut:
        values = values_of(np.stack([truncation.last_observation for truncation in cut]))
        for truncation, value in zip(cut, values):
            buffer.rewards[truncation.step, truncation.env] += buffer.gamma * value
    buffer.values[:] = actor_critic.values(features.flatten(0, 1)).cpu().numpy().reshape(shape)
    actions = torch.as_tensor(buffer.actions, device=algorithm.device).flatten(0, 1)
    log_probs = actor_critic.distribution.log_prob(parameters.flatten(0, 1), actions)
    buffer.log_probs[:] = log_probs.cpu().numpy().reshape(shape)
    assert isinstance(algorithm._last_obs, np.ndarray)
    buffer.advantages[:] = advantages(
        buffer.rewards,
        buffer.values,
        buffer.episode_starts,
        values_of(algorithm._last_obs),
        dones,
        buffer.gamma,
        buffer.gae_lambda,
    )
    buffer.returns[:] = buffer.advantages + buffer.values
    buffer.pos, buffer.full = buffer.buffer_size, True


def collect(
    algorithm: OnPolicyAlgorithm,
    env: VecEnv,
    callback: BaseCallback,
    buffer: RolloutBuffer,
    actor_critic: ActorCritic,
    normalizer: RewardNormalizer | None = None,
) -> bool:
    """Fill ``buffer`` with a rollout of the current policy; False when a callback asked to stop."""
    algorithm.policy.set_training_mode(False)
    buffer.reset()
    callback.on_rollout_start()
    encoder = rollout_encoder(actor_critic)
    steps = _steps(algorithm, env, callback, buffer, actor_critic, encoder)
    if steps is None:
        return False
    _fill(algorithm, buffer, actor_critic, encoder, steps, normalizer)
    callback.on_rollout_end()
    return True
