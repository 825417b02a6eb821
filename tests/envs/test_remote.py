"""The env at the end of a wire that fails: episodes end, resets reconnect, nothing waits for ever."""

from __future__ import annotations

import copy
import os
import socket
import stat
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_training.envs.conf import parse_conf
from rl_training.envs.donkey_env import DonkeyEnv
from rl_training.envs.process import SimulatorProcess
from rl_training.envs.remote import RemoteSimulator, configs_of
from rl_training.envs.wire import LapCounter
from rl_training.errors import ConfigError, SimulatorLost
from rl_training.protocol import messages as m
from rl_training.protocol.deadlines import Deadlines
from rl_training.protocol.telemetry import Telemetry
from tests.protocol.fake_host import FakeHost, eventually, running
from tests.protocol.proxy import nothing, plain, proxied

QUICK = Deadlines(connect=2.0, answer=1.0, scene=2.0, frame=0.3, reset=1.0)
ACTION = np.array([0.0, 0.5], np.float32)


def env_at(address: tuple[str, int], deadlines: Deadlines = QUICK, **conf: Any) -> DonkeyEnv:
    conf = {"host": address[0], "port": address[1], **conf}
    return DonkeyEnv("warren", conf, simulator=RemoteSimulator("warren", parse_conf(conf), deadlines=deadlines))


def test_a_frozen_simulator_truncates_the_episode_and_a_reset_mends_it() -> None:
    with running(lockstep=True) as server, proxied(server.address) as proxy:
        env = env_at(proxy.address)
        env.reset()
        last, *_ = env.step(ACTION)
        proxy.to_client = nothing
        observation, reward, terminated, truncated, info = env.step(ACTION)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert info["sim_lost"]
        assert info["end_cause"] == "sim_lost"
        assert "for a frame" in info["sim_error"]
        np.testing.assert_array_equal(observation, last)
        proxy.to_client = plain
        env.reset()
        _, _, _, truncated, info = env.step(ACTION)
        assert not truncated
        assert "sim_lost" not in info
        assert proxy.connections == 2
        env.close()
        env.close()


def test_a_simulator_that_was_restarted_is_found_again() -> None:
    host = FakeHost()
    with running(host, lockstep=True) as server:
        port = server.address[1]
        env = env_at(server.address, cam_config={"img_w": 32, "img_h": 24, "img_enc": "PNG"})
        assert env.reset()[0].shape == (24, 32, 3)
    *_, truncated, info = env.step(ACTION)
    assert truncated
    assert info["sim_lost"]
    # The same port again, as after a restart: scene and camera have to be set up anew.
    from rl_training.protocol.server import SimServer
    from rl_training.protocol.sessions import ServerOptions

    fresh = FakeHost()
    second = SimServer(fresh, port=port, options=ServerOptions(lockstep=True))
    thread = threading.Thread(target=second.serve_forever)
    thread.start()
    assert env.reset()[0].shape == (24, 32, 3)
    assert fresh.scene == "warren"
    env.close()
    second.stop()
    thread.join()


def test_it_gives_up_after_a_limit() -> None:
    with running(lockstep=True) as server, proxied(server.address) as proxy:
        impatient = Deadlines(connect=0.5, answer=0.1, scene=0.2, frame=0.1, reset=0.1)
        env = env_at(proxy.address, impatient)
        proxy.to_client = nothing
        with pytest.raises(SimulatorLost, match=r"Tried \d times in \d s to begin an episode"):
            env.reset()
        env.close()


def test_a_wrong_scene_is_changed_and_an_unknown_track_refused() -> None:
    host = FakeHost()
    with running(host, lockstep=True) as server:
        env = env_at(server.address)
        env.reset()
        env.close()
        assert eventually(lambda: not host.cars)
        conf = parse_conf({"host": "127.0.0.1", "port": server.address[1]})
        other = RemoteSimulator("waveshare", conf, deadlines=QUICK)
        other.reset(np.random.default_rng(0), {})
        assert host.scene == "waveshare"
        other.close()
    for track in ("random:train:3", "mine.yaml"):
        with pytest.raises(ConfigError, match="embedded world only"):
            RemoteSimulator(track, conf)


def test_the_car_brakes_while_the_learner_is_away() -> None:
    host = FakeHost()
    with running(host) as server:
        env = env_at(server.address)
        env.reset()
        env.step(ACTION)
        (car,) = host.cars.values()
        assert car.brake == 0.0
        assert eventually(lambda: car.brake == 1.0, seconds=3.0)
        env.step(ACTION)
        assert car.brake == 0.0
        env.close()


