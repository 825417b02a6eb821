"""The env as gym-donkeycar's users know it, on the embedded world."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import rl_training
from rl_training.envs.conf import parse_conf
from rl_training.envs.donkey_env import DonkeyEnv
from rl_training.envs.embedded import EmbeddedSimulator, frame_of
from rl_training.envs.registration import ENV_SCENES
from rl_training.envs.rules import donkey_reward, episode_over
from rl_training.errors import ConfigError, UsageError
from rl_training.simulator import state as s
from rl_training.simulator.randomize import DomainRandomization

SMALL = {"cam_resolution": (24, 32, 3)}
KEYS = {
    *("pos", "cte", "speed", "forward_vel", "hit", "gyro", "accel", "vel", "odom", "lidar", "orientation", "car"),
    *("last_lap_time", "lap_count", "progress", "laps"),
}


def test_all_ids_are_registered() -> None:
    assert rl_training.__version__
    assert len(ENV_SCENES) == 12
    for env_id in ENV_SCENES:
        assert gym.spec(env_id).entry_point == "rl_training.envs.donkey_env:DonkeyEnv"


def test_gymnasium_and_sb3_accept_the_env() -> None:
    with warnings.catch_warnings():
        # gym-donkeycar's throttle runs from 0 to 1; the checker would like it symmetric
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        warnings.filterwarnings("ignore", message=".*no display.*")  # the checker tries every render mode
        check_env(gym.make("donkey-generated-track-v0", conf=SMALL, render_mode="rgb_array").unwrapped)
        sb3_check_env(DonkeyEnv("generated_track"))


def test_spaces_are_gym_donkeycars() -> None:
    env = gym.make("donkey-generated-track-v0")
    assert env.observation_space == gym.spaces.Box(0, 255, (120, 160, 3), np.uint8)
    np.testing.assert_array_equal(env.action_space.low, [-1, 0])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(env.action_space.high, [1, 1])  # type: ignore[attr-defined]
    env.close()


def test_infos_have_all_keys_as_plain_values() -> None:
    env = DonkeyEnv("generated_track", SMALL)
    _, info = env.reset(seed=0)
    assert set(info) >= KEYS
    assert all(type(value) is float for key in ("pos", "vel", "gyro", "accel", "car") for value in info[key])


def test_driving_ahead_moves_along_the_road() -> None:
    env = DonkeyEnv("generated_track", SMALL)
    _, before = env.reset(seed=0)
    for _ in range(40):
        *_, info = env.step(np.array([0.0, 0.2], np.float32))
    assert info["pos"][2] > before["pos"][2] + 0.5  # the start heads along +z
    assert info["forward_vel"] == pytest.approx(info["speed"], rel=0.05)
    assert info["vel"][2] == info["forward_vel"]
    assert info["progress"] == pytest.approx(info["pos"][2] - before["pos"][2], rel=0.02)
    assert abs(info["cte"]) < 0.5


def test_steering_right_turns_right() -> None:
    env = DonkeyEnv("generated_track", SMALL)
    env.reset(seed=0)
    for _ in range(25):
        *_, info = env.step(np.array([1.0, 0.2], np.float32))
    assert info["gyro"][1] > 0.0
    assert 0.0 < info["car"][2] < 180.0  # yaw is clockwise
    assert info["cte"] > 0.5  # right of the path is positive


def test_leaving_the_road_ends_the_episode() -> None:
    env = DonkeyEnv("generated_track", SMALL)
    env.reset(seed=0)
    for _ in range(400):
        _, reward, terminated, truncated, info = env.step(np.array([0.0, 0.4], np.float32))
        if terminated:
            break
    assert terminated
    assert not truncated
    assert reward == -1.0
    assert info["end_cause"] == "off_road"
    assert abs(info["cte"]) > 8.0


@pytest.mark.parametrize("cte", [8.5, -8.5, 16.5, -16.5, 500.0])
def test_there_is_no_blind_spot_far_from_the_road(cte: float) -> None:
    """Exploit 6: the classic client ignored a car further out than twice max_cte."""
    assert episode_over(cte, False, 8.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_both_sides_of_the_road_pay_alike(side: float) -> None:
    assert donkey_reward(2.0, side * 4.0, False, 8.0) == pytest.approx(1.0)


def test_driving_backwards_costs_its_speed() -> None:
    assert donkey_reward(-2.0, 4.0, False, 8.0) == pytest.approx(-2.0)


def test_a_time_limit_truncates() -> None:
    env = DonkeyEnv("generated_track", SMALL, max_steps=3)
    env.reset(seed=0)
    ends = [env.step(np.array([0.0, 0.0], np.float32))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


def test_a_hit_ends_the_episode_and_names_what_was_hit() -> None:
    env = DonkeyEnv("mini_monaco", {**SMALL, "max_cte": 50.0})
    env.reset(seed=0)
    for _ in range(200):
        _, reward, terminated, _, info = env.step(np.array([1.0, 0.3], np.float32))
        if terminated:
            break
    assert terminated
    assert reward == -1.0
    assert info["hit"] == "RepeatObjectAlong"
    assert info["end_cause"] == "hit RepeatObjectAlong"


def test_a_reward_function_of_gym_donkeycar_works() -> None:
    env = DonkeyEnv("generated_track", SMALL)
    env.set_reward_fn(lambda self, done: 7.0 + self.cte * 0.0 if self.hit == "none" and not done else -1.0)
    env.reset(seed=0)
    assert env.step(np.array([0.0, 0.1], np.float32))[1] == 7.0


def test_conf_is_checked_and_left_alone() -> None:
    conf = {"max_cte": 5.0, "img_w": 64, "img_h": 48}
    assert parse_conf(conf).cam_resolution == (48, 64, 3)
    assert conf == {"max_cte": 5.0, "img_w": 64, "img_h": 48}


def test_confs_that_donkeycar_and_numpy_write_are_understood() -> None:
    """DonkeyCar says that the simulator runs already, numbers its racers, and counts with numpy."""
    conf = parse_conf(
        {"exe_path": "remote", "guid": 0, "max_cte": np.float32(5), "cam_resolution": np.array([60, 80, 3])}
    )
    assert (conf.exe_path, conf.host, conf.remote) == (None, "127.0.0.1", True)
    assert (conf.guid, conf.max_cte, conf.cam_resolution) == ("0", 5.0, (60, 80, 3))
    assert parse_conf({"exe_path": "remote", "host": "there"}).host == "there"


@pytest.mark.parametrize(
    ("conf", "sentence"),
    [
        ({"max_ct": 5}, "Did you mean 'max_cte'"),
        ({"cam_config": {"fovv": 80}}, "Did you mean 'fov'"),
        ({"lidar_config": {"maxrange": 80}}, "Did you mean 'maxRange'"),
        ({"max_cte": -1}, "positive"),
        ({"frame_skip": 0}, "1 or more"),
        ({"throttle_min": 0.9, "throttle_max": 0.1}, "throttle_min"),
        ({"cam_resolution": (120, 160, 4)}, "cam_resolution"),
        ({"max_cte": "far"}, "'far'; expected a number"),
        ({"frame_skip": 1.5}, "a whole number"),
        ({"cam_resolution": 120}, "a list of 3 numbers"),
        ({"cam_config": {"fov": "wide"}}, "'wide'; expected a number"),
        ({"cam_config": [90]}, "expected a mapping"),
        ({"lidar_config": {"degPerSweepInc": 0}}, "0.01 or more"),
        ("conf", "expected a mapping"),
    ],
)
def test_a_wrong_conf_says_what_is_wrong(conf: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_conf(conf)


def test_a_wrong_action_is_refused() -> None:
    env = DonkeyEnv("generated_track", SMALL)
    with pytest.raises(UsageError, match="before reset"):
        env.step(np.array([0.0, 0.0], np.float32))
    env.reset(seed=0)
    for wrong in (np.array([np.nan, 0.0]), np.array([0.0]), np.array([0.0, 0.0, 0.0])):
        with pytest.raises(UsageError, match="two finite numbers"):
            env.step(wrong.astype(np.float32))
    with pytest.raises(UsageError, match="max_steps is -1"):
        DonkeyEnv("generated_track", SMALL, max_steps=-1)


def test_a_second_camera_adds_its_image() -> None:
    env = DonkeyEnv("generated_track", {**SMALL, "cam_config_b": {"img_w": 40, "img_h": 30, "offset_x": 2.0}})
    _, info = env.reset(seed=0)
    assert info["image_b"].shape == (30, 40, 3)


def test_a_lidar_is_an_array_of_distances_as_gym_donkeycar_has_it() -> None:
    """In the middle of a room 49.5 by 33 u: every ray meets a wall, at no less than its distance."""
    scan = {"degPerSweepInc": 90, "degAngDown": 0, "degAngDelta": -1, "numSweepsLevels": 2, "maxRange": 60}
    _, info = DonkeyEnv("waveshare", {**SMALL, "lidar_config": scan}).reset(seed=0)
    assert info["lidar"].shape == (8,)  # 2 levels of 4 rays: ahead (+x), right (-z), behind, left
    np.testing.assert_allclose(info["lidar"][:4], [24.25, 8.8, 25.25, 24.2], atol=0.6)
    short = DonkeyEnv("waveshare", {**SMALL, "lidar_config": {**scan, "maxRange": 12}})
    assert short.reset(seed=0)[1]["lidar"][:4].tolist() == [-1.0, info["lidar"][1], -1.0, -1.0]
    assert DonkeyEnv("waveshare", SMALL).reset(seed=0)[1]["lidar"] == []


def test_turning_rates_are_in_world_axes_and_speed_is_along_the_slope() -> None:
    """A car that heads along +x and pitches turns about -z; one that climbs is as fast as its wheels."""
    env = EmbeddedSimulator("mountain_track", parse_conf(SMALL), DomainRandomization())
    env.reset(np.random.default_rng(0), {})
    row = env.world.state[0]
    row[[s.YAW, s.PITCH_RATE, s.YAW_RATE, s.ROLL_RATE]] = np.pi / 2, 0.3, 0.2, 0.1
    row[[s.FORWARD, s.LATERAL, s.VERTICAL]] = 8.0, 0.0, 2.0
    frame = frame_of(env.world, 0, np.zeros((1, 1, 3), np.uint8))
    assert frame.gyro == pytest.approx((0.1, 0.2, -0.3))
    assert (frame.speed, frame.velocity) == (1.0, (0.0, 0.0, 1.0))


def test_a_new_seed_means_a_new_generated_road() -> None:
    """ "Random" roads that were silently the same road: seeds must differ, and no seed must keep the road."""
    env = DonkeyEnv("generated_road", SMALL)
    roads = []
    for seed in (1, 2, None, 1):
        env.reset(seed=seed)
        roads.append(env.simulator.track.line.copy())  # type: ignore[attr-defined]
    assert not np.array_equal(roads[0], roads[1])
    np.testing.assert_array_equal(roads[1], roads[2])
    np.testing.assert_array_equal(roads[0], roads[3])


def test_every_reset_of_a_random_road_is_another_road() -> None:
    env = DonkeyEnv("random", SMALL)
    env.reset(seed=5)
    names = [env.simulator.track.name]  # type: ignore[attr-defined]
    for _ in range(4):
        env.reset()
        names.append(env.simulator.track.name)  # type: ignore[attr-defined]
    assert len(set(names)) == 5


def test_rendering_gives_the_frame_and_without_a_display_a_run_goes_on_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    env = DonkeyEnv("generated_track", SMALL, render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), observation)
    monkeypatch.delenv("DISPLAY", raising=False)
    unseen = DonkeyEnv("generated_track", SMALL, render_mode="human")
    with pytest.warns(UserWarning, match="no display"):
        unseen.reset(seed=0)
    assert unseen.step(np.array([0.0, 0.1], np.float32))[4]["hit"] == "none"
    unseen.close()
