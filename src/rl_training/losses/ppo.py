"""The loss of proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347).

Symbols, all of shape ``(B,)`` with ``B`` the size of a minibatch:
``log_prob`` log π(a|s) now, ``old_log_prob`` the same when the action was taken, ``advantages`` Â, ``values`` V(s) now,
``old_values`` V(s) when the action was taken, ``returns`` the target of V, ``entropy`` of π(·|s).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PPOLoss(NamedTuple):
    """``loss`` is what to differentiate; the rest are its parts and two diagnostics without gradient."""

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    entropy_loss: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def normalize_advantages(advantages: Tensor) -> Tensor:
    """Zero mean and unit deviation over the minibatch; a single advantage has no deviation and is kept."""
    if advantages.numel() < 2:
        return advantages
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def ppo_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantages: Tensor,
    values: Tensor,
    returns: Tensor,
    entropy: Tensor,
    *,
    clip_range: float,
    value_coef: float = 0.5,
    entropy_coef: float = 0.0,
    old_values: Tensor | None = None,
    value_clip_range: float | None = None,
) -> PPOLoss:
    """L = L_clip + c₁ L_value − c₂ H, equations (7) and (9) of the paper with signs turned for minimising.

    With ``value_clip_range`` the value may move only that far from ``old_values``. The approximate KL is the
    low-variance estimate E[(r − 1) − log r] of KL(π_old ‖ π).
    """
    assert log_prob.dim() == 1, f"expected (B,), got {tuple(log_prob.shape)}"
    for tensor in (old_log_prob, advantages, values, returns, entropy):
        assert tensor.shape == log_prob.shape, f"expected (B,), got {tuple(tensor.shape)}"

    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    policy_loss = -torch.minimum(advantages * ratio, advantages * clipped).mean()

    if value_clip_range is not None:
        assert old_values is not None, "clipping the value needs the value it had"
        values = old_values + (values - old_values).clamp(-value_clip_range, value_clip_range)
    value_loss = (returns - values).square().mean()
    entropy_loss = -entropy.mean()

    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).mean()
        clip_fraction = ((ratio - 1).abs() > clip_range).float().mean()
    loss = policy_loss + entropy_coef * entropy_loss + value_coef * value_loss
    return PPOLoss(loss, policy_loss, value_loss, entropy_loss, approx_kl, clip_fraction)
