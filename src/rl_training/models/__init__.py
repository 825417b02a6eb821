"""The networks, torch only: what an algorithm trains, without knowing how."""

from __future__ import annotations

from rl_training.models.cnn import CNNDrQModel, CNNDrQv2Model, CompactCNN, NatureCNN
from rl_training.models.mlp_ppg import MLPPPGModel

__all__ = ["CNNDrQModel", "CNNDrQv2Model", "CompactCNN", "MLPPPGModel", "NatureCNN"]
