"""The losses of DrQ (Kostrikov et al. 2020, arXiv:2004.13649): soft actor-critic on randomly shifted images.

Shapes: ``B`` transitions, ``M`` shifted views of each current image, ``K`` shifted views of each next image.
``q1, q2 (M, B)`` the critics on the actions taken; ``next_q1, next_q2, next_log_prob (K, B)`` the target critics and
log π on actions freshly drawn for the next images; ``rewards, discounts (B,)`` with a discount of zero where the
episode terminated; ``actor_q1, actor_q2, log_prob (B,)`` the critics and log π on fresh actions for the current images;
``alpha`` the entropy coefficient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class DrQLoss(NamedTuple):
    """The critics minimise ``critic_loss``, the actor ``actor_loss``; ``entropy_term`` is the latter's α E[log π]."""

    critic_loss: Tensor
    actor_loss: Tensor
    target_q_mean: Tensor
    entropy_term: Tensor


def drq_loss(
    q1: Tensor,
    q2: Tensor,
    next_q1: Tensor,
    next_q2: Tensor,
    next_log_prob: Tensor,
    rewards: Tensor,
    discounts: Tensor,
    actor_q1: Tensor,
    actor_q2: Tensor,
    log_prob: Tensor,
    *,
    alpha: Tensor | float,
) -> DrQLoss:
    """Equations (1) to (3): the target averages K views, the critic's error averages M views.

    y = r + γ · mean_k [min(Q̄₁, Q̄₂)(s'_k, a'_k) − α log π(a'_k|s'_k)], L_Q = Σ_i ½ E_m[(Q_i − y)²],
    L_π = E[α log π(a|s) − min(Q₁, Q₂)(s, a)]. No gradient reaches the target.
    """
    assert q1.dim() == 2, f"expected (M, B), got {tuple(q1.shape)}"
    assert q1.shape == q2.shape, f"expected {tuple(q1.shape)}, got {tuple(q2.shape)}"
    assert next_q1.dim() == 2, f"expected (K, B), got {tuple(next_q1.shape)}"
    assert next_q1.shape == next_q2.shape == next_log_prob.shape, "expected three times (K, B)"
    for tensor in (rewards, discounts, actor_q1, actor_q2, log_prob, next_q1[0]):
        assert tensor.shape == q1.shape[1:], f"expected (B,), got {tuple(tensor.shape)}"
    if isinstance(alpha, Tensor):
        alpha = alpha.detach()

    with torch.no_grad():
        next_values = (torch.minimum(next_q1, next_q2) - alpha * next_log_prob).mean(dim=0)
        target_q = rewards + discounts * next_values
    critic_loss = 0.5 * ((q1 - target_q).square().mean() + (q2 - target_q).square().mean())
    entropy_term = (alpha * log_prob).mean()
    actor_loss = entropy_term - torch.minimum(actor_q1, actor_q2).mean()
    return DrQLoss(critic_loss, actor_loss, target_q.mean(), entropy_term.detach())


def temperature_loss(log_alpha: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """−E[log α · (log π + H̄)]: α grows while the entropy is below its target H̄.

    Equation (18) of arXiv:1812.05905 with log α for α, whose gradient has the same sign and which keeps α positive.
    """
    assert log_prob.dim() == 1, f"expected (B,), got {tuple(log_prob.shape)}"
    return -(log_alpha * (log_prob.detach() + target_entropy)).mean()
