"""One env over three transports: the same actions give the same episode, to the last bit.

PNG stands in for JPEG, whose losses are the only difference there would be. Servers run in lockstep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rl_training.envs.conf import parse_conf
from rl_training.envs.donkey_env import DonkeyEnv
from rl_training.envs.remote import RemoteSimulator
from rl_training.envs.scene_host import WorldHost
from rl_training.protocol.server import SimServer, connect_in_memory
from rl_training.protocol.sessions import ServerOptions, SimEngine

CONF = {"cam_config": {"img_enc": "PNG"}}
MakeEnv = Callable[..., DonkeyEnv]


@pytest.fixture(params=["memory", "tcp"])
def make_remote(request: pytest.FixtureRequest) -> Iterator[MakeEnv]:
    """Envs on one server, over the transport of the parameter. Compiling comes first: no deadline allows for it."""
    WorldHost().warm_up()
    options = ServerOptions(lockstep=True, seed=0)
    envs: list[DonkeyEnv] = []
    if request.param == "memory":
        engine = SimEngine(WorldHost(), options)

        def make(track: str, **conf: Any) -> DonkeyEnv:
            conf = {**CONF, **conf}
            simulator = RemoteSimulator(track, parse_conf(conf), dial=lambda deadline: connect_in_memory(engine))
            envs.append(DonkeyEnv(track, conf, simulator=simulator))
            return envs[-1]

        yield make
        for env in envs:
            env.close()
        return
    server = SimServer(WorldHost(), port=0, options=options)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def make_tcp(track: str, **conf: Any) -> DonkeyEnv:
        envs.append(DonkeyEnv(track, {**CONF, **conf, "host": server.address[0], "port": server.address[1]}))
        return envs[-1]

    yield make_tcp
    for env in envs:
        env.close()
    server.stop()
    thread.join()


def assert_same(ours: Any, theirs: Any, where: str) -> None:
    np.testing.assert_equal(theirs, ours, err_msg=where)


def drive_both(embedded: DonkeyEnv, remote: DonkeyEnv, actions: np.ndarray, seed: int | None) -> int:
    """Drive an episode in both and compare all they say; the number of steps it took."""
    observation, info = embedded.reset(seed=seed)
    remote_observation, remote_info = remote.reset(seed=seed)
    start, remote_start = info["time"], remote_info["time"]
    assert_same(observation, remote_observation, "first observation")
    for step, action in enumerate(actions):
        *ours, info = embedded.step(action)
        *theirs, remote_info = remote.step(action)
        # The clock of a scene runs since it was loaded, wherever its episodes begin.
        clock = ("time", "start_line")
        assert remote_info["time"] - remote_start == pytest.approx(info["time"] - start, abs=1e-9)
        assert_same(
            {k: v for k, v in info.items() if k not in clock},
            {k: v for k, v in remote_info.items() if k not in clock},
            f"info {step}",
        )
        assert_same(ours, theirs, f"step {step}")
        if ours[1] or ours[2]:
            return step + 1
    return len(actions)


def wobbly(seed: int, steps: int) -> np.ndarray:
    """Full throttle and a steering that wanders: such a drive leaves the road sooner or later."""
    rng = np.random.default_rng(seed)
    steering = np.clip(np.cumsum(rng.normal(0.0, 0.15, steps)), -1.0, 1.0)
    return np.stack([steering, np.full(steps, 0.6)], axis=1).astype(np.float32)


@pytest.mark.parametrize("track", ["waveshare", "mountain_track"])
def test_the_same_actions_give_the_same_episode(make_remote: MakeEnv, track: str) -> None:
    embedded, remote = DonkeyEnv(track, CONF), make_remote(track)
    lengths = [drive_both(embedded, remote, wobbly(episode, 120), seed=episode) for episode in range(2)]
    assert min(lengths) < 120, "an episode that ends by itself is among them"
    embedded.close()


def test_a_seed_draws_the_same_road(make_remote: MakeEnv) -> None:
    embedded, remote = DonkeyEnv("generated_road", CONF), make_remote("generated_road")
    drive_both(embedded, remote, wobbly(1, 10), seed=11)
    drive_both(embedded, remote, wobbly(2, 10), seed=12)
    embedded.close()


def test_size_and_place_of_the_camera_travel(make_remote: MakeEnv) -> None:
    camera = {"img_enc": "PNG", "img_w": 80, "img_h": 60, "fov": 70, "offset_y": 2.0, "rot_x": 20.0}
    conf = {"cam_config": camera, "cam_config_b": {"img_enc": "PNG", "img_w": 32, "img_h": 24}, "frame_skip": 2}
    embedded, remote = DonkeyEnv("waveshare", conf), make_remote("waveshare", **conf)
    assert embedded.observation_space == remote.observation_space
    drive_both(embedded, remote, wobbly(3, 6), seed=1)
    assert remote.reset()[1]["image_b"].shape == (24, 32, 3)
    embedded.close()
