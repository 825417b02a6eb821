"""A batch that is saved, pickled and loaded into a fresh one goes on bit for bit, past episode ends and new roads."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rl_training.envs.spec import POLICY_VIEW, ActionSpec, EnvSpec, Limits, StartSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import UsageError
from rl_training.simulator.randomize import DomainRandomization

SPEC = EnvSpec(
    tracks=("random:train", "generated_track", "generated_road"),
    observation=POLICY_VIEW,
    action=ActionSpec(normalized=True, steer_rate=0.2),
    start=StartSpec(anywhere=True, offset=1.0, angle=10.0),
    limits=Limits(max_cte=4.0, max_steps=25, stuck_steps=12, no_progress_steps=20),
    randomization=DomainRandomization.preset("strong"),
)


def drive(env: DonkeyVecEnv, first: int, steps: int) -> list[Any]:
    told = []
    for k in range(first, first + steps):
        actions = np.random.default_rng(k).uniform(-1.0, 1.0, (env.num_envs, 2))
        actions[:, 1] = abs(actions[:, 1])
        frames, rewards, dones, infos = env.step(actions)
        told.append((frames.copy(), rewards, dones, [info.get("end_cause") for info in infos]))
    return told


@pytest.mark.parametrize("reward", ["donkey", "v4b", "v6", "v7", "race"])
def test_a_loaded_batch_goes_on_bit_for_bit(reward: str) -> None:
    spec = replace(SPEC, reward=reward)
    env = DonkeyVecEnv(spec, 3, seed=5)
    env.reset()
    drive(env, 0, 17)
    saved = pickle.dumps(env.save_state())
    expected = drive(env, 17, 50)
    assert sum(dones.sum() for _, _, dones, _ in expected) >= 6  # episodes did end, of each car

    other = DonkeyVecEnv(spec, 3, seed=99)
    other.load_state(pickle.loads(saved))
    for ours, theirs in zip(drive(other, 17, 50), expected):
        for mine, their in zip(ours, theirs):
            np.testing.assert_array_equal(mine, their)


def test_a_state_of_another_size_is_refused() -> None:
    env = DonkeyVecEnv(SPEC, 2, seed=0)
    env.reset()
    with pytest.raises(UsageError, match=r"2 cars were saved; this batch has 3"):
        DonkeyVecEnv(SPEC, 3).load_state(env.save_state())
