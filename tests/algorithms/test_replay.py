"""Frame-once replay against what was put in, by hand and against a plain list of transitions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from rl_training.algorithms.replay import ImageReplayBuffer
from rl_training.errors import ConfigError, SpaceError

SIZE = 3
ACTIONS = Box(-1, 1, (1,), np.float32)


def buffer(capacity: int = 100, n_envs: int = 1, stack: int = 2, **kwargs: Any) -> ImageReplayBuffer:
    space = Box(0, 255, (stack, SIZE, SIZE), np.uint8)
    return ImageReplayBuffer(capacity, space, ACTIONS, "cpu", n_envs, frame_stack=stack, **kwargs)


def images(*stacks: tuple[int, ...]) -> np.ndarray:
    """One observation for each environment, each frame filled with its number."""
    frames = np.array(stacks, np.uint8)[:, :, None, None]
    return np.broadcast_to(frames, (*frames.shape[:2], SIZE, SIZE)).copy()


def add(replay: ImageReplayBuffer, obs: tuple, following: tuple, reward: float, done: bool = False, cut: bool = False):
    infos = [{"TimeLimit.truncated": cut}]
    replay.add(images(obs), images(following), np.array([[reward / 10]]), np.array([reward]), np.array([done]), infos)


def numbers(tensor: torch.Tensor) -> list[tuple[int, ...]]:
    return [tuple(int(frame[0, 0]) for frame in stack) for stack in tensor]


def two_episodes(**kwargs: Any) -> ImageReplayBuffer:
    """Frames 1 2 3 4 end by termination, then 10 (with a padding of 9) to 13 by a time limit."""
    replay = buffer(**kwargs)
    add(replay, (1, 1), (1, 2), 1.0)
    add(replay, (1, 2), (2, 3), 2.0)
    add(replay, (2, 3), (3, 4), 4.0, done=True)
    add(replay, (9, 10), (10, 11), 8.0)
    add(replay, (10, 11), (11, 12), 16.0)
    add(replay, (11, 12), (12, 13), 32.0, done=True, cut=True)
    return replay


def test_stacks_come_back_as_they_were() -> None:
    replay = two_episodes()
    got = replay._transitions(np.arange(6), np.zeros(6, int))
    assert numbers(got.observations) == [(1, 1), (1, 2), (2, 3), (9, 10), (10, 11), (11, 12)]
    assert numbers(got.next_observations) == [(1, 2), (2, 3), (3, 4), (10, 11), (11, 12), (12, 13)]
    assert got.rewards.flatten().tolist() == [1, 2, 4, 8, 16, 32]
    assert got.dones.flatten().tolist() == [0, 0, 1, 0, 0, 0]  # a time limit is no end
    torch.testing.assert_close(got.actions, got.rewards / 10)
    assert got.discounts is None
    assert got.observations.dtype == torch.uint8
    # Ten frames in all: 5 + 5, where two stacks for each transition would be 24.
    assert replay.written.tolist() == [10]


def test_n_step_returns_stop_at_the_end_of_an_episode() -> None:
    got = two_episodes(n_steps=3, gamma=0.5)._transitions(np.arange(6), np.zeros(6, int))
    assert got.rewards.flatten().tolist() == [1 + 1 + 1, 2 + 2, 4, 8 + 8 + 8, 16 + 16, 32]
    assert got.discounts.flatten().tolist() == [0.125, 0.25, 0.5, 0.125, 0.25, 0.5]
    assert got.dones.flatten().tolist() == [1, 1, 1, 0, 0, 0]
    assert numbers(got.next_observations) == [(3, 4)] * 3 + [(12, 13)] * 3
    assert numbers(got.observations)[0] == (1, 1)


def test_rewards_are_scaled_when_drawn_and_kept_as_they_came() -> None:
    replay = two_episodes(n_steps=2, gamma=0.5, reward_scale=0.1)
    got = replay._transitions(np.arange(3), np.zeros(3, int))
    torch.testing.assert_close(got.rewards.flatten(), torch.tensor([0.2, 0.4, 0.4]))
    assert replay.rewards[:3].flatten().tolist() == [1, 2, 4]


def test_a_reset_from_outside_begins_an_episode() -> None:
    replay = buffer(n_steps=2, gamma=1.0)
    add(replay, (1, 1), (1, 2), 1.0)
    add(replay, (7, 7), (7, 8), 1.0)  # nobody said that the first was over
    got = replay._transitions(np.arange(2), np.zeros(2, int))
    assert numbers(got.next_observations) == [(1, 2), (7, 8)]
    assert got.rewards.flatten().tolist() == [1, 1]


def test_an_episode_that_begins_like_the_last_one_ended_is_still_another() -> None:
    replay = buffer(n_steps=2, gamma=1.0)
    add(replay, (1, 1), (1, 1), 1.0, done=True)
    add(replay, (1, 1), (1, 1), 5.0)
    assert replay._transitions(np.array([0]), np.array([0])).rewards.item() == 1.0


@pytest.mark.parametrize("stack", [1, 3])
@pytest.mark.parametrize("length", [1, 4, 50])
def test_against_a_list_of_transitions(stack: int, length: int) -> None:
    """Random episodes in three environments, many times round the ring: whatever can be drawn is what was put in."""
    rng = np.random.default_rng(0)
    n_envs, capacity, steps, gamma, n_steps = 3, 60, 150, 0.9, 2
    replay = buffer(capacity, n_envs, stack, n_steps=n_steps, gamma=gamma)
    history: list[list[tuple]] = [[] for _ in range(n_envs)]
    obs = rng.integers(0, 256, (n_envs, stack, SIZE, SIZE), dtype=np.uint8)
    for _ in range(steps):
        following = np.concatenate([obs[:, 1:], rng.integers(0, 256, (n_envs, 1, SIZE, SIZE), dtype=np.uint8)], 1)
        reward = rng.normal(size=n_envs).astype(np.float32)
        done, cut = rng.random(n_envs) < 1 / length, rng.random(n_envs) < 0.5
        infos = [{"TimeLimit.truncated": bool(a and b)} for a, b in zip(done, cut)]
        replay.add(obs, following, reward[:, None], reward, done, infos)
        for env in range(n_envs):
            history[env].append((obs[env], following[env], reward[env], done[env], done[env] and not cut[env]))
        obs = following.copy()
        fresh = rng.integers(0, 256, obs.shape, dtype=np.uint8)
        obs[done] = fresh[done]

    for env in range(n_envs):
        for number in range(replay.oldest[env], steps):
            got = replay._transitions(np.array([number]), np.array([env]))
            first = history[env][number]
            reward, last, discount = first[2], first, gamma
            if number + 1 < steps and not first[3]:
                last = history[env][number + 1]
                reward, discount = reward + gamma * last[2], gamma**2
            assert np.array_equal(got.observations[0].numpy(), first[0])
            assert np.array_equal(got.next_observations[0].numpy(), last[1])
            assert got.rewards.item() == pytest.approx(reward, abs=1e-6)
            assert got.dones.item() == last[4]
            assert got.discounts.item() == pytest.approx(discount)
    kept = steps - replay.oldest
    assert (kept <= replay.buffer_size).all()
    if length == 50:
        assert (kept == replay.buffer_size).all()  # ordinary episodes lose nothing
    assert (kept > replay.buffer_size / (stack + 1) - 2).all()


def test_draws_cover_everything_evenly_and_follow_the_seed() -> None:
    replay = two_episodes()
    torch.manual_seed(0)
    rewards = replay.sample(6000).rewards.flatten()
    torch.manual_seed(0)
    assert torch.equal(replay.sample(6000).rewards.flatten(), rewards)
    _, counts = rewards.unique(return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 850


def test_memory_of_the_promise() -> None:
    """100 thousand transitions of 84×84×9 in at most 2.3 GB; zeros are not touched, so this costs nothing."""
    space = Box(0, 255, (9, 84, 84), np.uint8)
    replay = ImageReplayBuffer(100_000, space, ACTIONS, "cpu", 4, frame_stack=3)
    arrays = [value.nbytes for value in vars(replay).values() if isinstance(value, np.ndarray)]
    assert sum(arrays) < 2.3e9


def test_a_young_buffer_makes_a_small_file_and_goes_on() -> None:
    replay = two_episodes(capacity=10_000)
    assert len(pickle.dumps(replay)) < 20_000
    copy = pickle.loads(pickle.dumps(replay))
    for other in (replay, copy):
        add(other, (20, 20), (20, 21), 64.0)
        add(other, (20, 21), (21, 22), 64.0)
    ours = replay._transitions(np.arange(8), np.zeros(8, int))
    theirs = copy._transitions(np.arange(8), np.zeros(8, int))
    for a, b in zip(ours[:5], theirs[:5]):
        assert torch.equal(a, b)


def test_wrong_stacks_are_named() -> None:
    with pytest.raises(ConfigError, match="frame_stack"):
        ImageReplayBuffer(10, Box(0, 255, (4, 8, 8), np.uint8), ACTIONS, "cpu", frame_stack=3)
    with pytest.raises(SpaceError, match="images"):
        ImageReplayBuffer(10, Box(-1, 1, (4,), np.float32), ACTIONS, "cpu")
    replay = buffer()
    with pytest.raises(SpaceError, match="frame_stack"):
        add(replay, (1, 2), (3, 4), 0.0)


def test_dqn_can_use_it() -> None:
    space = Box(0, 255, (1, SIZE, SIZE), np.uint8)
    replay = ImageReplayBuffer(10, space, Discrete(4), "cpu")
    replay.add(images((1,)), images((2,)), np.array([3]), np.array([0.5]), np.array([True]), [{}])
    batch = replay.sample(2)
    assert batch.actions.dtype == torch.int64
    assert batch.actions.flatten().tolist() == [3, 3]
