"""Networks that see: encoders, and the actor-critics of DrQ and DrQ-v2."""

from __future__ import annotations

from rl_training.models.cnn.drq import CNNDrQModel
from rl_training.models.cnn.drqv2 import CNNDrQv2Model
from rl_training.models.cnn.encoder import CompactCNN, ConvEncoder, NatureCNN

__all__ = ["CNNDrQModel", "CNNDrQv2Model", "CompactCNN", "ConvEncoder", "NatureCNN"]
