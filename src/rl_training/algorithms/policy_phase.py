"""Minibatch epochs of PPO's loss over one rollout: the update of PPO and the policy phase of PPG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from stable_baselines3.common.buffers import RolloutBuffer
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from rl_training.algorithms.actor_critic import ActorCritic
from rl_training.losses.ppo import PPOLoss, normalize_advantages


class RolloutData(NamedTuple):
    """A rollout flattened to ``(T·N, ...)``, in the order of `RolloutBuffer`."""

    observations: Tensor
    actions: Tensor
    old_values: Tensor
    old_log_prob: Tensor
    advantages: Tensor
    returns: Tensor

    def take(self, rows: Tensor) -> RolloutData:
        """Those rows of every tensor."""
        return RolloutData(*(tensor.index_select(0, rows) for tensor in self))


def rollout_data(buffer: RolloutBuffer, device: torch.device) -> RolloutData:
    """The rollout as tensors; on a CPU they are the buffer's own memory."""
    arrays = (
        buffer.observations,
        buffer.actions,
        buffer.values,
        buffer.log_probs,
        buffer.advantages,
        buffer.returns,
    )
    return RolloutData(*(torch.as_tensor(array, device=device).flatten(0, 1) for array in arrays))


def use_fused_adam(optimizer: Optimizer) -> None:
    """One kernel call a step instead of several for every weight; the state on file stays the same."""
    if isinstance(optimizer, Adam):
        for group in optimizer.param_groups:
            group["fused"], group["foreach"] = True, False


def step(optimizer: Optimizer, loss: Tensor, parameters: Sequence[nn.Parameter], max_norm: float) -> None:
    """Descend ``loss`` with the gradient's norm held to ``max_norm``."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(parameters, max_norm, foreach=True)
    optimizer.step()


def policy_phase(
    actor_critic: ActorCritic,
    optimizer: Optimizer,
    data: RolloutData,
    loss_of: Callable[[RolloutData, Tensor, Tensor, Tensor], PPOLoss],
    *,
    n_epochs: int,
    batch_size: int,
    max_grad_norm: float,
    normalize_advantage: bool = True,
    target_kl: float | None = None,
) -> list[list[PPOLoss]]:
    """Train for ``n_epochs``, fewer when the policy has moved 1.5 ``target_kl`` away; the losses of each epoch.

    ``loss_of`` is given a minibatch and, for it, log-probabilities, entropies and values by the policy as it is now.
    """
    use_fused_adam(optimizer)
    parameters = [weight for group in optimizer.param_groups for weight in group["params"]]
    history: list[list[PPOLoss]] = []
    for _ in range(n_epochs):
        history.append([])
        for rows in torch.split(torch.randperm(len(data.returns), device=data.returns.device), batch_size):
            batch = data.take(rows)
            if normalize_advantage:
                batch = batch._replace(advantages=normalize_advantages(batch.advantages))
            features = actor_critic.features(batch.observations)
            log_prob, entropy = actor_critic.distribution.log_prob_and_entropy(
                actor_critic.action_parameters(features), batch.actions
            )
            loss = loss_of(batch, log_prob, entropy, actor_critic.values(features))
            history[-1].append(PPOLoss(*(part.detach() for part in loss)))
            if target_kl is not None and loss.approx_kl > 1.5 * target_kl:
                return history
            step(optimizer, loss.loss, parameters, max_grad_norm)
    return history


def mean_losses(losses: Sequence[PPOLoss]) -> dict[str, float]:
    """The mean of each part, by name."""
    means = torch.stack([torch.stack(loss) for loss in losses]).mean(dim=0).tolist()
    return dict(zip(PPOLoss._fields, means))
