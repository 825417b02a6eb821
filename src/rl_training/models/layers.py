"""Pieces the networks share: stacks of linear layers, orthogonal weights, twin Q-functions.

Features are ``(B, F)``, actions ``(B, A)``, Q-values ``(B,)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def mlp(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(inputs, size), nn.ReLU()]
        inputs = size
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def orthogonal(network: nn.Module, linear_gain: float = 1.0) -> None:
    """Orthogonal weights, scaled for ReLU in convolutions, and no bias."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(module.weight, math.sqrt(2.0) if isinstance(module, nn.Conv2d) else linear_gain)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class TwinCritic(nn.Module):
    """Two Q-functions of features and actions; the smaller of both is the one to trust (arXiv:1802.09477)."""

    def __init__(self, features_dim: int, action_dim: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.q1 = mlp(features_dim + action_dim, hidden, 1)
        self.q2 = mlp(features_dim + action_dim, hidden, 1)
        orthogonal(self)

    def forward(self, features: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        inputs = torch.cat([features, actions], dim=-1)
        return self.q1(inputs).squeeze(-1), self.q2(inputs).squeeze(-1)


@torch.no_grad()
def move_towards(slow: nn.Module, fast: nn.Module, share: float) -> None:
    """Move every weight of ``slow`` that share of the way to ``fast``'s."""
    torch._foreach_lerp_(list(slow.parameters()), list(fast.parameters()), share)
