"""What the specification promises of the research loop: the proposal follows the rewards, settings survive encoding."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from rl_training.autoresearch.acquisition import Observation, suggest
from rl_training.autoresearch.champion import ChampionTracker
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


def test_champion_tracking(tmp_path):
    tracker = ChampionTracker(tmp_path / "champion")
    crowned = []
    for trial, reward in enumerate([50, 80, 60, 90, 70]):
        model = tmp_path / f"trial-{trial}.zip"
        model.write_bytes(b"weights of trial %d" % trial)
        if tracker.update_if_better(reward, {"trial": trial}, model):
            crowned.append(trial)
            assert (tmp_path / "champion" / "model.zip").read_bytes() == model.read_bytes()
    assert crowned == [0, 1, 3]
    assert tracker.mean_reward == 90
    assert tracker.manifest["params"] == {"trial": 3}
    assert (tmp_path / "champion" / "model.zip").read_bytes() == b"weights of trial 3"


SPECIFIED = {
    "autoresearch_controller": (
        "--agent dqn --explore 2 --min-timesteps 5000 --max-timesteps 9000 --push-every 10 --min-trials-before-gp 3 "
        "--trials 0",
        (2, "--trials is 0; expected 1 or more"),
    ),
    "donkeycar_outer_loop": ("--agent dqn --grid n_steer=3,many", (2, "n_steer cannot be 'many'")),
    "evaluate_champion": (
        "--model nowhere --env donkey-warren-track-v0 --episodes 2",
        (1, "There is no model at nowhere"),
    ),
}


@pytest.mark.parametrize("script", SPECIFIED)
def test_the_scripts_take_the_specified_flags_up_to_the_first_mistake(script):
    flags, (code, said) = SPECIFIED[script]
    path = Path(__file__).parents[1] / "agent" / f"{script}.py"
    found = subprocess.run([sys.executable, str(path), *flags.split()], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr.count("\n")) == (code, 1), found.stderr
    assert said in found.stderr