def test_conf_becomes_the_messages_it_stands_for() -> None:
    assert configs_of(parse_conf({})) == []
    conf = {
        "body_style": "f1",
        "body_rgb": (1, 2, 3),
        "car_name": "Zoe",
        "cam_resolution": (60, 80, 1),
        "cam_config_b": {"img_w": 32},
        "lidar_config": {"degPerSweepInc": 5, "numSweepsLevels": 2},
        "racer_name": "Z",
        "country": "FR",
    }
    given = copy.deepcopy(conf)
    car, camera, second, lidar, racer = configs_of(parse_conf(conf))
    assert conf == given, "a caller's conf is read and not changed"
    assert car == m.CarConfig("f1", 1, 2, 3, "Zoe", 100)
    assert camera == m.CamConfig(img_w=80, img_h=60, img_d=1)
    assert second == m.CamConfigB(img_w=32)
    assert isinstance(lidar, m.LidarConfig)
    assert (lidar.deg_per_sweep, lidar.levels) == (5.0, 2)
    assert racer == m.RacerInfo("Z", "Zoe", "", "FR", "")


def test_a_grey_observation_is_cut_from_the_colour_frame() -> None:
    with running(lockstep=True) as server:
        env = env_at(server.address, cam_resolution=(30, 40, 1))
        assert env.reset()[0].shape == env.observation_space.shape == (30, 40, 1)
        env.close()


def test_a_simulator_that_hides_the_road_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    class Racing(FakeHost):
        def telemetry(self, car: int) -> Telemetry:
            return replace(super().telemetry(car), cte=None, pos_x=None, pos_y=None, pos_z=None)

    with running(Racing(), lockstep=True) as server:
        env = env_at(server.address)
        for _ in range(2):
            env.reset()
        assert env.step(ACTION)[4]["cte"] == 0.0
        env.close()
    assert caplog.text.count("sends no cte") == 1


def test_laps_are_counted_from_start_lines_where_nothing_else_is_told() -> None:
    laps = LapCounter()
    packet = Telemetry(np.zeros((2, 2, 3), np.uint8), cte=0.5)
    assert laps.progress(packet, [m.StartLineCrossed(0, 10.0)]).laps == 0, "the first crossing starts the clock"
    assert laps.progress(packet, [m.StartLineCrossed(1, 15.0)]).laps == 0, "another line counts for nothing"
    progress = laps.progress(packet, [m.StartLineCrossed(0, 32.5)])
    assert (progress.laps, progress.last_lap_time, progress.closed) == (1, 22.5, True)


# --- A simulator of our own -------------------------------------------------------------------------------------------


def executable(path: Path, body: str) -> str:
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_exe_path_starts_a_child_and_ends_it_with_what_it_started(tmp_path: Path) -> None:
    body = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(tmp_path / 'started')!r}).write_text(f'{{child.pid}} ' + ' '.join(sys.argv[1:]))\n"
        "time.sleep(60)\n"
    )
    process = SimulatorProcess(executable(tmp_path / "sim", body), 9191, headless=True)
    note = tmp_path / "started"
    assert eventually(lambda: note.exists() and note.read_text().count(" ") == 4)
    child, *arguments = note.read_text().split(" ")
    assert arguments == ["--port", "9191", "-nographics", "-batchmode"]
    process.check()
    process.stop()
    process.stop()
    assert not process.is_running
    assert eventually(
        lambda: not os.path.exists(f"/proc/{child}") or "zombie" in Path(f"/proc/{child}/status").read_text()
    )


def test_a_child_that_cannot_be_or_that_ends_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a program that can be run"):
        SimulatorProcess(str(tmp_path / "nothing"), 9191)
    process = SimulatorProcess(executable(tmp_path / "brief", "raise SystemExit(3)"), 9191)
    assert eventually(lambda: not process.is_running)
    with pytest.raises(SimulatorLost, match="ended with code 3"):
        process.check()
    process.stop()


def test_an_env_drives_the_simulator_it_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    root = Path(__file__).parents[2]
    body = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from rl_training.protocol.server import SimServer\n"
        "from tests.protocol.fake_host import FakeHost\n"
        "SimServer(FakeHost(), port=int(sys.argv[2])).serve_forever()\n"
    )
    conf = {"exe_path": executable(tmp_path / "sim", body), "port": port}
    env = DonkeyEnv("warren", conf)
    env.reset()
    assert env.step(ACTION)[4]["speed"] > 0.0
    started = time.monotonic()
    env.close()
    assert time.monotonic() - started < 4.0, "it ends when it is asked to"
