"""Phasic policy gradient (Cobbe et al. 2020, arXiv:2009.04416): PPO's phase, then distilling values into the trunk.

Each rollout is one policy phase: `PPG.update`. After ``n_policy_iterations`` of them `PPG.auxiliary_update` trains both
value heads on all remembered returns, through the trunk the policy reads, while a penalty holds the policy to what it
was when the phase began. Rewards are normalised by default: without it the value gradients drown the policy's.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from rl_training.algorithms.actor_critic import ActorCritic
from rl_training.algorithms.auxiliary_memory import AuxiliaryMemory
from rl_training.algorithms.policy_phase import rollout_data, step, use_fused_adam
from rl_training.algorithms.ppg_policy import CompactCnnPPGPolicy, NatureCnnPPGPolicy, PPGPolicy
from rl_training.algorithms.ppo import PPO
from rl_training.algorithms.reward_normalizer import RewardNormalizer
from rl_training.algorithms.spaces import checked_env
from rl_training.losses.ppg import PPGAuxiliaryLoss, ppg_auxiliary_loss
from rl_training.models.precision import encoder_dtype


class PPG(PPO):
    """PPG for discrete actions, from vectors (``MlpPolicy``) or images (``CnnPolicy``, ``CompactCnnPolicy``).

    ``policy_kwargs={"detach_value": True}`` keeps the policy phase's value gradients out of the trunk.
    """

    policy: PPGPolicy  # type: ignore[assignment]
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": PPGPolicy,
        "CnnPolicy": NatureCnnPPGPolicy,
        "CompactCnnPolicy": CompactCnnPPGPolicy,
    }

    def __init__(
        self,
        policy: str | type[PPGPolicy] = "MlpPolicy",
        env: GymEnv | str | None = None,
        learning_rate: float | Schedule = 2.5e-4,
        n_steps: int = 128,
        batch_size: int = 128,
        n_epochs: int = 4,
        *,
        n_policy_iterations: int = 8,
        auxiliary_epochs: int = 6,
        auxiliary_batch_size: int = 512,
        beta_clone: float = 1.0,
        normalize_reward: bool = True,
        **kwargs: Any,
    ) -> None:
        self.n_policy_iterations = n_policy_iterations
        self.auxiliary_epochs = auxiliary_epochs
        self.auxiliary_batch_size = auxiliary_batch_size
        self.beta_clone = beta_clone
        self.normalize_reward = normalize_reward
        self.reward_normalizer = None
        self.policy_updates = 0
        self.auxiliary_updates = 0
        checked = checked_env("PPG", env)
        super().__init__(policy, checked, learning_rate, n_steps, batch_size, n_epochs, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.memory = AuxiliaryMemory()
        if self.normalize_reward and self.reward_normalizer is None:
            self.reward_normalizer = RewardNormalizer(self.gamma)

    def _build_actor_critic(self) -> ActorCritic:
        self.policy.model.dtype = encoder_dtype(self.precision, self.device)
        return self.policy.model

    def train(self) -> None:
        self.update()
        if len(self.memory) == self.n_policy_iterations:
            self.auxiliary_update()

    def update(self) -> dict[str, float]:
        """The policy phase on the rollout at hand, which is then remembered; its mean losses."""
        self.policy.set_training_mode(True)
        self._update_learning_rate([self.policy.optimizer, self.policy.auxiliary_optimizer])
        data = rollout_data(self.rollout_buffer, self.device)
        metrics = self._record(self._policy_epochs(self.policy.model, data), data)
        self.memory.add(data.observations, data.returns)
        self.policy_updates += 1
        return {**metrics, "policy_updates": self.policy_updates}

    def auxiliary_update(self) -> dict[str, float]:
        """The auxiliary phase on everything remembered, which is then forgotten; its mean losses."""
        model, optimizer = self.policy.model, self.policy.auxiliary_optimizer
        use_fused_adam(optimizer)
        parameters = list(model.parameters())
        observations, returns = self.memory.contents()
        with torch.no_grad():
            chunks = torch.split(observations, self.auxiliary_batch_size)
            teacher = torch.cat([model.action_parameters(model.features(chunk)) for chunk in chunks])

        losses = []
        for _ in range(self.auxiliary_epochs):
            for rows in torch.split(torch.randperm(len(returns), device=returns.device), self.auxiliary_batch_size):
                outputs = model.auxiliary(observations[rows])
                loss = ppg_auxiliary_loss(
                    outputs.logits,
                    teacher[rows],
                    outputs.aux_values,
                    outputs.values,
                    returns[rows],
                    beta_clone=self.beta_clone,
                )
                step(optimizer, loss.auxiliary_loss, parameters, self.max_grad_norm)
                losses.append(torch.stack(loss).detach())
        self.memory.clear()
        self.auxiliary_updates += 1

        metrics = dict(zip(PPGAuxiliaryLoss._fields, torch.stack(losses).mean(dim=0).tolist()))
        for name, value in metrics.items():
            self.logger.record(f"train/{name}", value)
        return {**metrics, "auxiliary_updates": self.auxiliary_updates}

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "memory"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer", "policy.auxiliary_optimizer", "memory"], []
