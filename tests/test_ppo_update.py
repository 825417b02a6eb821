"""Our PPO is stable-baselines3's PPO: the same step, the same files, the same result for the same seed."""

from __future__ import annotations

import copy
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium.spaces import Dict, MultiDiscrete
from stable_baselines3.common.vec_env import DummyVecEnv

from rl_training import PPO
from rl_training.algorithms.randomness import random_state, set_random_state

SMALL = {"n_steps": 32, "batch_size": 64, "n_epochs": 3, "device": "cpu", "seed": 5}


def weights(model: Any) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in model.policy.parameters()]


def envs(make: Any, **kwargs: Any) -> DummyVecEnv:
    return DummyVecEnv([lambda: make(**kwargs) for _ in range(2)])


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("clip_range_vf", [None, 0.1])
def test_one_update_equals_stable_baselines(walk: Any, discrete: bool, clip_range_vf: float | None) -> None:
    """The whole rollout as one minibatch, so that the order of samples does not matter."""
    settings = {**SMALL, "ent_coef": 0.01, "clip_range_vf": clip_range_vf, "learning_rate": 1e-2}
    ours = PPO("MlpPolicy", envs(walk, discrete=discrete), **settings)
    theirs = stable_baselines3.PPO("MlpPolicy", envs(walk, discrete=discrete), **settings)
    _, callback = ours._setup_learn(64)
    theirs._setup_learn(64)
    ours.collect_rollouts(ours.env, callback, ours.rollout_buffer, 32)
    theirs.rollout_buffer = copy.deepcopy(ours.rollout_buffer)
    theirs.policy.load_state_dict(ours.policy.state_dict())
    before = weights(ours)
    ours.train()
    theirs.train()
    for old, mine, their in zip(before, weights(ours), weights(theirs)):
        assert not torch.equal(old, mine)
        torch.testing.assert_close(mine, their, atol=2e-5, rtol=1e-4)
    names = set(theirs.logger.name_to_value) - {"train/clip_range_vf"}
    assert names == set(ours.logger.name_to_value)
    for name in names:
        assert ours.logger.name_to_value[name] == pytest.approx(theirs.logger.name_to_value[name], abs=1e-4), name


def test_the_policy_stops_when_it_has_moved_too_far(walk: Any) -> None:
    model = PPO("MlpPolicy", envs(walk), **{**SMALL, "n_epochs": 10}, learning_rate=1e-2, target_kl=1e-4)
    model.learn(64)
    assert 0 < model._n_updates < 10


def test_it_learns(walk: Any) -> None:
    """Staying at zero earns 1 a step; walking off earns less."""
    model = PPO("MlpPolicy", envs(walk), **{**SMALL, "n_epochs": 8}, learning_rate=3e-3, gamma=0.9)
    model.learn(2560)
    at = np.array([[-0.8, 0.5, 1.0], [0.0, 0.5, 1.0], [0.8, 0.5, 1.0]], np.float32)
    actions = model.predict(at, deterministic=True)[0].flatten()
    np.testing.assert_allclose(actions, [0.8, 0.0, -0.8], atol=0.35)


@pytest.mark.parametrize("policy", ["MlpPolicy", "CnnPolicy"])
def test_zips_go_both_ways(walk: Any, brightness: Any, tmp_path: Path, policy: str) -> None:
    make = walk if policy == "MlpPolicy" else lambda: brightness(size=40)
    ours = PPO(policy, envs(make), precision="float32", **SMALL).learn(64)
    ours.save(tmp_path / "ours.zip")
    theirs = stable_baselines3.PPO.load(tmp_path / "ours.zip", env=envs(make), device="cpu")
    obs = envs(make).reset()
    np.testing.assert_allclose(*(model.predict(obs, deterministic=True)[0] for model in (ours, theirs)), atol=1e-6)
    theirs.learn(64, reset_num_timesteps=False)
    assert theirs.num_timesteps == 128
    theirs.save(tmp_path / "theirs.zip")
    back = PPO.load(tmp_path / "theirs.zip", env=envs(make), device="cpu")
    np.testing.assert_allclose(*(model.predict(obs, deterministic=True)[0] for model in (back, theirs)), atol=1e-6)
    back.learn(64, reset_num_timesteps=False)
    assert back.num_timesteps == 192


