"""The lean rollout means what stable-baselines3's does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from rl_training.algorithms import PPO
from rl_training.algorithms.reward_normalizer import RewardNormalizer
from rl_training.algorithms.rollout import advantages


class Recorder(BaseCallback):
    """Remembers what callbacks are told, and stops after ``limit`` steps."""

    def __init__(self, limit: int = 10**9) -> None:
        super().__init__()
        self.limit = limit
        self.steps: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        kept = ("rewards", "dones", "infos", "clipped_actions", "actions", "new_obs")
        self.steps.append({name: np.copy(self.locals[name]) for name in kept})
        return len(self.steps) < self.limit


def collected(walk: Any, callback: BaseCallback, discrete: bool = False, **kwargs: Any) -> PPO:
    env = DummyVecEnv([lambda: walk(discrete), lambda: walk(discrete, limit=4)])
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=32, seed=3, device="cpu", **kwargs)
    _, callback = model._setup_learn(100, callback)
    model.collect_rollouts(env, callback, model.rollout_buffer, 16)
    return model


def test_advantages_worked_by_hand() -> None:
    column = np.array([[1.0], [2.0], [3.0]], np.float32)
    got = advantages(
        rewards=column,
        values=np.array([[0.5], [1.0], [1.5]], np.float32),
        starts=np.array([[1.0], [0.0], [1.0]], np.float32),  # the second step ended an episode
        last_values=np.array([4.0], np.float32),
        dones=np.array([False]),
        gamma=0.5,
        gae_lambda=0.5,
    )
    # δ₂ = 3 + .5·4 − 1.5 = 3.5; δ₁ = 2 − 1 = 1; δ₀ = 1 + .5·1 − .5 = 1, and Â₀ = 1 + .25·1.
    assert got.flatten().tolist() == [1.25, 1.0, 3.5]


def test_advantages_equal_stable_baselines() -> None:
    rng = np.random.default_rng(0)
    theirs = RolloutBuffer(50, Box(0, 1, (1,)), Discrete(2), "cpu", gae_lambda=0.9, gamma=0.97, n_envs=3)
    theirs.rewards[:], theirs.values[:] = rng.normal(size=(2, 50, 3))
    theirs.episode_starts[:] = rng.random((50, 3)) < 0.2
    last, dones = rng.normal(size=3).astype(np.float32), np.array([True, False, False])
    ours = advantages(theirs.rewards, theirs.values, theirs.episode_starts, last, dones, 0.97, 0.9)
    theirs.compute_returns_and_advantage(torch.as_tensor(last), dones)
    np.testing.assert_allclose(ours, theirs.advantages, atol=1e-5)


@pytest.mark.parametrize("discrete", [False, True])
def test_the_buffer_holds_what_the_collecting_policy_says(walk: Any, discrete: bool) -> None:
    recorder = Recorder()
    model = collected(walk, recorder, discrete, gae_lambda=0.8)
    buffer = model.rollout_buffer
    observations = torch.as_tensor(buffer.observations).flatten(0, 1)
    actions = torch.as_tensor(buffer.actions).flatten(0, 1)
    with torch.no_grad():
        chosen = actions.flatten() if discrete else actions
        values, log_probs, _ = model.policy.evaluate_actions(observations, chosen)
    np.testing.assert_allclose(buffer.values.flatten(), values.flatten(), atol=1e-5)
    np.testing.assert_allclose(buffer.log_probs.flatten(), log_probs, atol=1e-5)
    assert buffer.full

    # Rewards are the environment's, and a truncated episode's last one carries γ·V of where it was cut.
    expected = np.stack([step["rewards"] for step in recorder.steps])
    cut = 0
    for step, told in enumerate(recorder.steps):
        for env in np.flatnonzero(told["dones"]):
            if told["infos"][env]["TimeLimit.truncated"]:
                last = torch.as_tensor(told["infos"][env]["terminal_observation"])[None]
                expected[step, env] += 0.99 * model.policy.predict_values(last).item()
                cut += 1
    assert cut > 0
    np.testing.assert_allclose(buffer.rewards, expected, atol=1e-5)

    # Everything after that is stable-baselines3's arithmetic.
    mine = buffer.advantages.copy(), buffer.returns.copy()
    last_values = model.policy.predict_values(torch.as_tensor(model._last_obs)).detach()
    buffer.compute_returns_and_advantage(last_values, model._last_episode_starts)
    np.testing.assert_allclose(mine[0], buffer.advantages, atol=1e-5)
    np.testing.assert_allclose(mine[1], buffer.returns, atol=1e-5)
    starts = np.stack([step["dones"] for step in recorder.steps])[:-1]
    assert np.array_equal(buffer.episode_starts[1:].astype(bool), starts)
    assert buffer.episode_starts[0].all()


def test_actions_are_clipped_for_the_environment_only(walk: Any) -> None:
    recorder = Recorder()
    model = collected(walk, recorder)
    raw = np.stack([step["actions"] for step in recorder.steps])
    sent = np.stack([step["clipped_actions"] for step in recorder.steps])
    assert np.abs(raw).max() > 1
    assert np.array_equal(sent, raw.clip(-1, 1))
    assert np.array_equal(model.rollout_buffer.actions, raw)


def test_a_callback_stops_the_rollout(walk: Any) -> None:
    model = PPO("MlpPolicy", DummyVecEnv([walk]), n_steps=16, batch_size=16, device="cpu")
    model.learn(1000, callback=Recorder(limit=20))
    assert model.num_timesteps == 20
    assert model._n_updates == 10  # one whole rollout was trained on


def test_observations_written_over_by_the_environment_are_kept(walk: Any) -> None:
    class Reused(DummyVecEnv):
        def _obs_from_buf(self) -> Any:
            return self.buf_obs[None]  # the same memory every step

    env = Reused([walk])
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    recorder = Recorder()
    _, callback = model._setup_learn(8, recorder)
    model.collect_rollouts(env, callback, model.rollout_buffer, 8)
    told = np.stack([step["new_obs"] for step in recorder.steps])
    assert np.array_equal(model.rollout_buffer.observations[1:], told[:-1])


def test_normalised_rewards_have_returns_of_unit_deviation() -> None:
    rng = np.random.default_rng(0)
    normalizer = RewardNormalizer(gamma=0.9)
    for _ in range(20):
        rewards = 50 * rng.normal(size=(100, 4)) + 20
        scaled = normalizer.normalize(rewards, (rng.random((100, 4)) < 0.02).astype(float))
    # Each reward is divided by the deviation of Σ γⁱ r: near 50/√(1 − .81) with a little from where episodes begin.
    ratio = rewards / scaled
    np.testing.assert_allclose(ratio, ratio[0, 0])
    assert 100 < ratio[0, 0] < 160


def test_the_normaliser_counts_in_batches_as_it_would_one_by_one() -> None:
    rewards = np.arange(12.0).reshape(6, 2)
    ends = np.zeros((6, 2))
    ends[2, 0] = 1
    whole, parts = RewardNormalizer(0.5), RewardNormalizer(0.5)
    whole.normalize(rewards, ends)
    for row, end in zip(rewards, ends):
        parts.normalize(row[None], end[None])
    assert whole.variance == pytest.approx(parts.variance)
    assert whole.mean == pytest.approx(parts.mean)
    # Environment 0 began anew after its third step: 6, then 3 + 8, then 5.5 + 10.
    assert whole.returns[0] == pytest.approx((6 * 0.5 + 8) * 0.5 + 10)
