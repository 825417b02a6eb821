"""Cars that learn to drive from their camera, and the research loop that makes a champion of one.

Importing the package registers the ``donkey-…`` env ids and loads neither torch nor numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rl_training.envs.registration import register_envs
from rl_training.exports import ALGORITHMS, LOSSES_AND_MODELS, lazy_exports

if TYPE_CHECKING:
    from rl_training.algorithms import DQN, PPG, PPO, SAC, DrQ, DrQv2
    from rl_training.losses import drq_loss, ppg_auxiliary_loss, ppg_loss
    from rl_training.models import CNNDrQModel, MLPPPGModel

__version__ = "0.1.0"
__all__ = [
    "DQN",
    "PPG",
    "PPO",
    "SAC",
    "CNNDrQModel",
    "DrQ",
    "DrQv2",
    "MLPPPGModel",
    "drq_loss",
    "ppg_auxiliary_loss",
    "ppg_loss",
]
__getattr__, __dir__ = lazy_exports(__name__, ALGORITHMS | LOSSES_AND_MODELS)

register_envs()