def test_a_file_holds_weights_and_their_optimiser_and_little_else(walk: Any, tmp_path: Path) -> None:
    model = PPO("MlpPolicy", envs(walk), **SMALL).learn(64)
    model.save(tmp_path / "model.zip")
    numbers = 4 * sum(weight.numel() for weight in model.policy.parameters())
    with zipfile.ZipFile(tmp_path / "model.zip") as files:
        assert sum(file.file_size for file in files.infolist()) < 3 * numbers + 60_000


def test_the_seed_decides_everything(walk: Any) -> None:
    runs = [PPO("MlpPolicy", envs(walk), **{**SMALL, "seed": seed}).learn(128) for seed in (1, 1, 2)]
    first, again, other = (weights(run) for run in runs)
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not all(torch.equal(a, b) for a, b in zip(first, other))


def test_a_resumed_run_equals_one_that_was_not_interrupted(walk: Any, tmp_path: Path) -> None:
    settings = {**SMALL, "batch_size": 16, "learning_rate": lambda left: 1e-3 * left}
    model = PPO("MlpPolicy", envs(walk), **settings).learn(128)
    model.save(tmp_path / "half.zip")
    state, env = random_state(model), copy.deepcopy(model.env)
    model.learn(128, reset_num_timesteps=False)

    resumed = PPO.load(tmp_path / "half.zip", env=env, force_reset=False, device="cpu")
    set_random_state(resumed, state)
    resumed.learn(128, reset_num_timesteps=False)
    assert all(torch.equal(a, b) for a, b in zip(weights(model), weights(resumed)))


@pytest.mark.parametrize("policy", ["CnnPolicy", "CompactCnnPolicy"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_trains_from_images(brightness: Any, policy: str, precision: str) -> None:
    model = PPO(policy, envs(brightness, size=40), precision=precision, **SMALL)
    before = weights(model)
    model.learn(64)
    assert all(weight.dtype == torch.float32 for weight in model.policy.parameters())
    changed = [not torch.equal(a, b) for a, b in zip(before, weights(model))]
    assert all(changed)
    # Right after collecting, the policy is the one that collected: only rounding separates the two.
    buffer, policy_now = model.rollout_buffer, model._actor_critic
    model.collect_rollouts(model.env, model._init_callback(None), buffer, 32)
    with torch.no_grad():
        features = policy_now.features(torch.as_tensor(buffer.observations).flatten(0, 1))
        again = policy_now.distribution.log_prob(
            policy_now.action_parameters(features), torch.as_tensor(buffer.actions).flatten(0, 1)
        )
    np.testing.assert_allclose(buffer.log_probs.flatten(), again, atol=1e-5 if precision == "float32" else 0.05)


def test_what_the_lean_road_does_not_know_takes_the_other(walk: Any) -> None:
    class Wrapped(gym.Wrapper[Any, Any, Any, Any]):
        """The same walk behind a dictionary of observations, or two choices at once."""

        def __init__(self, env: Any, kind: str) -> None:
            super().__init__(env)
            self.kind = kind
            if kind == "dict":
                self.observation_space = Dict({"place": env.observation_space})
            else:
                self.action_space = MultiDiscrete([2, 2])

        def _see(self, obs: Any) -> Any:
            return {"place": obs} if self.kind == "dict" else obs

        def reset(self, **kwargs: Any) -> Any:
            obs, info = self.env.reset(**kwargs)
            return self._see(obs), info

        def step(self, action: Any) -> Any:
            obs, *rest = self.env.step(action if self.kind == "dict" else action[:1] - 0.5)
            return self._see(obs), *rest

    settings = {**SMALL, "batch_size": 32}
    for kind, policy in (("dict", "MultiInputPolicy"), ("multi", "MlpPolicy")):
        model = PPO(policy, Wrapped(walk(), kind), **settings)
        assert model._actor_critic is None
        model.learn(64)
    assert PPO("MlpPolicy", walk(), use_sde=True, **settings)._actor_critic is None
    assert PPO("MlpPolicy", walk(), **settings)._actor_critic is not None
