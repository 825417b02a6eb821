"""The losses of DrQ and DrQ-v2 on numbers worked by hand."""

from __future__ import annotations

import pytest
import torch

from rl_training.losses import drq_loss, drqv2_loss, temperature_loss

DRQ = {
    "q1": [[1.0, 0.0], [3.0, 0.0]],
    "q2": [[2.0, 0.0], [2.0, 0.0]],
    "next_q1": [[4.0, 9.0], [6.0, 9.0]],
    "next_q2": [[5.0, 9.0], [2.0, 9.0]],
    "next_log_prob": [[-1.0, 0.0], [1.0, 0.0]],
    "rewards": [1.0, -1.0],
    "discounts": [0.5, 0.0],
    "actor_q1": [2.0, 5.0],
    "actor_q2": [3.0, 1.0],
    "log_prob": [-1.0, 3.0],
}


def drq_tensors(**requires_grad: bool) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=requires_grad.get(name, False)) for name, value in DRQ.items()}


def test_drq_numbers_worked_by_hand() -> None:
    loss = drq_loss(**drq_tensors(), alpha=0.1)
    # Views of the first next state: min(4,5) + .1 = 4.1 and min(6,2) − .1 = 1.9, mean 3; the second terminated.
    targets = [1 + 0.5 * 3.0, -1.0]
    assert loss.target_q_mean.item() == pytest.approx(sum(targets) / 2)
    q1_error = (1.5**2 + 0.5**2 + 1 + 1) / 4
    q2_error = (0.5**2 + 0.5**2 + 1 + 1) / 4
    assert loss.critic_loss.item() == pytest.approx(0.5 * (q1_error + q2_error))
    assert loss.entropy_term.item() == pytest.approx(0.1 * 1.0)
    assert loss.actor_loss.item() == pytest.approx(0.1 - (2 + 1) / 2)
    assert set(loss._fields) == {"critic_loss", "actor_loss", "target_q_mean", "entropy_term"}


def test_drq_targets_are_constants() -> None:
    names = ("next_q1", "next_q2", "next_log_prob", "q1", "log_prob", "actor_q2")
    tensors = drq_tensors(**dict.fromkeys(names, True))
    alpha = torch.tensor(0.1, requires_grad=True)
    loss = drq_loss(**tensors, alpha=alpha)
    (loss.critic_loss + loss.actor_loss).backward()
    assert all(tensors[name].grad is None for name in ("next_q1", "next_q2", "next_log_prob"))
    assert alpha.grad is None
    torch.testing.assert_close(tensors["log_prob"].grad, torch.tensor([0.05, 0.05]))
    torch.testing.assert_close(tensors["actor_q2"].grad, torch.tensor([0.0, -0.5]))
    # d/dq of ½ mean (q − y)²: (q − y) / (M·B).
    torch.testing.assert_close(tensors["q1"].grad, torch.tensor([[-1.5, 1.0], [0.5, 1.0]]) / 4)


def test_temperature_rises_while_the_policy_is_too_certain() -> None:
    log_alpha = torch.tensor([0.0], requires_grad=True)
    temperature_loss(log_alpha, torch.tensor([3.0, 1.0]), target_entropy=-1.0).backward()
    # Entropy is −2 where −1 is wanted: descending this gradient raises log α.
    assert log_alpha.grad.item() == pytest.approx(-1.0)


def test_drqv2_numbers_worked_by_hand() -> None:
    q1 = torch.tensor([1.0, 0.0], requires_grad=True)
    next_q1 = torch.tensor([4.0, 9.0], requires_grad=True)
    loss = drqv2_loss(
        q1,
        torch.tensor([2.0, 0.0]),
        next_q1,
        torch.tensor([3.0, 8.0]),
        rewards=torch.tensor([1.0, -1.0]),
        discounts=torch.tensor([0.5, 0.0]),
        actor_q1=torch.tensor([1.0, 5.0]),
        actor_q2=torch.tensor([2.0, 3.0]),
    )
    assert loss.target_q_mean.item() == pytest.approx((2.5 - 1) / 2)
    assert loss.critic_loss.item() == pytest.approx((1.5**2 + 1) / 2 + (0.5**2 + 1) / 2)
    assert loss.actor_loss.item() == pytest.approx(-(1 + 3) / 2)
    loss.critic_loss.backward()
    assert next_q1.grad is None
    torch.testing.assert_close(q1.grad, torch.tensor([-1.5, 1.0]))


@pytest.mark.parametrize("name", ["q1", "next_q2", "rewards", "log_prob"])
def test_mismatched_shapes_are_refused(name: str) -> None:
    tensors = drq_tensors()
    tensors[name] = tensors[name].unsqueeze(-1)
    with pytest.raises(AssertionError, match="expected"):
        drq_loss(**tensors, alpha=0.1)
