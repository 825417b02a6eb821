"""PPO: stable-baselines3's, with a lean rollout and a lean update (arXiv:1707.06347).

Same arguments, same meaning, same files: a zip saved here loads with ``stable_baselines3.PPO.load`` and the other way
round. Policies of another kind than actor-critics on one box of observations with a plain Gaussian or categorical
action (gSDE, dictionaries, several choices at once) take stable-baselines3's own road.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import stable_baselines3
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from rl_training.algorithms.actor_critic import ActorCritic, PolicyView
from rl_training.algorithms.extractors import CompactCnnPolicy
from rl_training.algorithms.policy_phase import RolloutData, mean_losses, policy_phase, rollout_data
from rl_training.algorithms.reward_normalizer import RewardNormalizer
from rl_training.algorithms.rollout import collect
from rl_training.losses.ppo import PPOLoss, ppo_loss
from rl_training.models.precision import encoder_dtype


class PPO(stable_baselines3.PPO):
    """stable-baselines3's PPO, faster; ``precision`` is the format of image encoders: auto, float32 or bfloat16."""

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        **stable_baselines3.PPO.policy_aliases,
        "CompactCnnPolicy": CompactCnnPolicy,
    }
    #: PPG has one; with PPO, wrap the environment in `VecNormalize` instead.
    reward_normalizer: RewardNormalizer | None = None

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str | None,
        *args: Any,
        precision: str = "auto",
        **kwargs: Any,
    ) -> None:
        self.precision = precision
        super().__init__(policy, env, *args, **kwargs)  # type: ignore[arg-type]

    def _setup_model(self) -> None:
        super()._setup_model()
        self._actor_critic = self._build_actor_critic()

    def _build_actor_critic(self) -> ActorCritic | None:
        """The view the lean road needs, or None where it does not lead."""
        if not PolicyView.can_see(self.policy) or type(self.rollout_buffer) is not RolloutBuffer:
            return None
        return PolicyView(self.policy, encoder_dtype(self.precision, self.device))

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        if self._actor_critic is None:
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        return collect(self, env, callback, rollout_buffer, self._actor_critic, self.reward_normalizer)

    def train(self) -> None:
        if self._actor_critic is None:
            super().train()
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        data = rollout_data(self.rollout_buffer, self.device)
        self._record(self._policy_epochs(self._actor_critic, data), data)

    def _policy_epochs(self, actor_critic: ActorCritic, data: RolloutData) -> list[list[PPOLoss]]:
        """Train on one rollout with the schedules as they stand; the losses of each epoch."""
        clip_range = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        value_clip_range = None
        if self.clip_range_vf is not None:
            value_clip_range = self.clip_range_vf(self._current_progress_remaining)  # type: ignore[operator]

        def loss_of(batch: RolloutData, log_prob: Tensor, entropy: Tensor, values: Tensor) -> PPOLoss:
            return ppo_loss(
                log_prob,
                batch.old_log_prob,
                batch.advantages,
                values,
                batch.returns,
                entropy,
                clip_range=clip_range,
                value_coef=self.vf_coef,
                entropy_coef=self.ent_coef,
                old_values=batch.old_values,
                value_clip_range=value_clip_range,
            )

        history = policy_phase(
            actor_critic,
            self.policy.optimizer,
            data,
            loss_of,
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            max_grad_norm=self.max_grad_norm,
            normalize_advantage=self.normalize_advantage,
            target_kl=self.target_kl,
        )
        self._n_updates += len(history)
        return history

    def _record(self, history: list[list[PPOLoss]], data: RolloutData) -> dict[str, float]:
        """Log what stable-baselines3 logs under its names; the mean losses under ours."""
        losses = mean_losses([loss for epoch in history for loss in epoch])
        losses["approx_kl"] = mean_losses(history[-1])["approx_kl"]
        record = self.logger.record
        record("train/entropy_loss", losses["entropy_loss"])
        record("train/policy_gradient_loss", losses["policy_loss"])
        record("train/value_loss", losses["value_loss"])
        record("train/approx_kl", losses["approx_kl"])
        record("train/clip_fraction", losses["clip_fraction"])
        record("train/loss", history[-1][-1].loss.item())
        explained = explained_variance(data.old_values.cpu().numpy(), data.returns.cpu().numpy())
        record("train/explained_variance", explained)
        if hasattr(self.policy, "log_std"):
            record("train/std", float(np.exp(self.policy.log_std.detach().cpu().numpy()).mean()))
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", self.clip_range(self._current_progress_remaining))  # type: ignore[operator]
        return losses

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_actor_critic"]
