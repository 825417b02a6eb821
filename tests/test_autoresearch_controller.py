"""What the specification promises of the research loop: the proposal follows the rewards, settings survive encoding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rl_training.autoresearch.acquisition import Observation, suggest
from rl_training.autoresearch.space import default_space


def base_sweep(seed: int) -> list[Observation]:
    """The 18 records of the grid sweep: better with more steering steps and with a higher learning rate, and noisy."""
    rng = np.random.default_rng(seed)
    records = []
    for n_steer, n_throttle, rate in product((3, 5, 7), (2, 3), (1e-3, 5e-4, 1e-4)):
        reward = 20 + 9 * (n_steer - 3) + 30 * np.log10(rate / 1e-4) + 2 * (n_throttle - 2) + 3 * rng.standard_normal()
        records.append(
            Observation({"n_steer": n_steer, "n_throttle": n_throttle, "learning_rate": rate}, float(reward))
        )
    return records


@pytest.mark.parametrize("seed", range(4))
def test_ucb_proposal_in_high_reward_region(seed):
    proposal = suggest(default_space("dqn"), base_sweep(seed), [], seed)
    assert proposal.rule == "UCB"
    assert 6 <= proposal.params["n_steer"] <= 9
    assert 0.001 <= proposal.params["learning_rate"] <= 0.004


def test_param_roundtrip():
    space = default_space("dqn")
    params = {"n_steer": 7, "n_throttle": 3, "learning_rate": 0.002}
    decoded = space.decode(space.encode(params))
    assert {name: decoded[name] for name in params} == params
    assert isinstance(decoded["n_steer"], int)
