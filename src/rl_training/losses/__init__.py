"""What each algorithm minimises: pure functions from tensors to named scalars, torch only."""

from __future__ import annotations

from rl_training.losses.drq import DrQLoss, drq_loss, temperature_loss
from rl_training.losses.drqv2 import DrQv2Loss, drqv2_loss
from rl_training.losses.ppg import PPGAuxiliaryLoss, PPGLoss, ppg_auxiliary_loss, ppg_loss
from rl_training.losses.ppo import PPOLoss, normalize_advantages, ppo_loss

__all__ = [
    "DrQLoss",
    "DrQv2Loss",
    "PPGAuxiliaryLoss",
    "PPGLoss",
    "PPOLoss",
    "drq_loss",
    "drqv2_loss",
    "normalize_advantages",
    "ppg_auxiliary_loss",
    "ppg_loss",
    "ppo_loss",
    "temperature_loss",
]
