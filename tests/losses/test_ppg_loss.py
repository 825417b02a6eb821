"""PPG's losses on numbers worked by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rl_training.losses import ppg_auxiliary_loss, ppg_loss, ppo_loss


def test_the_policy_phase_is_ppo() -> None:
    assert ppg_loss is ppo_loss
    names = set(ppg_loss(*[torch.zeros(2)] * 6, clip_range=0.2)._fields)
    assert names >= {"loss", "policy_loss", "value_loss", "entropy_loss", "approx_kl", "clip_fraction"}


def test_auxiliary_numbers_worked_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    teacher = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    loss = ppg_auxiliary_loss(
        logits,
        teacher,
        aux_values=torch.tensor([1.0, 2.0]),
        values=torch.tensor([0.0, 4.0]),
        returns=torch.tensor([1.0, 1.0]),
        beta_clone=2.0,
    )
    assert loss.aux_value_loss.item() == pytest.approx(0.5 * (0 + 1) / 2)
    assert loss.value_clone_loss.item() == pytest.approx(0.5 * (1 + 9) / 2)
    # KL(teacher ‖ now) of the second row: ¾ log(¾/½) + ¼ log(¼/½).
    kl = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert loss.behavior_clone_loss.item() == pytest.approx(kl / 2)
    assert loss.auxiliary_loss.item() == pytest.approx(0.25 + 2 * kl / 2 + 2.5)


def test_the_unchanged_policy_is_at_the_minimum_of_the_clone_term() -> None:
    logits = torch.randn(5, 3, requires_grad=True)
    zeros = torch.zeros(5)
    loss = ppg_auxiliary_loss(logits, logits.detach() + 7.0, zeros, zeros, zeros)
    loss.behavior_clone_loss.backward()
    assert loss.behavior_clone_loss.item() == pytest.approx(0.0, abs=1e-6)
    assert logits.grad.abs().max() < 1e-6


def test_no_gradient_reaches_the_teacher_or_the_returns() -> None:
    teacher = torch.randn(4, 2, requires_grad=True)
    returns = torch.randn(4, requires_grad=True)
    logits = torch.randn(4, 2, requires_grad=True)
    ppg_auxiliary_loss(logits, teacher, torch.randn(4), torch.randn(4), returns).auxiliary_loss.backward()
    assert logits.grad is not None
    assert teacher.grad is None
    assert returns.grad is None


def test_mismatched_shapes_are_refused() -> None:
    with pytest.raises(AssertionError, match="expected"):
        ppg_auxiliary_loss(torch.zeros(4, 2), torch.zeros(4, 2), torch.zeros(4, 1), torch.zeros(4), torch.zeros(4))
