"""DrQ-v2: what an update does, how its noise fades, what its file remembers, what it learns."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl_training import DrQv2
from rl_training.algorithms.randomness import random_state, set_random_state
from rl_training.errors import SpaceError

SMALL: dict[str, Any] = {
    "frame_stack": 2,
    "buffer_size": 500,
    "learning_starts": 20,
    "batch_size": 16,
    "seed": 5,
    "device": "cpu",
    "policy_kwargs": {"encoder": "compact", "hidden": (64,)},
}


def weights(model: DrQv2) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in model.policy.parameters()]


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_an_update_names_its_losses_and_moves_every_part(brightness: Any) -> None:
    model = DrQv2("CnnPolicy", brightness(), **{**SMALL, "learning_starts": 10**6}).learn(40)
    network = model.policy.model
    parts = (network.encoder, network.actor, network.critic, network.critic_target)
    before = [[weight.clone() for weight in part.parameters()] for part in parts]
    metrics = model.update(model.replay_buffer.sample(16))
    assert set(metrics) >= {"critic_loss", "actor_loss", "target_q_mean", "algorithm_updates"}
    assert np.isfinite(list(metrics.values())).all()
    assert metrics["algorithm_updates"] == model._n_updates == 1
    for part, old in zip(parts, before):
        assert not any(torch.equal(a, b) for a, b in zip(part.parameters(), old, strict=True))


def test_the_target_looks_n_steps_ahead(brightness: Any) -> None:
    """With the critics' output layers at zero, the target is the discounted sum of the rewards alone."""
    model = DrQv2("CnnPolicy", brightness(), **{**SMALL, "learning_starts": 10**6}, n_steps=3, gamma=0.5).learn(40)
    for q in (model.policy.model.critic_target.q1, model.policy.model.critic_target.q2):
        torch.nn.init.zeros_(q[-1].weight)
    batch = model.replay_buffer.sample(64)
    assert model.update(batch)["target_q_mean"] == pytest.approx(batch.rewards.mean().item(), abs=1e-5)
    # Episodes of six steps, cut by a limit: two of six transitions see fewer than three rewards, none ends.
    assert sorted(batch.discounts.unique().tolist()) == [0.125, 0.25, 0.5]
    assert batch.dones.sum() == 0


def test_the_noise_fades_by_plan(brightness: Any) -> None:
    model = DrQv2("CnnPolicy", brightness(), noise=(1.0, 0.2, 100), **{**SMALL, "learning_starts": 0, "batch_size": 2})
    assert model.exploration_std() == 1.0
    model.learn(50)
    assert model.exploration_std() == pytest.approx(0.6)
    assert float(model.policy.exploration_std) == pytest.approx(0.6)
    obs, _ = brightness().reset(seed=0)
    drawn = [float(model.predict(obs)[0][0]) for _ in range(60)]
    assert np.std(drawn) > 0.1
    assert len({float(model.predict(obs, deterministic=True)[0][0]) for _ in range(3)}) == 1
    model.num_timesteps = 10**6
    assert model.exploration_std() == pytest.approx(0.2)


def test_it_learns_what_it_sees(brightness: Any) -> None:
    env = brightness(size=20)
    kwargs = {**SMALL["policy_kwargs"]}
    changes = {"learning_rate": 3e-3, "learning_starts": 10**6, "policy_kwargs": kwargs, "seed": 6}
    model = DrQv2(
        "CnnPolicy",
        env,
        **{**SMALL, **changes},
        gamma=0.0,
        shift=1,
        precision="float32",
        n_steps=1,
        noise=(0.3, 0.3, 1),
        noise_clip=0.5,
    ).learn(200)
    for _ in range(250):
        model.update(model.replay_buffer.sample(32))
    errors = []
    for seed in range(40):
        obs, _ = env.reset(seed=1000 + seed)
        errors.append(float(model.predict(obs, deterministic=True)[0][0]) - env.level)
    assert np.mean(np.square(errors)) < 0.15  # saying 0 would leave 0.33


def test_a_resumed_run_equals_one_that_was_not_interrupted(brightness: Any, tmp_path: Path) -> None:
    model = DrQv2("CnnPolicy", brightness(), **SMALL).learn(40)
    model.save(tmp_path / "half.zip")
    model.save_replay_buffer(tmp_path / "half.pkl")
    state, env = random_state(model), copy.deepcopy(model.env)
    model.learn(20, reset_num_timesteps=False)
    resumed = DrQv2.load(tmp_path / "half.zip", env=env, force_reset=False, device="cpu")
    resumed.load_replay_buffer(tmp_path / "half.pkl")
    set_random_state(resumed, state)
    resumed.learn(20, reset_num_timesteps=False)
    assert model._n_updates == resumed._n_updates == 20
    assert same(weights(model), weights(resumed))


def test_wrong_spaces_are_sent_to_another_algorithm(walk: Any) -> None:
    with pytest.raises(SpaceError, match=r"DrQv2 learns from image observations .* use PPO or SAC instead"):
        DrQv2("CnnPolicy", walk())
