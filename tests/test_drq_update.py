"""DrQ: what an update does, what its file remembers, what it learns."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from rl_training import DrQ
from rl_training.algorithms.randomness import random_state, set_random_state
from rl_training.algorithms.replay import ImageReplayBuffer
from rl_training.errors import ConfigError, SpaceError

SMALL: dict[str, Any] = {
    "frame_stack": 2,
    "buffer_size": 500,
    "learning_starts": 20,
    "batch_size": 16,
    "seed": 5,
    "device": "cpu",
    "policy_kwargs": {"encoder": "compact", "hidden": (64,)},
}


def started(brightness: Any, **changes: Any) -> DrQ:
    """Random transitions in the replay, not yet an update."""
    return DrQ("CnnPolicy", brightness(), **{**SMALL, **changes, "learning_starts": 10**6}).learn(40)


def weights(model: DrQ) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in model.policy.parameters()]


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("ent_coef", [0.1, "auto_0.5"])
def test_an_update_names_its_losses_and_moves_every_part(brightness: Any, share: bool, ent_coef: Any) -> None:
    kwargs = {**SMALL["policy_kwargs"], "share_encoder": share}
    model = started(brightness, ent_coef=ent_coef, policy_kwargs=kwargs)
    parts = (model.actor, model.critic, model.critic_target)
    before = [[weight.clone() for weight in part.parameters()] for part in parts]
    metrics = model.update(model.replay_buffer.sample(16))
    assert set(metrics) >= {"critic_loss", "actor_loss", "target_q_mean", "entropy_term", "algorithm_updates"}
    assert np.isfinite(list(metrics.values())).all()
    assert metrics["algorithm_updates"] == model._n_updates == 1
    for part, old in zip(parts, before):
        assert not any(torch.equal(a, b) for a, b in zip(part.parameters(), old, strict=True))
    first_alpha = 0.1 if ent_coef == 0.1 else 0.5
    assert metrics["alpha"] == pytest.approx(first_alpha)
    second = model.update(model.replay_buffer.sample(16))
    assert second["algorithm_updates"] == 2
    assert (second["alpha"] == metrics["alpha"]) is (ent_coef == 0.1)


def test_the_target_moves_by_tau(brightness: Any) -> None:
    model = started(brightness, tau=0.25)
    before = [weight.clone() for weight in model.critic_target.parameters()]
    model.update(model.replay_buffer.sample(16))
    for old, new, fast in zip(before, model.critic_target.parameters(), model.critic.parameters()):
        torch.testing.assert_close(new, torch.lerp(old, fast, 0.25))


def test_the_loss_is_the_one_of_the_formula(brightness: Any) -> None:
    """Without shift or bfloat16, an update's losses follow from the batch and the weights before it."""
    model = started(brightness, shift=0, precision="float32", gamma=0.5)
    batch, network = model.replay_buffer.sample(16), copy.deepcopy(model.policy.model)
    torch.manual_seed(1)
    metrics = model.update(batch)
    torch.manual_seed(1)
    torch.randint(0, 1, (2, 16)), torch.randint(0, 1, (2, 16))  # the two shifts of nothing
    with torch.no_grad():
        features = network.critic_features(batch.observations)
        q1, q2 = network.critic(features, batch.actions)
        actions, log_prob = network.sample_actions(network.actor_features(batch.observations))
        smaller = torch.minimum(*network.critic(features, actions))
        next_actions, next_log_prob = network.sample_actions(network.actor_features(batch.next_observations))
        next_q = network.critic_target(network.target_features(batch.next_observations), next_actions)
        target = batch.rewards.flatten() + 0.5 * (torch.minimum(*next_q) - 0.1 * next_log_prob)
    assert batch.dones.sum() == 0  # a time limit is no end
    assert metrics["target_q_mean"] == pytest.approx(target.mean().item(), abs=1e-5)
    critic_loss = 0.5 * ((q1 - target).square().mean() + (q2 - target).square().mean())
    assert metrics["critic_loss"] == pytest.approx(critic_loss.item(), abs=1e-5)
    assert metrics["actor_loss"] == pytest.approx((0.1 * log_prob - smaller).mean().item(), abs=1e-5)


def test_more_views_steady_the_target(brightness: Any) -> None:
    model = started(brightness, views=2, next_views=3)
    metrics = model.update(model.replay_buffer.sample(16))
    assert np.isfinite(list(metrics.values())).all()
    batch = model.replay_buffer.sample(16)
    # Nothing moves any more, so that only the draws of shift and action differ.
    model.tau = 0.0
    for optimizer in (model.actor.optimizer, model.critic.optimizer):
        optimizer.param_groups[0]["lr"] = 0.0

    def spread(next_views: int) -> float:
        model.next_views = next_views
        return float(np.std([model.update(batch)["target_q_mean"] for _ in range(25)]))

    assert spread(9) < 0.7 * spread(1)


