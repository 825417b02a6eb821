"""Names a package offers without importing what they need: torch is loaded when one of them is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

ALGORITHMS = {
    "PPO": "rl_training.algorithms.ppo",
    "PPG": "rl_training.algorithms.ppg",
    "DrQ": "rl_training.algorithms.drq",
    "DrQv2": "rl_training.algorithms.drqv2",
    # As stable-baselines3 has them.
    "DQN": "stable_baselines3",
    "SAC": "stable_baselines3",
}
LOSSES_AND_MODELS = {
    "drq_loss": "rl_training.losses.drq",
    "ppg_loss": "rl_training.losses.ppg",
    "ppg_auxiliary_loss": "rl_training.losses.ppg",
    "CNNDrQModel": "rl_training.models.cnn.drq",
    "MLPPPGModel": "rl_training.models.mlp_ppg",
}


def lazy_exports(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose ``names`` live in the modules given."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(names[name]), name)

    def names_offered() -> list[str]:
        return sorted(names)

    return get, names_offered
