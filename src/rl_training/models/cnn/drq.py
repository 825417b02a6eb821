"""DrQ's network: a squashed Gaussian actor and twin critics on encoded images (arXiv:2004.13649).

Images are ``(B, C, H, W)`` in uint8, features ``(B, F)``, actions ``(B, A)`` in [−1, 1], Q-values ``(B,)``. Actor and
critic own an encoder each; with ``share_encoder`` the actor reads the critic's, which only the critic trains.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from rl_training.models.cnn.encoder import ConvEncoder, architecture, channels_last, encode, prepared
from rl_training.models.layers import TwinCritic, mlp, move_towards, orthogonal
from rl_training.models.squashed_gaussian import squashed_sample

LOG_STD_RANGE = (-10.0, 2.0)


class ImageCritic(TwinCritic):
    """Twin Q-functions with the encoder they train."""

    optimizer: Optimizer  # given by the one who trains it

    def __init__(self, encoder: ConvEncoder, action_dim: int, hidden: Sequence[int]) -> None:
        super().__init__(encoder.features_dim, action_dim, hidden)
        self.encoder = encoder


class SquashedActor(nn.Module):
    """Mean and log-deviation of the action before tanh; ``encoder`` is None when the critic's is read."""

    optimizer: Optimizer  # given by the one who trains it

    def __init__(self, encoder: ConvEncoder | None, features_dim: int, action_dim: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = mlp(features_dim, hidden, 2 * action_dim)
        orthogonal(self.head)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = self.head(features).chunk(2, dim=-1)
        low, high = LOG_STD_RANGE
        return mean, low + 0.5 * (high - low) * (raw.tanh() + 1.0)


class CNNDrQModel(nn.Module):
    """Actor, twin critics and the critics' slow copy."""

    def __init__(
        self,
        image_shape: Sequence[int],
        action_dim: int,
        *,
        encoder: str = "nature",
        features_dim: int = 50,
        hidden: Sequence[int] = (256, 256),
        share_encoder: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        layers = architecture(encoder).layers

        def new_encoder() -> ConvEncoder:
            new = ConvEncoder(image_shape, layers, features_dim, normalize_features=True)
            orthogonal(new)
            channels_last(new)
            return new

        self.critic = ImageCritic(new_encoder(), action_dim, hidden)
        self.actor = SquashedActor(None if share_encoder else new_encoder(), features_dim, action_dim, hidden)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)

    def prepared(self, images: Tensor) -> Tensor:
        """Images in the form all three encoders read fastest."""
        return prepared(images, self.critic.encoder, self.dtype)

    def critic_features(self, images: Tensor) -> Tensor:
        """Features the critics read."""
        return encode(self.critic.encoder, images, self.dtype)

    def target_features(self, images: Tensor) -> Tensor:
        """Features the target critics read."""
        return encode(self.critic_target.encoder, images, self.dtype)

    def actor_features(self, images: Tensor, critic_features: Tensor | None = None) -> Tensor:
        """Features the actor reads: its own encoder's, or the critic's without a gradient.

        ``critic_features`` of the same images, where already known, save the second pass of a shared encoder.
        """
        if self.actor.encoder is not None:
            return encode(self.actor.encoder, images, self.dtype)
        if critic_features is None:
            with torch.no_grad():
                critic_features = self.critic_features(images)
        return critic_features.detach()

    def sample_actions(self, actor_features: Tensor) -> tuple[Tensor, Tensor]:
        """Actions drawn from the policy and their log-densities."""
        mean, log_std = self.actor(actor_features)
        return squashed_sample(mean, log_std)

    def act(self, images: Tensor, deterministic: bool = False) -> Tensor:
        """Actions for images, drawn or the policy's mode."""
        features = self.actor_features(images)
        if deterministic:
            mean: Tensor = self.actor(features)[0]
            return mean.tanh()
        return self.sample_actions(features)[0]

    def update_target(self, tau: float) -> None:
        """Move the slow copy a share ``tau`` of the way to the critics."""
        move_towards(self.critic_target, self.critic, tau)
