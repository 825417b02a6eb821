"""What PPG keeps of its rollouts until the auxiliary phase: observations as they came, and returns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class AuxiliaryMemory(nn.Module):
    """A list of rollouts, observations ``(B, ...)`` and returns ``(B,)`` each.

    It is a module only so that a checkpoint holds it beside the weights, and no more of it than is filled.
    """

    def __init__(self) -> None:
        super().__init__()
        self.observations: list[Tensor] = []
        self.returns: list[Tensor] = []

    def __len__(self) -> int:
        return len(self.returns)

    def add(self, observations: Tensor, returns: Tensor) -> None:
        """Remember a rollout; the tensors are copied, since rollout buffers are used again."""
        self.observations.append(observations.clone())
        self.returns.append(returns.clone())

    def contents(self) -> tuple[Tensor, Tensor]:
        """Everything remembered, in one piece."""
        return torch.cat(self.observations), torch.cat(self.returns)

    def clear(self) -> None:
        """Forget everything."""
        self.observations, self.returns = [], []

    def get_extra_state(self) -> dict[str, Any]:
        return {"observations": self.observations, "returns": self.returns}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.observations, self.returns = list(state["observations"]), list(state["returns"])
