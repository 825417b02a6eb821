"""One face for the policies that PPO and PPG train: features, then action parameters and values from features.

Splitting the encoder from the heads lets a rollout run the encoder once for each image: actions come from the features
during the rollout, values from the same features in one batch after it.
"""

from __future__ import annotations

import copy
from typing import Protocol

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.distributions import CategoricalDistribution, DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from torch import Tensor, nn

from rl_training.models.cnn.encoder import channels_last, encode
from rl_training.models.distributions import ActionDistribution, Categorical, Gaussian


class ActorCritic(Protocol):
    """Observations ``(B, ...)`` → features ``(B, F)`` → action parameters ``(B, A)`` and values ``(B,)``."""

    dtype: torch.dtype
    distribution: ActionDistribution

    @property
    def encoder(self) -> nn.Module | None: ...

    def features(self, observations: Tensor, encoder: nn.Module | None = None) -> Tensor: ...

    def action_parameters(self, features: Tensor) -> Tensor: ...

    def values(self, features: Tensor) -> Tensor: ...


def has_convolutions(network: nn.Module) -> bool:
    """Whether it is worth running in bfloat16 and channels last."""
    return any(isinstance(module, nn.Conv2d) for module in network.modules())


def rollout_encoder(actor_critic: ActorCritic) -> nn.Module | None:
    """A copy of the encoder whose weights are already in its format, so that no step of a rollout converts them."""
    if actor_critic.encoder is None or actor_critic.dtype is torch.float32:
        return actor_critic.encoder
    return copy.deepcopy(actor_critic.encoder).to(actor_critic.dtype)


class PolicyView:
    """stable-baselines3's ``ActorCriticPolicy`` seen as an `ActorCritic`; owns nothing, trains the policy's weights."""

    def __init__(self, policy: ActorCriticPolicy, dtype: torch.dtype) -> None:
        self.policy = policy
        self.images = policy.normalize_images and is_image_space(policy.observation_space)
        convolutional = self.images and has_convolutions(policy.features_extractor)
        self.dtype = dtype if convolutional else torch.float32
        if convolutional:
            channels_last(policy.features_extractor)
        self.distribution: ActionDistribution = (
            Categorical() if isinstance(policy.action_dist, CategoricalDistribution) else Gaussian(policy.log_std)
        )

    @staticmethod
    def can_see(policy: BasePolicy) -> bool:
        """Whether the policy is of the plain kind this view speaks for; others take stable-baselines3's own road."""
        return (
            isinstance(policy, ActorCriticPolicy)
            and type(policy).evaluate_actions is ActorCriticPolicy.evaluate_actions
            and type(policy).forward is ActorCriticPolicy.forward
            and type(policy.action_dist) in (CategoricalDistribution, DiagGaussianDistribution)
            and isinstance(policy.observation_space, Box)
            and policy.share_features_extractor
        )

    @property
    def encoder(self) -> nn.Module | None:
        return self.policy.features_extractor if self.images else None

    def features(self, observations: Tensor, encoder: nn.Module | None = None) -> Tensor:
        if self.images:
            return encode(encoder or self.policy.features_extractor, observations, self.dtype)
        features: Tensor = self.policy.features_extractor(observations.float())
        return features

    def action_parameters(self, features: Tensor) -> Tensor:
        parameters: Tensor = self.policy.action_net(self.policy.mlp_extractor.forward_actor(features))
        return parameters

    def values(self, features: Tensor) -> Tensor:
        values: Tensor = self.policy.value_net(self.policy.mlp_extractor.forward_critic(features))
        return values.squeeze(-1)
