"""PPO's loss on numbers worked by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rl_training.losses import normalize_advantages, ppo_loss


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def loss_of(log_prob: torch.Tensor, **changes: object):
    arguments: dict = {
        "old_log_prob": torch.zeros_like(log_prob),
        "advantages": tensor(1.0, 1.0, -1.0, -1.0),
        "values": tensor(0.0, 1.0, 2.0, 3.0),
        "returns": tensor(1.0, 1.0, 1.0, 1.0),
        "entropy": tensor(0.5, 0.5, 0.5, 0.9),
        "clip_range": 0.2,
        "value_coef": 0.5,
        "entropy_coef": 0.1,
    }
    arguments.update(changes)
    return ppo_loss(log_prob, **arguments)


def test_numbers_worked_by_hand() -> None:
    log_prob = tensor(math.log(1.5), math.log(0.5), math.log(1.5), math.log(0.5))
    loss = loss_of(log_prob)
    # min(r·A, clip(r)·A): 1.2, 0.5, −1.5, −0.8  →  mean −0.15, turned.
    assert loss.policy_loss.item() == pytest.approx(0.15)
    assert loss.value_loss.item() == pytest.approx((1 + 0 + 1 + 4) / 4)
    assert loss.entropy_loss.item() == pytest.approx(-0.6)
    assert loss.loss.item() == pytest.approx(0.15 + 0.5 * 1.5 - 0.1 * 0.6)
    assert loss.clip_fraction.item() == 1.0
    expected_kl = ((0.5 - math.log(1.5)) * 2 + (-0.5 - math.log(0.5)) * 2) / 4
    assert loss.approx_kl.item() == pytest.approx(expected_kl)


def test_before_the_first_step_the_ratio_is_one_and_the_gradient_is_minus_the_advantage() -> None:
    log_prob = tensor(-0.3, -1.0, -2.0, -0.1).requires_grad_()
    loss = loss_of(log_prob, old_log_prob=log_prob.detach().clone(), advantages=tensor(1.0, -2.0, 3.0, 0.5))
    loss.policy_loss.backward()
    assert loss.approx_kl.item() == 0.0
    assert loss.clip_fraction.item() == 0.0
    torch.testing.assert_close(log_prob.grad, -tensor(1.0, -2.0, 3.0, 0.5) / 4)


def test_a_clipped_sample_pulls_no_further() -> None:
    """Only where moving on would raise the objective; the way back stays open."""
    log_prob = tensor(math.log(1.5), math.log(0.5), math.log(1.5), math.log(0.5)).requires_grad_()
    loss_of(log_prob).policy_loss.backward()
    assert log_prob.grad is not None
    assert log_prob.grad[0] == 0.0  # good action, already much likelier
    assert log_prob.grad[3] == 0.0  # bad action, already much rarer
    assert log_prob.grad[1] < 0 < log_prob.grad[2]


def test_a_clipped_value_moves_at_most_the_range() -> None:
    values = tensor(0.0, 1.0, 2.0, 3.0).requires_grad_()
    loss = loss_of(tensor(0, 0, 0, 0), values=values, old_values=tensor(0.9, 1.0, 1.0, 1.0), value_clip_range=0.5)
    # Clipped values: 0.4, 1.0, 1.5, 1.5.
    assert loss.value_loss.item() == pytest.approx((0.36 + 0 + 0.25 + 0.25) / 4)
    loss.value_loss.backward()
    assert torch.equal(values.grad, torch.zeros_like(values))


def test_advantages_are_centred_and_scaled_except_a_lone_one() -> None:
    torch.testing.assert_close(normalize_advantages(tensor(1.0, 3.0)), tensor(-1.0, 1.0) / math.sqrt(2))
    assert normalize_advantages(tensor(5.0)).item() == 5.0


def test_mismatched_shapes_are_refused() -> None:
    with pytest.raises(AssertionError, match="expected"):
        loss_of(tensor(0, 0, 0, 0), values=tensor(0.0, 1.0, 2.0, 3.0).unsqueeze(1))
