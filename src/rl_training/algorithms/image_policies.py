"""`CNNDrQModel` and `CNNDrQv2Model` as policies of stable-baselines3: spaces in, optimisers and ``predict`` out."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import Space
from gymnasium.spaces import Box
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor
from torch.optim import Adam

from rl_training.algorithms.spaces import require_spaces
from rl_training.models.cnn.drq import CNNDrQModel, ImageCritic, SquashedActor
from rl_training.models.cnn.drqv2 import CNNDrQv2Model


def _shapes(algorithm: str, observation_space: Space[Any], action_space: Space[Any]) -> tuple[tuple[int, ...], int]:
    """The shape of the images and the length of an action."""
    require_spaces(algorithm, observation_space, action_space)
    assert isinstance(observation_space, Box)
    assert isinstance(action_space, Box)
    return observation_space.shape, action_space.shape[0]


class DrQPolicy(BasePolicy):
    """Arguments of `CNNDrQModel` are passed on; ``use_sde`` is there for SAC, which always gives it."""

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        lr_schedule: Schedule,
        use_sde: bool = False,
        **model_kwargs: Any,
    ) -> None:
        super().__init__(observation_space, action_space, squash_output=True)
        assert not use_sde, "DrQ explores by its own Gaussian, not by gSDE"
        self.model = CNNDrQModel(*_shapes("DrQ", observation_space, action_space), **model_kwargs)
        self.actor.optimizer = Adam(self.actor.parameters(), lr=lr_schedule(1), fused=True)
        self.critic.optimizer = Adam(self.critic.parameters(), lr=lr_schedule(1), fused=True)

    @property
    def actor(self) -> SquashedActor:
        return self.model.actor

    @property
    def critic(self) -> ImageCritic:
        return self.model.critic

    @property
    def critic_target(self) -> ImageCritic:
        return self.model.critic_target

    def forward(self, observations: Tensor, deterministic: bool = False) -> Tensor:
        """Actions in [−1, 1]."""
        return self.model.act(observations, deterministic)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> Tensor:
        assert isinstance(observation, Tensor)
        return self.model.act(observation, deterministic)


class DrQv2Policy(BasePolicy):
    """Arguments of `CNNDrQv2Model` are passed on; actions carry noise of ``exploration_std`` unless deterministic."""

    exploration_std: Tensor

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], lr_schedule: Schedule, **model_kwargs: Any
    ) -> None:
        super().__init__(observation_space, action_space, squash_output=True)
        self.model = CNNDrQv2Model(*_shapes("DrQv2", observation_space, action_space), **model_kwargs)
        seeing_critic = [*self.model.encoder.parameters(), *self.model.critic.parameters()]
        self.actor_optimizer = Adam(self.model.actor.parameters(), lr=lr_schedule(1), fused=True)
        self.critic_optimizer = Adam(seeing_critic, lr=lr_schedule(1), fused=True)
        self.register_buffer("exploration_std", torch.tensor(0.0))

    def forward(self, observations: Tensor, deterministic: bool = False) -> Tensor:
        """Actions in [−1, 1]."""
        return self._predict(observations, deterministic)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> Tensor:
        assert isinstance(observation, Tensor)
        return self.model.act(observation, 0.0 if deterministic else float(self.exploration_std))
