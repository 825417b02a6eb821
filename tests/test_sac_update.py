"""SAC and DQN are stable-baselines3's; what is ours is the replay and the encoders they may use."""

from __future__ import annotations

import copy
from typing import Any

import stable_baselines3
import torch

from rl_training import DQN, SAC
from rl_training.algorithms.extractors import CompactExtractor
from rl_training.algorithms.replay import ImageReplayBuffer

IMAGES: dict[str, Any] = {
    "replay_buffer_class": ImageReplayBuffer,
    "replay_buffer_kwargs": {"frame_stack": 2, "n_steps": 2, "gamma": 0.9},
    "policy_kwargs": {"features_extractor_class": CompactExtractor, "net_arch": [32]},
    "gamma": 0.9,
    "buffer_size": 200,
    "learning_starts": 10,
    "batch_size": 8,
    "train_freq": 1,
    "seed": 1,
    "device": "cpu",
}


def test_they_are_the_originals() -> None:
    assert SAC is stable_baselines3.SAC
    assert DQN is stable_baselines3.DQN


def test_sac_moves_actor_critics_and_temperature(walk: Any) -> None:
    model = SAC("MlpPolicy", walk(), learning_starts=10, batch_size=16, seed=1, device="cpu")
    before = [weight.clone() for weight in model.policy.parameters()]
    model.learn(20)
    assert model._n_updates == 10
    assert any(not torch.equal(a, b) for a, b in zip(before, model.policy.parameters()))
    assert model.log_ent_coef.item() != 0.0


def test_both_learn_from_images_through_our_replay_and_encoder(brightness: Any) -> None:
    for cls, discrete in ((SAC, False), (DQN, True)):
        model = cls("CnnPolicy", brightness(discrete=discrete), **copy.deepcopy(IMAGES)).learn(30)
        assert model._n_updates > 0
        assert all(torch.isfinite(weight).all() for weight in model.policy.parameters())
