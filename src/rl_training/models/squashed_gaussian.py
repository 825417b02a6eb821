"""A Gaussian squeezed into (−1, 1) by tanh, with the exact log-density of the squeezed action.

Shapes: ``mean``, ``log_std`` and actions ``(B, A)``, log-densities ``(B,)``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from rl_training.models.distributions import gaussian_log_prob


def tanh_log_slope(before: Tensor) -> Tensor:
    """log(1 − tanh²u), written so that it neither overflows nor flattens: 2 (log 2 − u − softplus(−2u))."""
    return 2.0 * (math.log(2.0) - before - functional.softplus(-2.0 * before))


def squashed_sample(mean: Tensor, log_std: Tensor) -> tuple[Tensor, Tensor]:
    """An action drawn with a gradient to ``mean`` and ``log_std``, and its log-density."""
    before = mean + log_std.exp() * torch.randn_like(mean)
    log_prob = gaussian_log_prob(mean, log_std, before) - tanh_log_slope(before).sum(dim=-1)
    return before.tanh(), log_prob
