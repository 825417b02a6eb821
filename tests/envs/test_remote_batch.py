"""Several simulators as one VecEnv: the embedded batch's episodes, and one lost simulator harms no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest

from rl_training.envs.remote_batch import RemoteBatch
from rl_training.envs.scene_host import WorldHost
from rl_training.envs.spec import EnvSpec, Limits, ObservationSpec, StartSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ConfigError
from rl_training.protocol.deadlines import Deadlines
from rl_training.protocol.scene_host import SceneHost
from rl_training.protocol.server import SimServer
from rl_training.protocol.sessions import ServerOptions
from tests.protocol.fake_host import FakeHost, running
from tests.protocol.proxy import nothing, plain, proxied

PNG = {"cam_config": {"img_enc": "PNG"}}
SPEC = EnvSpec(
    tracks=("waveshare", "warren"),
    observation=ObservationSpec(stack=2, channels_first=True, command_rows=2),
    limits=Limits(max_cte=3.0, max_steps=40),
    frame_skip=2,
)


@contextmanager
def servers(hosts: Sequence[SceneHost]) -> Iterator[list[str]]:
    """Lockstep servers, and where they listen. Compiling comes first: no client's deadline allows for it."""
    WorldHost().warm_up()
    started = [SimServer(host, port=0, options=ServerOptions(lockstep=True, seed=0)) for host in hosts]
    threads = [threading.Thread(target=server.serve_forever) for server in started]
    for thread in threads:
        thread.start()
    yield ["{}:{}".format(*server.address) for server in started]
    for server, thread in zip(started, threads):
        server.stop()
        thread.join()


def test_remote_cars_live_as_the_embedded_ones_do() -> None:
    with servers([WorldHost(), WorldHost()]) as addresses:
        embedded = DonkeyVecEnv(SPEC, 2, seed=3)
        remote = DonkeyVecEnv(SPEC, 2, batch=RemoteBatch(SPEC, addresses, seed=3, conf=PNG))
        np.testing.assert_array_equal(remote.reset(), embedded.reset())
        rng = np.random.default_rng(1)
        ends = 0
        for _ in range(60):
            actions = np.stack([rng.uniform(-1, 1, 2), rng.uniform(0.3, 0.8, 2)], axis=1).astype(np.float32)
            ours, theirs = embedded.step(actions), remote.step(actions)
            for mine, other in zip(ours[:3], theirs[:3]):
                np.testing.assert_array_equal(other, mine)
            for info, other_info in zip(ours[3], theirs[3]):
                info.get("episode", {}).pop("t", None)
                other_info.get("episode", {}).pop("t", None)
                np.testing.assert_equal(other_info, info)
            ends += int(ours[2].sum())
        assert ends >= 2
        embedded.close()
        assert remote.save_state() is None
        remote.close()


def test_a_lost_simulator_truncates_its_own_car_only() -> None:
    spec = replace(SPEC, tracks=("warren",), frame_skip=1, limits=Limits(max_cte=100.0))
    with ExitStack() as stack:
        good = stack.enter_context(running(FakeHost(), lockstep=True))
        bad = stack.enter_context(running(FakeHost(), lockstep=True))
        proxy = stack.enter_context(proxied(bad.address))
        batch = RemoteBatch(spec, ["{}:{}".format(*address) for address in (good.address, proxy.address)])
        for simulator in batch.world.simulators:  # type: ignore[attr-defined]
            simulator.client.deadlines = Deadlines(connect=2.0, answer=1.0, scene=2.0, frame=0.3)
        vec = DonkeyVecEnv(spec, 2, batch=batch)
        vec.reset()
        actions = np.full((2, 2), 0.3, np.float32)
        vec.step(actions)
        proxy.to_client = nothing
        threading.Timer(0.6, setattr, (proxy, "to_client", plain)).start()
        _, _, done, infos = vec.step(actions)
        assert done.tolist() == [False, True]
        assert (infos[1]["sim_lost"], infos[1]["end_cause"], infos[1]["TimeLimit.truncated"]) == (
            True,
            "sim_lost",
            True,
        )
        assert "sim_lost" not in infos[0]
        _, _, done, infos = vec.step(actions)
        assert not done.any()
        assert "sim_lost" not in infos[1]
        vec.close()


def test_what_only_the_embedded_world_varies_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    batch = RemoteBatch(replace(SPEC, start=StartSpec(anywhere=True)), ["127.0.0.1:1", "127.0.0.1:2"])
    assert batch.spec.start == StartSpec()
    assert "no randomisation" in caplog.text
    batch.close()


def test_what_a_simulator_elsewhere_cannot_do_is_said() -> None:
    with pytest.raises(ConfigError, match="No simulator is named"):
        RemoteBatch(SPEC, [])
    with pytest.raises(ConfigError, match="expected HOST:PORT"):
        RemoteBatch(SPEC, ["127.0.0.1:1", "127.0.0.1:port"])
    with pytest.raises(ConfigError, match="2 tracks need as many simulators and 1 are named"):
        RemoteBatch(SPEC, ["127.0.0.1:1"])
