"""The library from Python: the algorithms, and their verbs on configurations and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rl_training.api.verbs import evaluate, predict, resume, train
from rl_training.exports import ALGORITHMS, lazy_exports

if TYPE_CHECKING:
    from rl_training.algorithms import DQN, PPG, PPO, SAC, DrQ, DrQv2

__all__ = ["DQN", "PPG", "PPO", "SAC", "DrQ", "DrQv2", "evaluate", "predict", "resume", "train"]
__getattr__, __dir__ = lazy_exports(__name__, ALGORITHMS)
