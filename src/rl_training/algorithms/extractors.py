"""Our encoders in the shape stable-baselines3's policies take them, for PPO, DQN and SAC alike.

Use ``PPO("CompactCnnPolicy", ...)``, or ``policy_kwargs={"features_extractor_class": CompactExtractor}`` with any of
its algorithms.
"""

from __future__ import annotations

from typing import Any

from gymnasium import Space
from gymnasium.spaces import Box
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from rl_training.errors import SpaceError
from rl_training.models.cnn.encoder import CompactCNN


class CompactExtractor(BaseFeaturesExtractor):
    """`CompactCNN` on channel-first images."""

    def __init__(self, observation_space: Space[Any], features_dim: int = 128) -> None:
        super().__init__(observation_space, features_dim)
        if not isinstance(observation_space, Box) or len(observation_space.shape) != 3:
            raise SpaceError(
                f"CompactExtractor sees images (channels, height, width) and got {observation_space}; use MlpPolicy."
            )
        network = CompactCNN(observation_space.shape, features_dim)
        self.cnn, self.linear = network.cnn, network.linear

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.linear(self.cnn(observations))
        return features


class CompactCnnPolicy(ActorCriticPolicy):
    """Actor and critic as one linear layer each on `CompactCNN`, unless told otherwise."""

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], lr_schedule: Schedule, **kwargs: Any
    ) -> None:
        kwargs.setdefault("features_extractor_class", CompactExtractor)
        kwargs.setdefault("net_arch", [])
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)
