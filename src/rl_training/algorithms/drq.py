"""DrQ (Kostrikov et al. 2020, arXiv:2004.13649): soft actor-critic from images, each shifted by a few random pixels."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, ReplayBufferSamples, Schedule
from torch import Tensor

from rl_training.algorithms.image_policies import DrQPolicy
from rl_training.algorithms.replay import ImageReplayBuffer
from rl_training.algorithms.replay_phase import descend, replay_phase
from rl_training.algorithms.spaces import checked_env
from rl_training.errors import ConfigError
from rl_training.losses.drq import drq_loss, temperature_loss
from rl_training.models.augmentation import random_shift
from rl_training.models.precision import encoder_dtype


class DrQ(SAC):
    """SAC on channel-first images and one-axis actions, with the loss averaged over shifted views.

    ``frame_stack`` says how many frames the environment stacks, so that the replay stores each once. ``ent_coef`` is
    fixed; ``"auto"`` tunes it. ``reward_scale`` multiplies what is learned from, so that an entropy coefficient and a
    learning rate suit environments whose returns are of another size. ``views`` and ``next_views`` are the paper's M
    and K. ``policy_kwargs`` go to `CNNDrQModel`: ``encoder``, ``features_dim``, ``hidden``, ``share_encoder``.
    """

    policy: DrQPolicy  # type: ignore[assignment]
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"CnnPolicy": DrQPolicy}

    def __init__(
        self,
        policy: str | type[DrQPolicy] = "CnnPolicy",
        env: GymEnv | str | None = None,
        learning_rate: float | Schedule = 1e-3,
        buffer_size: int = 100_000,
        learning_starts: int = 1_000,
        batch_size: int = 128,
        tau: float = 0.01,
        gamma: float = 0.99,
        *,
        ent_coef: str | float = 0.1,
        frame_stack: int = 1,
        n_steps: int = 1,
        reward_scale: float = 1.0,
        views: int = 1,
        next_views: int = 1,
        shift: int = 4,
        precision: str = "auto",
        **kwargs: Any,
    ) -> None:
        if min(views, next_views) < 1 or shift < 0:
            raise ConfigError(
                f"views is {views}, next_views {next_views} and shift {shift}; expected 1, 1 and 0 or more of each."
            )
        self.views, self.next_views, self.shift = views, next_views, shift
        self.precision = precision
        super().__init__(
            policy,  # type: ignore[arg-type]
            checked_env("DrQ", env),  # type: ignore[arg-type]
            learning_rate,
            buffer_size,
            learning_starts,
            batch_size,
            tau,
            gamma,
            ent_coef=ent_coef,
            replay_buffer_class=ImageReplayBuffer,
            replay_buffer_kwargs={
                "frame_stack": frame_stack,
                "n_steps": n_steps,
                "gamma": gamma,
                "reward_scale": reward_scale,
            },
            **kwargs,
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        self.policy.model.dtype = encoder_dtype(self.precision, self.device)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        optimizers = [self.actor.optimizer, self.critic.optimizer]
        self._update_learning_rate(optimizers + ([self.ent_coef_optimizer] if self.ent_coef_optimizer else []))
        replay_phase(self, self.update, gradient_steps, batch_size)

    @torch.no_grad()
    def _next_values(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both target critics and log π on actions the policy draws for the next images."""
        model = self.policy.model
        actions, log_prob = model.sample_actions(model.actor_features(images))
        q1, q2 = model.critic_target(model.target_features(images), actions)
        return q1, q2, log_prob

    def update(self, batch: ReplayBufferSamples) -> dict[str, float]:
        """One step of critics, actor, target and, where it is tuned, entropy coefficient; the losses by name.

        Both losses are taken at the same weights, so that one pass through the critic's encoder serves both.
        """
        model, size = self.policy.model, len(batch.actions)
        # Prepared once here, since two encoders read each of them.
        images = model.prepared(random_shift(batch.observations.repeat(self.views, 1, 1, 1), self.shift))
        next_images = model.prepared(random_shift(batch.next_observations.repeat(self.next_views, 1, 1, 1), self.shift))
        alpha = self.ent_coef_tensor if self.log_ent_coef is None else self.log_ent_coef.detach().exp()
        gamma = self.gamma if batch.discounts is None else batch.discounts

        features = model.critic_features(images)
        q1, q2 = model.critic(features, batch.actions.repeat(self.views, 1))
        actions, log_prob = model.sample_actions(model.actor_features(images[:size], features[:size]))
        actor_q1, actor_q2 = model.critic(features[:size].detach(), actions)
        next_q1, next_q2, next_log_prob = self._next_values(next_images)
        losses = drq_loss(
            q1.view(self.views, size),
            q2.view(self.views, size),
            next_q1.view(self.next_views, size),
            next_q2.view(self.next_views, size),
            next_log_prob.view(self.next_views, size),
            batch.rewards.flatten(),
            (gamma * (1.0 - batch.dones)).flatten(),
            actor_q1,
            actor_q2,
            log_prob,
            alpha=alpha,
        )

        steps = [(losses.critic_loss, self.critic.optimizer), (losses.actor_loss, self.actor.optimizer)]
        if self.ent_coef_optimizer is not None and self.log_ent_coef is not None:
            target_entropy = float(self.target_entropy)
            steps.append((temperature_loss(self.log_ent_coef, log_prob, target_entropy), self.ent_coef_optimizer))
        descend(*steps)
        self._n_updates += 1
        if self._n_updates % self.target_update_interval == 0:
            model.update_target(self.tau)
        metrics = {name: value.item() for name, value in losses._asdict().items()}
        return {**metrics, "alpha": float(alpha), "algorithm_updates": self._n_updates, "num_gradient_steps": 1}
