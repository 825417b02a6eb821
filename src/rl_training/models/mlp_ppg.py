"""PPG's network: one trunk with a policy, a value and an auxiliary value head (arXiv:2009.04416).

Observations are vectors ``(B, D)`` or, with an image encoder as the first part of the trunk, images ``(B, C, H, W)``
in uint8. Actions are one of ``A`` choices: logits ``(B, A)``, actions ``(B,)``, values ``(B,)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rl_training.models.cnn.encoder import ConvEncoder, channels_last, encode
from rl_training.models.distributions import ActionDistribution, Categorical
from rl_training.models.layers import orthogonal


class AuxiliaryOutputs(NamedTuple):
    """What the auxiliary phase trains, from one pass through the trunk."""

    logits: Tensor
    aux_values: Tensor
    values: Tensor


class MLPPPGModel(nn.Module):
    """Trunk and three heads; ``detach_value`` keeps the policy phase's value gradient out of the trunk."""

    def __init__(
        self,
        observation_dim: int,
        n_actions: int,
        *,
        hidden: Sequence[int] = (64, 64),
        detach_value: bool = False,
        encoder: ConvEncoder | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.detach_value = detach_value
        self.dtype = dtype
        self.encoder = encoder
        layers: list[nn.Module] = []
        width = observation_dim if encoder is None else encoder.features_dim
        for size in hidden:
            layers += [nn.Linear(width, size), nn.Tanh()]
            width = size
        self.trunk = nn.Sequential(*layers)
        self.policy_head = nn.Linear(width, n_actions)
        self.value_head = nn.Linear(width, 1)
        self.aux_value_head = nn.Linear(width, 1)
        self.distribution: ActionDistribution = Categorical()
        self._initialize()

    def _initialize(self) -> None:
        orthogonal(self, linear_gain=math.sqrt(2.0))
        # A policy close to uniform explores; values close to their initial scale do no harm.
        nn.init.orthogonal_(self.policy_head.weight, 0.01)
        nn.init.orthogonal_(self.value_head.weight, 1.0)
        nn.init.orthogonal_(self.aux_value_head.weight, 1.0)
        channels_last(self)

    def features(self, observations: Tensor, encoder: nn.Module | None = None) -> Tensor:
        """What the heads read, ``(B, F)``; ``encoder`` may be a copy of its own in another format."""
        if self.encoder is not None:
            encoded = encode(encoder or self.encoder, observations, self.dtype)
        else:
            encoded = observations.float().flatten(1)
        features: Tensor = self.trunk(encoded)
        return features

    def action_parameters(self, features: Tensor) -> Tensor:
        """Logits of the actions."""
        logits: Tensor = self.policy_head(features)
        return logits

    def values(self, features: Tensor) -> Tensor:
        """The value head as the policy phase sees it."""
        values: Tensor = self.value_head(features.detach() if self.detach_value else features)
        return values.squeeze(-1)

    def auxiliary(self, observations: Tensor) -> AuxiliaryOutputs:
        """All heads on one pass through the trunk, every gradient open."""
        features = self.features(observations)
        return AuxiliaryOutputs(
            self.policy_head(features), self.aux_value_head(features).squeeze(-1), self.value_head(features).squeeze(-1)
        )

    def act(self, observations: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, their log-probabilities and the values of the observations."""
        features = self.features(observations)
        logits = self.action_parameters(features)
        drawn = logits.argmax(dim=-1, keepdim=True) if deterministic else torch.multinomial(logits.softmax(dim=-1), 1)
        actions = drawn.squeeze(-1)
        return actions, self.distribution.log_prob(logits, actions), self.values(features)

    def evaluate_actions(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities of given actions, the entropies of the policy and the values of the observations."""
        features = self.features(observations)
        log_prob, entropy = self.distribution.log_prob_and_entropy(self.action_parameters(features), actions)
        return log_prob, entropy, self.values(features)
