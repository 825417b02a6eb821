"""Every part of stable-baselines3 that is not documented for use and that our algorithms lean on.

When a new version breaks one of them, this says which, before a training run says it less clearly.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer, RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import ReplayBufferSamples


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (OnPolicyAlgorithm.collect_rollouts, ["self", "env", "callback", "rollout_buffer", "n_rollout_steps"]),
        (OnPolicyAlgorithm.train, ["self"]),
        (OffPolicyAlgorithm.train, ["self", "gradient_steps", "batch_size"]),
        (OffPolicyAlgorithm._on_step, ["self"]),
        (BaseAlgorithm._update_info_buffer, ["self", "infos", "dones"]),
        (BaseAlgorithm._update_learning_rate, ["self", "optimizers"]),
        (BaseAlgorithm._setup_model, ["self"]),
        (BaseAlgorithm._excluded_save_params, ["self"]),
        (BaseAlgorithm._get_torch_save_params, ["self"]),
        (SAC._create_aliases, ["self"]),
        (BaseBuffer.to_torch, ["self", "array", "copy"]),
        (ReplayBuffer._maybe_cast_dtype, ["dtype"]),
        (ReplayBuffer.add, ["self", "obs", "next_obs", "action", "reward", "done", "infos"]),
        (ReplayBuffer.sample, ["self", "batch_size", "env"]),
    ],
)
def test_functions_we_override_or_call_take_what_we_think(function: Any, names: list[str]) -> None:
    assert parameters(function) == names


def test_constructors_take_in_order_what_we_pass_by_place() -> None:
    off_policy = ["learning_rate", "buffer_size", "learning_starts", "batch_size", "tau", "gamma", "train_freq"]
    assert parameters(OffPolicyAlgorithm.__init__)[1:10] == ["policy", "env", *off_policy]
    assert parameters(SAC.__init__)[1:10] == ["policy", "env", *off_policy]
    assert parameters(PPO.__init__)[1:7] == ["policy", "env", "learning_rate", "n_steps", "batch_size", "n_epochs"]


def test_a_batch_knows_its_discounts() -> None:
    assert ReplayBufferSamples._fields == (
        "observations",
        "actions",
        "next_observations",
        "dones",
        "rewards",
        "discounts",
    )


def test_the_rollout_buffer_is_made_of_the_arrays_we_fill() -> None:
    buffer = RolloutBuffer(5, Box(0, 1, (3,)), Discrete(2), "cpu", gae_lambda=0.9, gamma=0.8, n_envs=2)
    for name in ("rewards", "values", "log_probs", "advantages", "returns", "episode_starts"):
        assert getattr(buffer, name).shape == (5, 2)
        assert getattr(buffer, name).dtype == np.float32
    assert buffer.observations.shape == (5, 2, 3)
    assert buffer.actions.shape == (5, 2, 1)
    assert (buffer.gamma, buffer.gae_lambda, buffer.buffer_size) == (0.8, 0.9, 5)
    assert (buffer.pos, buffer.full) == (0, False)


@pytest.mark.parametrize("discrete", [False, True])
def test_the_actor_critic_policy_is_made_of_the_parts_we_run(walk: Any, discrete: bool) -> None:
    """Its own forward pass is the composition that `PolicyView` makes of its parts."""
    policy = PPO("MlpPolicy", walk(discrete), n_steps=8, batch_size=8, device="cpu").policy
    assert isinstance(policy, ActorCriticPolicy)
    assert policy.share_features_extractor
    assert policy.normalize_images
    observations = torch.randn(4, 3)
    features = policy.features_extractor(observations)
    parameters_of_actions = policy.action_net(policy.mlp_extractor.forward_actor(features))
    distribution = policy.get_distribution(observations).distribution
    expected = distribution.logits if discrete else distribution.mean
    given = parameters_of_actions.log_softmax(-1) if discrete else parameters_of_actions
    torch.testing.assert_close(given, expected)
    values = policy.value_net(policy.mlp_extractor.forward_critic(features))
    torch.testing.assert_close(values, policy.predict_values(observations))
    if not discrete:
        torch.testing.assert_close(distribution.stddev[0], policy.log_std.exp())


def test_a_run_sets_the_attributes_we_read(walk: Any) -> None:
    model = PPO("MlpPolicy", walk(), n_steps=8, batch_size=8, n_epochs=1, device="cpu", seed=0).learn(8)
    assert isinstance(model._last_obs, np.ndarray)
    assert model._last_episode_starts.shape == (1,)
    assert model._current_progress_remaining == 0.0
    assert model.clip_range(1.0) == pytest.approx(0.2)
    assert model.clip_range_vf is None
    assert model._n_updates == 1
    assert {"policy", "env", "rollout_buffer"} <= set(model._excluded_save_params())
    assert model._get_torch_save_params() == (["policy", "policy.optimizer"], [])


def test_sac_keeps_its_temperature_where_drq_looks(walk: Any) -> None:
    fixed = SAC("MlpPolicy", walk(), ent_coef=0.3, device="cpu")
    assert fixed.log_ent_coef is None
    assert fixed.ent_coef_tensor.item() == pytest.approx(0.3)
    tuned = SAC("MlpPolicy", walk(), ent_coef="auto_0.5", device="cpu")
    assert tuned.log_ent_coef.exp().item() == pytest.approx(0.5)
    assert tuned.target_entropy == -1.0
    assert tuned.ent_coef_optimizer is not None
    assert tuned.target_update_interval == 1
    assert DQN.policy_aliases["CnnPolicy"] is not None