def test_it_learns_what_it_sees(brightness: Any) -> None:
    env = brightness(size=20)
    kwargs = {**SMALL["policy_kwargs"], "share_encoder": True}
    changes = {"learning_rate": 3e-3, "learning_starts": 10**6, "policy_kwargs": kwargs, "seed": 6}
    model = DrQ("CnnPolicy", env, **{**SMALL, **changes}, gamma=0.0, shift=1, precision="float32", ent_coef=0.01).learn(
        200
    )
    for _ in range(250):
        model.update(model.replay_buffer.sample(32))
    errors = []
    for seed in range(40):
        obs, _ = env.reset(seed=1000 + seed)
        errors.append(float(model.predict(obs, deterministic=True)[0][0]) - env.level)
    assert np.mean(np.square(errors)) < 0.15  # saying 0 would leave 0.33


def test_the_file_remembers_optimisers_alpha_and_counts_but_no_images(brightness: Any, tmp_path: Path) -> None:
    model = DrQ("CnnPolicy", brightness(), ent_coef="auto", **SMALL).learn(30)
    model.save(tmp_path / "model.zip")
    loaded = DrQ.load(tmp_path / "model.zip", env=brightness(), device="cpu")
    assert same(weights(model), weights(loaded))
    assert loaded._n_updates == model._n_updates == 10
    assert torch.equal(loaded.log_ent_coef, model.log_ent_coef)
    assert loaded.policy.model.dtype == model.policy.model.dtype
    obs, _ = brightness().reset(seed=0)
    assert np.array_equal(loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
    # Weights of five networks and two moments for all but the slow copy, at four bytes.
    numbers = 4 * sum(weight.numel() for weight in model.policy.parameters())
    assert (tmp_path / "model.zip").stat().st_size < 3 * numbers + 100_000


def test_a_resumed_run_equals_one_that_was_not_interrupted(brightness: Any, tmp_path: Path) -> None:
    env = DummyVecEnv([brightness, lambda: brightness(limit=9)])
    model = DrQ("CnnPolicy", env, ent_coef="auto", **SMALL).learn(60)
    model.save(tmp_path / "half.zip")
    model.save_replay_buffer(tmp_path / "half.pkl")
    state, later = random_state(model), copy.deepcopy(model.env)
    model.learn(30, reset_num_timesteps=False)

    resumed = DrQ.load(tmp_path / "half.zip", env=later, force_reset=False, device="cpu")
    resumed.load_replay_buffer(tmp_path / "half.pkl")
    set_random_state(resumed, state)
    resumed.learn(30, reset_num_timesteps=False)
    assert model._n_updates == resumed._n_updates > 20
    assert same(weights(model), weights(resumed))


def test_the_seed_decides_everything(brightness: Any) -> None:
    runs = [DrQ("CnnPolicy", brightness(), **SMALL).learn(30) for _ in range(2)]
    assert same(*map(weights, runs))


def test_normalised_rewards_reach_the_update_and_normalised_images_do_not(brightness: Any) -> None:
    env = VecNormalize(DummyVecEnv([brightness]), norm_obs=False)
    model = DrQ("CnnPolicy", env, **{**SMALL, "learning_starts": 10**6}, n_steps=2).learn(40)
    replay = model.replay_buffer
    torch.manual_seed(0)
    raw = replay.sample(50)
    torch.manual_seed(0)
    normal = replay.sample(50, env=env)
    torch.testing.assert_close(normal.rewards, raw.rewards / float(np.sqrt(env.ret_rms.var + env.epsilon)))
    assert sorted(raw.discounts.unique().tolist()) == pytest.approx([0.99**2, 0.99])
    env.norm_obs = True
    with pytest.raises(ConfigError, match="norm_obs=False"):
        replay.sample(4, env=env)


def test_the_replay_stores_frames_once(brightness: Any) -> None:
    model = started(brightness)
    assert isinstance(model.replay_buffer, ImageReplayBuffer)
    assert model.replay_buffer.frames.shape[2] == 1


def test_a_stack_that_does_not_roll_is_refused(brightness: Any) -> None:
    class Newest(brightness):  # type: ignore[misc,valid-type]
        """The newest frame first, against the order of every frame stack."""

        def step(self, action: Any) -> Any:
            obs, *rest = super().step(action)
            return obs[::-1], *rest

    model = DrQ("CnnPolicy", Newest(), **SMALL)
    with pytest.raises(SpaceError, match="frame_stack"):
        model.learn(5)


def test_wrong_spaces_are_sent_to_another_algorithm(walk: Any, brightness: Any) -> None:
    with pytest.raises(SpaceError, match="use PPO or SAC instead"):
        DrQ("CnnPolicy", walk())
    with pytest.raises(SpaceError, match="use PPO or PPG or DQN instead"):
        DrQ("CnnPolicy", brightness(discrete=True))
    matrix = brightness()
    matrix.action_space = Box(-1, 1, (2, 2), np.float32)
    with pytest.raises(SpaceError, match="use PPO instead"):
        DrQ("CnnPolicy", matrix)
