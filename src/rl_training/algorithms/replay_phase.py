"""What the updates of DrQ and DrQ-v2 share: batches from the replay, several losses descended at once, the log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from torch import Tensor
from torch.optim import Optimizer


def descend(*losses: tuple[Tensor, Optimizer]) -> None:
    """Step each optimiser down its own loss, which sends no gradient to the weights of the others.

    All gradients are taken before the first step, at the weights the losses were computed with.
    """
    for loss, optimizer in losses:
        optimizer.zero_grad()
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        torch.autograd.backward(loss, inputs=weights)
    for _, optimizer in losses:
        optimizer.step()


def replay_phase(
    algorithm: OffPolicyAlgorithm,
    update: Callable[[ReplayBufferSamples], dict[str, float]],
    gradient_steps: int,
    batch_size: int,
) -> None:
    """Run ``gradient_steps`` updates on batches from the replay and log the means of what they return."""
    algorithm.policy.set_training_mode(True)
    replay, normalizer = algorithm.replay_buffer, algorithm._vec_normalize_env
    assert replay is not None
    history = [update(replay.sample(batch_size, env=normalizer)) for _ in range(gradient_steps)]
    for name in history[0]:
        algorithm.logger.record(f"train/{name}", float(np.mean([metrics[name] for metrics in history])))
    algorithm.logger.record("train/n_updates", algorithm._n_updates, exclude="tensorboard")
