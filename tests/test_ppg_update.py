"""PPG: the rhythm of its phases, what its auxiliary phase may change, and what its file remembers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from rl_training import PPG
from rl_training.algorithms.randomness import random_state, set_random_state
from rl_training.errors import SpaceError

SMALL = {
    "n_steps": 32,
    "batch_size": 32,
    "n_epochs": 2,
    "n_policy_iterations": 3,
    "auxiliary_epochs": 2,
    "auxiliary_batch_size": 64,
    "device": "cpu",
    "seed": 5,
}


def envs(make: Any, **kwargs: Any) -> DummyVecEnv:
    return DummyVecEnv([lambda: make(discrete=True, **kwargs) for _ in range(2)])


def weights(model: PPG) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in model.policy.parameters()]


def after_rollout(model: PPG) -> PPG:
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model


def test_an_update_names_its_losses_and_is_counted(walk: Any) -> None:
    model = after_rollout(PPG("MlpPolicy", envs(walk), **SMALL))
    before = weights(model)
    head = model.policy.model.aux_value_head.weight.detach().clone()
    metrics = model.update()
    wanted = {"loss", "policy_loss", "value_loss", "entropy_loss", "approx_kl", "clip_fraction", "policy_updates"}
    assert set(metrics) >= wanted
    assert metrics["policy_updates"] == 1
    assert np.isfinite(list(metrics.values())).all()
    assert any(not torch.equal(a, b) for a, b in zip(before, weights(model)))
    assert torch.equal(head, model.policy.model.aux_value_head.weight)
    assert len(model.memory) == 1


def test_the_auxiliary_phase_learns_values_and_holds_the_policy(walk: Any) -> None:
    model = after_rollout(PPG("MlpPolicy", envs(walk), **{**SMALL, "auxiliary_epochs": 60}, learning_rate=3e-3))
    # Returns that the observation explains, so that learning them is possible.
    observations = torch.as_tensor(model.rollout_buffer.observations).flatten(0, 1)
    returns = 2.0 * observations[:, 0]
    model.memory.add(observations, returns)
    network = model.policy.model
    with torch.no_grad():
        before = network.auxiliary(observations)
    metrics = model.auxiliary_update()
    wanted = {"auxiliary_loss", "aux_value_loss", "behavior_clone_loss", "value_clone_loss", "auxiliary_updates"}
    assert set(metrics) == wanted
    assert metrics["auxiliary_updates"] == 1
    assert len(model.memory) == 0
    with torch.no_grad():
        after = network.auxiliary(observations)
    for now, then in ((after.aux_values, before.aux_values), (after.values, before.values)):
        assert (now - returns).square().mean() < 0.2 * (then - returns).square().mean()
    kl = torch.nn.functional.kl_div(
        after.logits.log_softmax(-1), before.logits.log_softmax(-1), reduction="batchmean", log_target=True
    )
    assert kl < 1e-3


@pytest.mark.parametrize("beta_clone", [0.0, 10.0])
def test_the_clone_term_is_what_holds_the_policy(walk: Any, beta_clone: float) -> None:
    model = after_rollout(
        PPG("MlpPolicy", envs(walk), **{**SMALL, "auxiliary_epochs": 60}, learning_rate=1e-2, beta_clone=beta_clone)
    )
    model.update()
    observations, _ = model.memory.contents()
    network = model.policy.model
    with torch.no_grad():
        before = network.action_parameters(network.features(observations)).softmax(-1)
    model.auxiliary_update()
    with torch.no_grad():
        moved = (network.action_parameters(network.features(observations)).softmax(-1) - before).abs().max()
    assert bool(moved > 0.03) is (beta_clone == 0.0)


def test_the_auxiliary_phase_comes_every_third_rollout(walk: Any) -> None:
    model = PPG("MlpPolicy", envs(walk), **SMALL).learn(64 * 7)
    assert (model.policy_updates, model.auxiliary_updates, len(model.memory)) == (7, 2, 1)


def test_rewards_are_normalised_unless_told_otherwise(walk: Any) -> None:
    raw = after_rollout(PPG("MlpPolicy", envs(walk), normalize_reward=False, **SMALL))
    normal = after_rollout(PPG("MlpPolicy", envs(walk), **SMALL))
    assert raw.reward_normalizer is None
    # The same seed gives the same walk; where no episode was cut, only the scale differs.
    plain = raw.rollout_buffer.rewards.flatten()
    scaled = normal.rollout_buffer.rewards.flatten()
    factors = np.sort(scaled / plain)
    assert np.median(factors) == pytest.approx(1 / np.sqrt(normal.reward_normalizer.variance), rel=1e-4)


def test_it_learns(walk: Any) -> None:
    model = PPG("MlpPolicy", envs(walk), **{**SMALL, "n_epochs": 4}, learning_rate=3e-3, gamma=0.8).learn(2560)
    actions, _ = model.predict(np.array([[-0.9, 0.3, 1.0], [0.9, 0.3, 1.0]], np.float32), deterministic=True)
    assert actions.tolist() == [1, 0]


@pytest.mark.parametrize("policy", ["CnnPolicy", "CompactCnnPolicy"])
def test_it_trains_from_images(brightness: Any, policy: str) -> None:
    model = PPG(policy, envs(brightness, size=40), **SMALL).learn(64 * 3)
    assert model.auxiliary_updates == 1
    assert model.predict(brightness(size=40).reset(seed=0)[0])[0] in (0, 1)


def test_the_file_remembers_phases_memory_and_normaliser(walk: Any, tmp_path: Path) -> None:
    model = PPG("MlpPolicy", envs(walk), **SMALL).learn(64 * 5)
    model.save(tmp_path / "model.zip")
    loaded = PPG.load(tmp_path / "model.zip", env=envs(walk), device="cpu")
    assert (loaded.policy_updates, loaded.auxiliary_updates, len(loaded.memory)) == (5, 1, 2)
    assert torch.equal(loaded.memory.contents()[1], model.memory.contents()[1])
    assert loaded.reward_normalizer.variance == model.reward_normalizer.variance
    saved = model.policy.auxiliary_optimizer.state_dict()["state"]
    assert all(
        torch.equal(loaded.policy.auxiliary_optimizer.state_dict()["state"][k]["exp_avg"], saved[k]["exp_avg"])
        for k in saved
    )
    obs = envs(walk).reset()
    assert np.array_equal(loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
    assert (tmp_path / "model.zip").stat().st_size < 400_000
    loaded.learn(64, reset_num_timesteps=False)
    assert loaded.auxiliary_updates == 2


def test_a_resumed_run_equals_one_that_was_not_interrupted(walk: Any, tmp_path: Path) -> None:
    """Interrupted between two auxiliary phases, so that memory, normaliser and both optimisers matter."""
    model = PPG("MlpPolicy", envs(walk), **SMALL).learn(64 * 4)
    model.save(tmp_path / "half.zip")
    state, env = random_state(model), copy.deepcopy(model.env)
    model.learn(64 * 4, reset_num_timesteps=False)
    resumed = PPG.load(tmp_path / "half.zip", env=env, force_reset=False, device="cpu")
    set_random_state(resumed, state)
    resumed.learn(64 * 4, reset_num_timesteps=False)
    assert (model.auxiliary_updates, resumed.auxiliary_updates) == (2, 2)
    assert all(torch.equal(a, b) for a, b in zip(weights(model), weights(resumed)))


def test_the_seed_decides_everything(walk: Any) -> None:
    runs = [PPG("MlpPolicy", envs(walk), **SMALL).learn(64 * 3) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*map(weights, runs)))


def test_continuous_actions_are_sent_to_another_algorithm(walk: Any) -> None:
    with pytest.raises(SpaceError, match="use PPO or SAC instead"):
        PPG("MlpPolicy", walk(discrete=False))
