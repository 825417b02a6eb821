"""DrQ-v2 (Yarats et al. 2021, arXiv:2107.09645): DDPG from shifted images, n-step returns, noise that fades by plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, ReplayBufferSamples, Schedule

from rl_training.algorithms.image_policies import DrQv2Policy
from rl_training.algorithms.replay import ImageReplayBuffer
from rl_training.algorithms.replay_phase import descend, replay_phase
from rl_training.algorithms.spaces import checked_env
from rl_training.errors import ConfigError
from rl_training.losses.drqv2 import drqv2_loss
from rl_training.models.augmentation import random_shift_bilinear
from rl_training.models.precision import encoder_dtype


class DrQv2(OffPolicyAlgorithm):
    """DrQ-v2 on channel-first images and one-axis actions.

    Exploration noise falls from ``noise[0]`` to ``noise[1]`` over the first ``noise[2]`` environment steps, and is held
    to ``±noise_clip`` within updates. ``reward_scale`` multiplies the rewards learned from. ``policy_kwargs`` go to
    `CNNDrQv2Model`: ``encoder``, ``features_dim``, ``hidden``; the default encoder is the paper's, "nature" costs a
    quarter of it.
    """

    policy: DrQv2Policy
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"CnnPolicy": DrQv2Policy}

    def __init__(
        self,
        policy: str | type[DrQv2Policy] = "CnnPolicy",
        env: GymEnv | str | None = None,
        learning_rate: float | Schedule = 1e-4,
        buffer_size: int = 100_000,
        learning_starts: int = 2_000,
        batch_size: int = 256,
        tau: float = 0.01,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 2,
        gradient_steps: int = 1,
        *,
        n_steps: int = 3,
        reward_scale: float = 1.0,
        noise: tuple[float, float, int] = (1.0, 0.1, 100_000),
        noise_clip: float = 0.3,
        frame_stack: int = 1,
        shift: int = 4,
        precision: str = "auto",
        _init_setup_model: bool = True,
        **kwargs: Any,
    ) -> None:
        if not isinstance(noise, Sequence) or len(noise) != 3 or min(*noise, shift) < 0:
            raise ConfigError(
                f"noise is {noise} and shift {shift}; expected three numbers such as [1.0, 0.1, 100000], and 0 or more."
            )
        self.noise, self.noise_clip, self.shift = noise, noise_clip, shift
        self.precision = precision
        super().__init__(
            policy,
            checked_env("DrQv2", env),  # type: ignore[arg-type]
            learning_rate,
            buffer_size,
            learning_starts,
            batch_size,
            tau,
            gamma,
            train_freq,
            gradient_steps,
            replay_buffer_class=ImageReplayBuffer,
            replay_buffer_kwargs={
                "frame_stack": frame_stack,
                "n_steps": n_steps,
                "gamma": gamma,
                "reward_scale": reward_scale,
            },
            support_multi_env=True,
            sde_support=False,
            **kwargs,
        )
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        super()._setup_model()
        self.policy.model.dtype = encoder_dtype(self.precision, self.device)
        self._on_step()

    def exploration_std(self) -> float:
        """The deviation of the noise at this point of training."""
        first, last, steps = self.noise
        return first + (last - first) * min(1.0, self.num_timesteps / max(steps, 1))

    def _on_step(self) -> None:
        self.policy.exploration_std.fill_(self.exploration_std())

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        self._update_learning_rate([self.policy.actor_optimizer, self.policy.critic_optimizer])
        replay_phase(self, self.update, gradient_steps, batch_size)

    def update(self, batch: ReplayBufferSamples) -> dict[str, float]:
        """One step of critics, actor and target; the losses by name.

        Both losses are taken at the same weights, so that one pass through the encoder serves both.
        """
        model, std = self.policy.model, self.exploration_std()
        images = random_shift_bilinear(batch.observations, self.shift, model.dtype).div_(255.0)
        next_images = random_shift_bilinear(batch.next_observations, self.shift, model.dtype).div_(255.0)
        gamma = self.gamma if batch.discounts is None else batch.discounts

        features = model.features(images)
        q1, q2 = model.critic(features, batch.actions)
        actor_q1, actor_q2 = model.critic(
            features.detach(), model.noisy_actions(features.detach(), std, self.noise_clip)
        )
        with torch.no_grad():
            next_features = model.features(next_images)
            next_actions = model.noisy_actions(next_features, std, self.noise_clip)
            next_q1, next_q2 = model.critic_target(next_features, next_actions)
        losses = drqv2_loss(
            q1,
            q2,
            next_q1,
            next_q2,
            batch.rewards.flatten(),
            (gamma * (1.0 - batch.dones)).flatten(),
            actor_q1,
            actor_q2,
        )

        descend((losses.critic_loss, self.policy.critic_optimizer), (losses.actor_loss, self.policy.actor_optimizer))
        model.update_target(self.tau)
        self._n_updates += 1
        metrics = {name: value.item() for name, value in losses._asdict().items()}
        return {**metrics, "algorithm_updates": self._n_updates, "num_gradient_steps": 1}

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.actor_optimizer", "policy.critic_optimizer"], []
