"""The algorithms; the only room, beside `runtime`, that knows stable-baselines3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rl_training.exports import ALGORITHMS, lazy_exports

if TYPE_CHECKING:
    from stable_baselines3 import DQN, SAC

    from rl_training.algorithms.drq import DrQ
    from rl_training.algorithms.drqv2 import DrQv2
    from rl_training.algorithms.ppg import PPG
    from rl_training.algorithms.ppo import PPO

__all__ = ["DQN", "PPG", "PPO", "SAC", "DrQ", "DrQv2"]
__getattr__, __dir__ = lazy_exports(__name__, ALGORITHMS)
