"""`MLPPPGModel` as a policy of stable-baselines3: spaces in, optimisers and ``predict`` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium import Space
from gymnasium.spaces import Discrete, flatdim
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor
from torch.optim import Adam

from rl_training.algorithms.spaces import observation_kind, require_spaces
from rl_training.models.cnn.encoder import ConvEncoder, architecture
from rl_training.models.mlp_ppg import MLPPPGModel


class PPGPolicy(BasePolicy):
    """Trunk of ``hidden`` layers on a vector, or on the features of the image encoder named ``encoder``."""

    encoder: str | None = None
    hidden: tuple[int, ...] = (64, 64)

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        lr_schedule: Schedule,
        use_sde: bool = False,
        *,
        hidden: Sequence[int] | None = None,
        encoder: str | None = None,
        detach_value: bool = False,
    ) -> None:
        super().__init__(observation_space, action_space)
        require_spaces("PPG", observation_space, action_space)
        assert isinstance(action_space, Discrete)
        assert not use_sde, "PPG acts by choice, which gSDE cannot explore"
        name = encoder or self.encoder
        if name is None and observation_kind(observation_space) == "image":
            name = "nature"
        network = None
        if name is not None:
            assert observation_space.shape is not None
            shape = architecture(name)
            network = ConvEncoder(observation_space.shape, shape.layers, shape.features_dim)
        self.model = MLPPPGModel(
            flatdim(observation_space),
            int(action_space.n),
            hidden=self.hidden if hidden is None else hidden,
            detach_value=detach_value,
            encoder=network,
        )
        learning_rate = lr_schedule(1)
        # The auxiliary head takes no part in the policy phase.
        ours = [weight for name, weight in self.model.named_parameters() if not name.startswith("aux_value_head")]
        self.optimizer = Adam(ours, lr=learning_rate, eps=1e-5)
        self.auxiliary_optimizer = Adam(self.model.parameters(), lr=learning_rate, eps=1e-5)

    def forward(self, observations: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values and log-probabilities, in stable-baselines3's order."""
        actions, log_prob, values = self.model.act(observations, deterministic)
        return actions, values, log_prob

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> Tensor:
        assert isinstance(observation, Tensor)
        return self.model.act(observation, deterministic)[0]


class NatureCnnPPGPolicy(PPGPolicy):
    """PPG from whole camera images."""

    encoder = "nature"
    hidden = ()


class CompactCnnPPGPolicy(PPGPolicy):
    """PPG from small grey stacks."""

    encoder = "compact"
    hidden = ()
