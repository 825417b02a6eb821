"""Batches of cars: the same lives as single envs, under Gymnasium's conventions and SB3's."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from rl_training.envs.cameras import _Buffers
from rl_training.envs.donkey_env import DonkeyEnv
from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec, StartSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.envs.vector_env import DonkeyVectorEnv
from rl_training.errors import ConfigError, UsageError
from rl_training.simulator.randomize import DomainRandomization

SMALL = ObservationSpec(32, 24, camera_width=32, camera_height=24)
CONF = {"cam_resolution": (24, 32, 3)}


def drive(env: DonkeyVecEnv, steps: int, throttle: float = 0.3) -> tuple[list[Any], list[Any], list[Any]]:
    frames, rewards, dones = [env.reset()], [], []
    for k in range(steps):
        steer = 0.8 * np.sin(0.1 * k + np.arange(env.num_envs))
        action = np.column_stack((steer, np.full(env.num_envs, throttle))).astype(np.float32)
        observation, reward, done, _ = env.step(action)
        frames.append(observation)
        rewards.append(reward)
        dones.append(done)
    return frames, rewards, dones


def test_a_car_of_a_batch_lives_as_a_single_env_does() -> None:
    batch = DonkeyVectorEnv(3, track="generated_track", conf=CONF, randomization="strong")
    singles = [DonkeyEnv("generated_track", CONF, randomization="strong") for _ in range(3)]
    frames, _ = batch.reset(seed=7)
    for i, env in enumerate(singles):
        np.testing.assert_array_equal(env.reset(seed=7 + i)[0], frames[i])
    for k in range(30):
        actions = np.array([[0.1 * i * np.sin(k), 0.3] for i in range(3)], np.float32)
        frames, rewards, terminated, truncated, infos = batch.step(actions)
        for i, env in enumerate(singles):
            frame, reward, over, cut, info = env.step(actions[i])
            np.testing.assert_array_equal(frame, frames[i])
            assert (reward, over, cut) == (rewards[i], terminated[i], truncated[i])
            for key in set(info) - {"lidar", "start_line"}:
                np.testing.assert_array_equal(infos[key][i], info[key], err_msg=key)


def test_batch_size_and_threads_do_not_change_a_byte() -> None:
    spec = EnvSpec(
        tracks=("random:train@0.8",), observation=SMALL, randomization=DomainRandomization.preset("strong"),
        limits=Limits(max_steps=25),
    )  # fmt: skip
    runs = [drive(DonkeyVecEnv(spec, size, seed=3, threads=threads), 60) for size, threads in ((2, 1), (5, 1), (5, 3))]
    for frames, rewards, dones in runs[1:]:
        np.testing.assert_array_equal(np.array(frames)[:, :2], np.array(runs[0][0]))
        np.testing.assert_array_equal(np.array(rewards)[:, :2], np.array(runs[0][1]))
        np.testing.assert_array_equal(np.array(dones)[:, :2], np.array(runs[0][2]))
    assert np.array(runs[0][2]).any(), "the runs must cross resets to prove anything"


def test_the_order_of_resets_does_not_change_a_byte() -> None:
    spec = EnvSpec(tracks=("random:train",), observation=SMALL)
    first, second = DonkeyVecEnv(spec, 3, seed=1), DonkeyVecEnv(spec, 3, seed=1)
    first.batch.reset([0, 1, 2])
    second.batch.reset([2, 0, 1])
    np.testing.assert_array_equal(first.batch.observe(), second.batch.observe())


def test_make_vec_gives_the_batch() -> None:
    env = gym.make_vec("donkey-generated-track-v0", num_envs=4, conf=CONF)
    assert isinstance(env.unwrapped, DonkeyVectorEnv)
    assert env.observation_space.shape == (4, 24, 32, 3)
    frames, _ = env.reset(seed=0)
    assert env.observation_space.contains(frames)


@pytest.mark.parametrize("conf", [{"lidar_config": {"maxRange": 20}}, {"cam_config_b": {"img_w": 40}}])
def test_what_a_batch_does_not_have_is_refused_and_single_envs_do_it(conf: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="vectorization_mode='sync'"):
        gym.make_vec("donkey-waveshare-v0", num_envs=2, conf=conf)
    envs = gym.make_vec("donkey-waveshare-v0", num_envs=2, vectorization_mode="sync", conf={**CONF, **conf})
    infos = envs.reset(seed=0)[1]
    assert "image_b" in infos or infos["lidar"].shape == (2, 25 * 180)
    envs.close()


def test_wrong_actions_and_masks_are_refused_and_move_nothing() -> None:
    env = DonkeyVectorEnv(2, conf=CONF)
    env.reset(seed=0)
    before = env.batch.world.state.copy()
    with pytest.raises(UsageError, match=r"shape \(3, 2\); expected \(2, 2\)"):
        env.step(np.zeros((3, 2), np.float32))
    with pytest.raises(UsageError, match=r"car 1 is \[nan, 0.0\]"):
        env.step(np.array([[0.0, 0.0], [np.nan, 0.0]], np.float32))
    with pytest.raises(UsageError, match="reset_mask"):
        env.reset(options={"reset_mask": np.array([True])})
    np.testing.assert_array_equal(env.batch.world.state, before)


def test_next_step_autoreset_shows_the_last_frame_then_begins_anew() -> None:
    env = DonkeyVectorEnv(2, conf=CONF, max_steps=3)
    begin, _ = env.reset(seed=0)
    still, moving = np.zeros((2, 2), np.float32), np.tile([0.0, 0.5], (2, 1)).astype(np.float32)
    for _ in range(3):
        last, _, terminated, truncated, ends = env.step(moving)
    assert truncated.all()
    assert not terminated.any()
    assert ends["end_cause"].tolist() == ["time_limit"] * 2
    again, rewards, terminated, truncated, infos = env.step(still)
    np.testing.assert_array_equal(again, begin)
    assert not np.array_equal(last, begin)
    assert not np.concatenate((rewards, terminated, truncated)).any()
    assert (infos["speed"] == 0.0).all()


def test_same_step_autoreset_keeps_the_final_frame() -> None:
    env = DonkeyVectorEnv(2, conf=CONF, max_steps=3, autoreset_mode=AutoresetMode.SAME_STEP)
    begin, _ = env.reset(seed=0)
    move = np.tile([0.0, 0.5], (2, 1)).astype(np.float32)
    for _ in range(3):
        frames, _, _, truncated, infos = env.step(move)
    assert truncated.all()
    np.testing.assert_array_equal(frames, begin)
    assert infos["_final_obs"].all()
    assert not np.array_equal(infos["final_obs"][0], begin[0])
    assert infos["final_info"]["speed"][0] > 0.0
    assert infos["final_info"]["end_cause"].tolist() == ["time_limit"] * 2


def test_without_autoreset_an_ended_car_must_be_reset() -> None:
    env = DonkeyVectorEnv(2, conf=CONF, max_steps=1, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step(np.zeros((2, 2), np.float32))
    with pytest.raises(UsageError, match="reset_mask"):
        env.step(np.zeros((2, 2), np.float32))
    env.reset(options={"reset_mask": np.array([True, True])})
    env.step(np.zeros((2, 2), np.float32))


def test_sb3_gets_the_terminal_frame_the_time_limit_and_the_episode() -> None:
    env = DonkeyVecEnv(EnvSpec(observation=SMALL, limits=Limits(max_steps=4)), 2, seed=0)
    begin = env.reset()
    move = np.tile([0.0, 0.5], (2, 1)).astype(np.float32)
    for _ in range(4):
        frames, rewards, dones, infos = env.step(move)
    assert dones.all()
    np.testing.assert_array_equal(frames, begin)
    assert not np.array_equal(infos[0]["terminal_observation"], begin[0])
    assert infos[0]["TimeLimit.truncated"]
    assert infos[0]["end_cause"] == "time_limit"
    assert infos[0]["episode"]["l"] == 4
    assert rewards.dtype == np.float32


def test_frames_handed_out_are_never_changed_afterwards() -> None:
    env = DonkeyVecEnv(
        EnvSpec(observation=ObservationSpec(32, 24, stack=2, camera_width=32, camera_height=24)), 2, seed=0
    )
    frames, _, _ = drive(env, 5)
    copies = [frame.copy() for frame in frames]
    drive(env, 5)
    for frame, copy in zip(frames, copies):
        np.testing.assert_array_equal(frame, copy)


def test_a_stack_holds_the_last_frames_oldest_first() -> None:
    plain = ObservationSpec(32, 24, grey=True, channels_first=True, camera_width=32, camera_height=24)
    stacked = ObservationSpec(32, 24, grey=True, stack=3, channels_first=True, camera_width=32, camera_height=24)
    singles, _, _ = drive(DonkeyVecEnv(EnvSpec(observation=plain), 1, seed=0), 6)
    stacks, _, _ = drive(DonkeyVecEnv(EnvSpec(observation=stacked), 1, seed=0), 6)
    np.testing.assert_array_equal(stacks[0][0], np.repeat(singles[0][0], 3, axis=0))
    for k in range(2, 7):
        expected = np.concatenate([singles[k - 2][0], singles[k - 1][0], singles[k][0]])
        np.testing.assert_array_equal(stacks[k][0], expected)


@pytest.mark.parametrize(
    ("grey", "channels_first", "stack"), list(itertools.product((True, False), (True, False), (1, 2)))
)
def test_every_layout_shows_the_same_picture(grey: bool, channels_first: bool, stack: int) -> None:
    rgb = DonkeyVecEnv(EnvSpec(observation=SMALL), 1, seed=0).reset()[0]
    observation = ObservationSpec(
        32, 24, grey=grey, stack=stack, channels_first=channels_first, camera_width=32, camera_height=24
    )
    env = DonkeyVecEnv(EnvSpec(observation=observation), 1, seed=0)
    frame = env.reset()[0]
    assert env.observation_space.contains(frame)
    image = np.moveaxis(frame, 0, -1) if channels_first else frame
    expected = rgb @ np.array([0.2126, 0.7152, 0.0722]) if grey else rgb
    np.testing.assert_allclose(image[..., : (1 if grey else 3)].squeeze(), expected, atol=1.5)


def test_each_car_may_have_a_track_of_its_own() -> None:
    env = DonkeyVecEnv(EnvSpec(tracks=("warren", "waveshare"), observation=SMALL), 4, seed=0)
    env.reset()
    assert [env.batch.world.track(i).name for i in range(4)] == ["warren", "waveshare", "warren", "waveshare"]


def test_normalised_actions_map_onto_the_bounds() -> None:
    plain = DonkeyVecEnv(EnvSpec(observation=SMALL, action=ActionSpec(throttle_max=0.5)), 1, seed=0)
    mapped = DonkeyVecEnv(EnvSpec(observation=SMALL, action=ActionSpec(throttle_max=0.5, normalized=True)), 1, seed=0)
    plain.reset(), mapped.reset()
    for _ in range(10):
        plain.step(np.array([[0.5, 0.25]], np.float32))
        mapped.step(np.array([[0.5, 0.0]], np.float32))
    np.testing.assert_array_equal(plain.batch.world.state, mapped.batch.world.state)


def test_starts_anywhere_are_on_the_road_and_head_along_it() -> None:
    spec = EnvSpec(observation=SMALL, start=StartSpec(anywhere=True, offset=1.0, angle=10.0))
    env = DonkeyVecEnv(spec, 32, seed=0)
    env.reset()
    positions = env.batch.world.state[:, :3]
    assert len(np.unique(positions[:, 0].round(3))) > 25
    for _ in range(12):
        env.step(np.tile([0.0, 0.3], (32, 1)).astype(np.float32))
    infos = [env.batch.episode_info(i) for i in range(32)]
    assert all(abs(info["cte"]) < 4.0 for info in infos)
    assert all(info["progress"] > 0.08 for info in infos)


def test_an_env_spec_survives_its_plain_form() -> None:
    spec = EnvSpec(tracks=("warren", "random:train"), limits=Limits(max_cte=3.0), observation=SMALL)
    assert EnvSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(ConfigError, match="max_cte"):
        EnvSpec.from_dict({"limits": {"max_ctee": 2}})


def test_buffers_come_back_only_when_nobody_looks_at_them() -> None:
    buffers = _Buffers((4, 3))
    first = buffers.take()
    view = first[1:]
    del first
    second = buffers.take()
    assert not np.shares_memory(view, second)
    address = second.ctypes.data
    del second
    assert buffers.take().ctypes.data == address
