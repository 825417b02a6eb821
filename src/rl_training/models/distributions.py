"""Log-densities, entropies and draws of the two action distributions PPO and PPG use, without objects per call.

``parameters`` are what the policy's last layer says: logits ``(B, A)`` of a choice, or the mean ``(B, A)`` of a
Gaussian whose ``log_std`` ``(A,)`` does not depend on the state. Draws take their noise from outside, so that a whole
rollout's noise is made in one call.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def gaussian_log_prob(mean: Tensor, log_std: Tensor, actions: Tensor) -> Tensor:
    """log N(actions; mean, exp(log_std)²), summed over the dimensions of the action."""
    distance = (actions - mean) * (-log_std).exp()
    return (-0.5 * distance.square() - log_std - _HALF_LOG_2PI).sum(dim=-1)


class ActionDistribution(Protocol):
    """What a rollout and an update need of a distribution."""

    def draw_noise(self, *shape: int) -> Array: ...

    def sample(self, parameters: Array, noise: Array) -> Array: ...

    def log_prob(self, parameters: Tensor, actions: Tensor) -> Tensor: ...

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]: ...


class Categorical:
    """One of A choices; actions are ``(B, 1)``."""

    def draw_noise(self, *shape: int) -> Array:
        """Gumbel noise: the largest of logits + noise is a draw from their softmax."""
        noise: Array = torch.empty(shape).exponential_().log_().neg_().numpy()
        return noise

    def sample(self, parameters: Array, noise: Array) -> Array:
        choice: Array = np.argmax(parameters + noise, axis=-1)
        return choice

    def log_prob(self, parameters: Tensor, actions: Tensor) -> Tensor:
        chosen = parameters.log_softmax(dim=-1).gather(-1, actions.long().view(-1, 1))
        return chosen.squeeze(-1)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        log_p = parameters.log_softmax(dim=-1)
        chosen = log_p.gather(-1, actions.long().view(-1, 1)).squeeze(-1)
        return chosen, -(log_p.exp() * log_p).sum(dim=-1)


class Gaussian:
    """A Gaussian with independent dimensions; ``log_std`` is a parameter of the policy."""

    def __init__(self, log_std: Tensor) -> None:
        self.log_std = log_std

    def draw_noise(self, *shape: int) -> Array:
        """Normal noise already scaled by the deviation, which does not change during a rollout."""
        noise: Array = (torch.randn(shape) * self.log_std.detach().exp().cpu()).numpy()
        return noise

    def sample(self, parameters: Array, noise: Array) -> Array:
        return parameters + noise

    def log_prob(self, parameters: Tensor, actions: Tensor) -> Tensor:
        return gaussian_log_prob(parameters, self.log_std, actions)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        entropy = (self.log_std + 0.5 + _HALF_LOG_2PI).sum()
        return self.log_prob(parameters, actions), entropy.expand(len(parameters))
