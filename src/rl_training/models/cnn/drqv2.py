"""DrQ-v2's network: a deterministic actor and twin critics on one encoder that the critics train (arXiv:2107.09645).

Images are ``(B, C, H, W)`` with pixels 0..255, features ``(B, F)``, actions ``(B, A)`` in [−1, 1], Q-values ``(B,)``.
Where the paper gives actor and critics a projection of the convolutions each, here they read the same one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rl_training.models.cnn.encoder import ConvEncoder, architecture, channels_last, encode
from rl_training.models.layers import TwinCritic, mlp, move_towards, orthogonal


class CNNDrQv2Model(nn.Module):
    """Encoder, actor, twin critics and the critics' slow copy."""

    def __init__(
        self,
        image_shape: Sequence[int],
        action_dim: int,
        *,
        encoder: str = "drqv2",
        features_dim: int = 50,
        hidden: Sequence[int] = (256, 256),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        layers = architecture(encoder).layers
        self.encoder = ConvEncoder(image_shape, layers, features_dim, normalize_features=True)
        self.actor = mlp(features_dim, hidden, action_dim)
        orthogonal(self.encoder)
        channels_last(self.encoder)
        orthogonal(self.actor)
        self.critic = TwinCritic(features_dim, action_dim, hidden)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)

    def features(self, images: Tensor) -> Tensor:
        """What actor, critics and target critics read."""
        return encode(self.encoder, images, self.dtype)

    def mean_actions(self, features: Tensor) -> Tensor:
        """The actor's actions without noise."""
        actions: Tensor = self.actor(features).tanh()
        return actions

    def noisy_actions(self, features: Tensor, std: float, clip: float | None = None) -> Tensor:
        """Actions with Gaussian noise of deviation ``std`` held to ``±clip``; the gradient ignores the bounds."""
        mean = self.mean_actions(features)
        noise = torch.randn_like(mean) * std
        if clip is not None:
            noise = noise.clamp(-clip, clip)
        noisy = mean + noise
        return noisy + (noisy.clamp(-1.0, 1.0) - noisy).detach()

    def act(self, images: Tensor, std: float = 0.0) -> Tensor:
        """Actions for images, with exploration noise of that deviation."""
        return self.noisy_actions(self.features(images), std)

    def update_target(self, tau: float) -> None:
        """Move the slow copy a share ``tau`` of the way to the critics."""
        move_towards(self.critic_target, self.critic, tau)
