"""The losses of DrQ-v2 (Yarats et al. 2021, arXiv:2107.09645): DDPG with n-step targets and clipped double Q.

All tensors are ``(B,)``: ``q1, q2`` the critics on the actions taken, ``next_q1, next_q2`` the target critics n steps
later, ``rewards`` the discounted sum of those n rewards, ``discounts`` γⁿ or zero where the episode terminated within
them, ``actor_q1, actor_q2`` the critics on the actor's own action.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class DrQv2Loss(NamedTuple):
    """The critics minimise ``critic_loss``, the actor ``actor_loss``."""

    critic_loss: Tensor
    actor_loss: Tensor
    target_q_mean: Tensor


def drqv2_loss(
    q1: Tensor,
    q2: Tensor,
    next_q1: Tensor,
    next_q2: Tensor,
    rewards: Tensor,
    discounts: Tensor,
    actor_q1: Tensor,
    actor_q2: Tensor,
) -> DrQv2Loss:
    """Equations (1) to (3): y = Σγⁱrᵢ + γⁿ min(Q̄₁, Q̄₂), L_Q = Σ_i E[(Q_i − y)²], L_π = −E[min(Q₁, Q₂)(s, π(s))].

    No gradient reaches the target.
    """
    assert q1.dim() == 1, f"expected (B,), got {tuple(q1.shape)}"
    for tensor in (q2, next_q1, next_q2, rewards, discounts, actor_q1, actor_q2):
        assert tensor.shape == q1.shape, f"expected (B,), got {tuple(tensor.shape)}"

    with torch.no_grad():
        target_q = rewards + discounts * torch.minimum(next_q1, next_q2)
    critic_loss = (q1 - target_q).square().mean() + (q2 - target_q).square().mean()
    actor_loss = -torch.minimum(actor_q1, actor_q2).mean()
    return DrQv2Loss(critic_loss, actor_loss, target_q.mean())
