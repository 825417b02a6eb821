"""The two losses of phasic policy gradient (Cobbe et al. 2020, arXiv:2009.04416).

The policy phase minimises PPO's loss. The auxiliary phase distils values into the policy's trunk while a copy of the
policy taken at its start holds the policy still. ``B`` is the size of a minibatch, ``A`` the number of actions.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional

from rl_training.losses.ppo import PPOLoss, ppo_loss

PPGLoss = PPOLoss

#: The policy phase of PPG is PPO, so its loss is the same function under the name readers of the paper look for.
ppg_loss = ppo_loss


class PPGAuxiliaryLoss(NamedTuple):
    """``auxiliary_loss`` is what to differentiate; the rest are its parts."""

    auxiliary_loss: Tensor
    aux_value_loss: Tensor
    behavior_clone_loss: Tensor
    value_clone_loss: Tensor


def ppg_auxiliary_loss(
    logits: Tensor,
    teacher_logits: Tensor,
    aux_values: Tensor,
    values: Tensor,
    returns: Tensor,
    *,
    beta_clone: float = 1.0,
) -> PPGAuxiliaryLoss:
    """L_joint + L_value: ½E[(V_aux − R)²] + β E[KL(π_old ‖ π)] + ½E[(V − R)²], section 2 of the paper.

    ``logits`` and ``teacher_logits`` are ``(B, A)``, the rest ``(B,)``. The teacher and the returns are constants:
    no gradient reaches them.
    """
    assert logits.dim() == 2, f"expected (B, A), got {tuple(logits.shape)}"
    assert logits.shape == teacher_logits.shape, f"expected {tuple(logits.shape)}, got {tuple(teacher_logits.shape)}"
    for tensor in (aux_values, values, returns):
        assert tensor.shape == logits.shape[:1], f"expected (B,), got {tuple(tensor.shape)}"

    returns = returns.detach()
    aux_value_loss = 0.5 * (aux_values - returns).square().mean()
    value_clone_loss = 0.5 * (values - returns).square().mean()
    behavior_clone_loss = functional.kl_div(
        logits.log_softmax(dim=-1), teacher_logits.detach().log_softmax(dim=-1), reduction="batchmean", log_target=True
    )
    auxiliary_loss = aux_value_loss + beta_clone * behavior_clone_loss + value_clone_loss
    return PPGAuxiliaryLoss(auxiliary_loss, aux_value_loss, behavior_clone_loss, value_clone_loss)
