"""The state of every generator an algorithm draws from, so that a resumed run goes on with the same numbers.

``save`` of stable-baselines3 keeps weights, optimisers and counters; this is the rest, apart from the environment.
Restore it after loading, since loading seeds anew.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm


def random_state(model: BaseAlgorithm) -> dict[str, Any]:
    """Generators of Python, numpy and torch, and the one that draws the first random actions."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002 - stable-baselines3 draws from the global one
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
        "action_space": model.action_space.np_random.bit_generator.state,
    }


def set_random_state(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Go on from `random_state`."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    torch.cuda.set_rng_state_all(state["cuda"])
    model.action_space.np_random.bit_generator.state = state["action_space"]
