"""The client: what it does right with a good simulator, and that with a bad one it always comes back."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rl_training.errors import ConfigError, SimulatorLost, SimulatorTimeout
from rl_training.protocol import messages as m
from rl_training.protocol.client import SimClient
from rl_training.protocol.deadlines import Deadlines
from rl_training.protocol.framing import encode_line
from rl_training.protocol.server import SimServer, connect_in_memory
from rl_training.protocol.sessions import ServerOptions, SimEngine
from rl_training.protocol.telemetry import ImageEncoding, Telemetry, write_telemetry
from rl_training.protocol.transport import Transport, parse_address
from tests.protocol.fake_host import FakeHost, control, eventually, running
from tests.protocol.proxy import corrupted, delayed, merged, nothing, proxied, split

QUICK = Deadlines(connect=1.0, answer=2.0, scene=5.0, frame=2.0, reset=2.0)
IMPATIENT = Deadlines(connect=0.2, answer=0.2, scene=0.3, frame=0.2, reset=0.3)


def client_of(server: SimServer | tuple[str, int], deadlines: Deadlines = QUICK) -> SimClient:
    host, port = server if isinstance(server, tuple) else server.address
    return SimClient(host, port, deadlines)


@pytest.fixture(params=["lockstep", "real time", "memory"])
def client(request: pytest.FixtureRequest) -> Iterator[SimClient]:
    if request.param == "memory":
        engine = SimEngine(FakeHost(), ServerOptions(lockstep=True))
        client = SimClient(deadlines=QUICK, dial=lambda deadline: connect_in_memory(engine))
        client.connect()
        yield client
        client.close()
        return
    with running(speed=10.0, lockstep=request.param == "lockstep") as server:
        client = client_of(server)
        client.connect()
        yield client
        client.close()


def drive(client: SimClient, steps: int) -> list[Telemetry]:
    return [client.step(0.0, 0.5) for _ in range(steps)]


# --- A good simulator -------------------------------------------------------------------------------------------------


def test_a_whole_session(client: SimClient) -> None:
    assert client.server == "donkey-rl"
    assert client.where() == ""
    assert "thunderhill" in client.scene_names()
    client.load_scene("warehouse")
    assert client.scene == "warehouse"
    client.configure(
        m.CarConfig(car_name="me"), m.CamConfig(img_w=32, img_h=24, img_enc="PNG"), m.CamConfigB(img_w=16, img_h=8)
    )
    first = client.reset()
    assert first.image.shape == (24, 32, 3)
    assert first.image_b is not None
    assert first.image_b.shape == (8, 16, 3)
    assert first.pos_z == 0.0
    before = first
    for step in range(5):
        frame = client.step(0.1 * step, 0.5)
        assert (frame.steering_angle, frame.throttle) == (pytest.approx(0.1 * step), 0.5)
        assert frame.time > before.time
        assert frame.pos_z is not None
        assert frame.pos_z > (before.pos_z or 0.0)
        before = frame
    assert client.node_position(3).pos_z == 6.0
    assert client.ping() < 2.0
    again = client.reset()
    assert (again.pos_z, again.throttle, again.hit) == (0.0, 0.0, "none")


def test_lockstep_loses_no_frame_and_reset_takes_no_time(client: SimClient) -> None:
    if not client.lockstep:
        client.load_scene("warren")
        client.use_lockstep()
    client.load_scene("warren")
    client.reset()
    start = client.step(0.0, 1.0).time
    for step in range(1, 20):
        assert client.step(0.0, 1.0).time == pytest.approx(start + 0.05 * step)
    assert client.reset().time == pytest.approx(start + 0.05 * 19)
    # Answers nobody waited for are passed over: the next frame is that of the last control.
    client.send_control(0.0, 0.1)
    client.send_control(0.0, 0.2)
    assert client.wait_frame().throttle == 0.2


def test_start_lines_are_kept_until_they_are_taken(client: SimClient) -> None:
    client.load_scene("warren")
    client.reset()
    while not client.crossings:
        client.step(0.0, 1.0)
    assert [crossing.starting_line_index for crossing in client.crossings] == [7]
    client.reset()
    assert client.crossings == []


def test_another_scene_is_changed_and_the_same_one_kept(client: SimClient) -> None:
    client.load_scene("warehouse")
    client.load_scene("waveshare")
    assert client.reset().pos_z == 0.0
    client.connect()
    client.load_scene("waveshare")
    assert client.scene == "waveshare"
    client.reset()
    client.reconnect()
    assert client.scene == "waveshare"


def test_a_scene_that_is_not_offered_is_named_with_the_nearest(client: SimClient) -> None:
    with pytest.raises(ConfigError, match=r"no scene 'warehose'.*Did you mean 'warehouse'"):
        client.load_scene("warehose")
    client.load_scene("warehouse")


def test_reconnect_brings_back_the_configuration() -> None:
    host = FakeHost()
    with running(host, speed=10.0) as server:
        client = client_of(server)
        client.connect()
        client.load_scene("warren")
        client.use_lockstep()
        client.configure(m.CamConfig(img_w=32, img_h=24))
        client.reconnect()
        assert client.lockstep
        assert client.reset().image.shape == (24, 32, 3)
        assert len([call for call in host.calls if call[0] == "load"]) == 1
        client.close()


def test_no_message_overwrites_another() -> None:
    """The classic client has room for one message and loses the earlier of two."""
    host = FakeHost()
    with running(host, lockstep=True) as server:
        client = client_of(server)
        client.connect()
        client.load_scene("generated_road")
        client.regen_road(m.RegenRoad(rand_seed=1))
        client.configure(*[m.CarConfig(car_name=f"car {i}") for i in range(50)])
        client.set_position(m.SetPosition(8.0, 0.0, 16.0))
        assert client.step(0.0, 0.0).pos_z == 2.0
        assert [call[0] for call in host.calls] == ["load", "regen", *["body"] * 50, "position"]
        client.close()


def test_nothing_is_slept_through(client: SimClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classic client sleeps after each configuration and for more than a second in each reset."""
    from rl_training.protocol import client as module

    pauses: list[float] = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    client.load_scene("warren")
    client.configure(m.CarConfig(car_name="me"), m.CamConfig(img_w=32, img_h=24), m.CamConfigB(), m.LidarConfig())
    assert client.reset().image.shape == (24, 32, 3)
    client.step(0.0, 0.5)
    assert pauses == []


def test_real_time_frames_are_newer_than_their_control() -> None:
    """The learner was busy for a while; what has piled up is not taken for the answer to its next control."""
    with running(speed=5.0) as server:
        client = client_of(server)
        client.connect()
        client.load_scene("warren")
        client.reset()
        client.step(0.0, 0.1)
        client.brake()
        time.sleep(0.2)
        for throttle in (0.3, 0.4, 0.5):
            assert client.step(0.0, throttle).throttle == throttle
        client.close()


def test_a_hit_does_not_survive_the_reset() -> None:
    host = FakeHost()
    with running(host, lockstep=True) as server:
        client = client_of(server)
        client.connect()
        client.load_scene("warren")
        client.reset()
        (car,) = host.cars.values()
        car.hit = "Line01"
        assert client.reset().hit == "none"
        car.hit = "Line01"
        assert client.step(0.0, 0.0).hit == "Line01"
        client.close()


def test_a_hit_in_a_frame_that_is_passed_over_is_told_by_the_next() -> None:
    """As while a learner updates: the simulator tells each contact once, in a packet nobody looks at."""
    host = FakeHost()
    with running(host, speed=4.0) as server:
        client = client_of(server)
        client.connect()
        client.load_scene("warren")
        client.reset()
        client.step(0.0, 0.1)
        (car,) = host.cars.values()
        car.hit = "Line01"
        moment = car.time
        assert eventually(lambda: car.hit == "none" and car.time > moment + 0.3)
        assert client.step(0.0, 0.1).hit == "Line01"
        assert client.step(0.0, 0.1).hit == "none"
        client.close()


def test_several_simulators_are_stepped_at_once() -> None:
    """Send to all, then wait for each: the sum of the waits is that of the slowest."""
    with running(lockstep=True) as first, running(lockstep=True) as second, running(lockstep=True) as third:
        clients = [client_of(server) for server in (first, second, third)]
        for client, scene in zip(clients, ("warren", "waveshare", "warehouse")):
            client.connect()
            client.load_scene(scene)
            client.reset()
        for _ in range(10):
            for index, client in enumerate(clients):
                client.send_control(0.1 * index, 0.5)
            frames = [client.wait_frame() for client in clients]
            assert [frame.steering_angle for frame in frames] == [0.0, 0.1, 0.2]
        for client in clients:
            client.close()


# --- A bad one --------------------------------------------------------------------------------------------------------


def test_who_waits_for_a_simulator_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SimulatorLost):
        SimClient(port=port, deadlines=Deadlines(connect=1.0)).connect()
    assert caplog.messages == [f"No simulator answers at 127.0.0.1:{port} yet; waiting for one, 1 s at most."]


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SimulatorLost, match=rf"No simulator answered at 127.0.0.1:{port} within 0.2 s.*donkey-rl sim"):
        client_of(("127.0.0.1", port), IMPATIENT).connect()


def test_it_waits_for_a_simulator_that_starts_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server: list[SimServer] = []

    def start_later() -> None:
        time.sleep(0.15)
        server.append(SimServer(FakeHost(), port=port))
        server[0].serve_forever()

    thread = threading.Thread(target=start_later)
    thread.start()
    client = client_of(("127.0.0.1", port), Deadlines(connect=5.0))
    client.connect()
    client.close()
    server[0].stop()
    thread.join()


def mute() -> socket.socket:
    """A program that takes connections and says nothing."""
    return socket.create_server(("127.0.0.1", 0))


def test_a_mute_simulator_costs_a_deadline_not_an_eternity() -> None:
    with mute() as listener, pytest.raises(SimulatorTimeout, match=r"Waited 0\.\d s for its protocol version"):
        client_of(listener.getsockname(), IMPATIENT).connect()


@pytest.mark.parametrize(
    "act", [lambda c: c.reset(), lambda c: c.step(0.0, 0.1), lambda c: c.ping(), lambda c: c.node_position(1)]
)
def test_a_simulator_that_freezes_costs_a_deadline(act: Callable[[SimClient], Any]) -> None:
    for lockstep in (True, False):
        with running(lockstep=lockstep) as server, proxied(server.address) as proxy:
            client = client_of(proxy.address, IMPATIENT)
            client.deadlines = QUICK
            client.connect()
            client.load_scene("warren")
            client.reset()
            client.deadlines = IMPATIENT
            proxy.to_client = nothing
            with pytest.raises(SimulatorTimeout, match=r"Waited \d\.\d s for .* from the simulator at 127"):
                act(client)
            client.close()


@pytest.mark.parametrize("act", [lambda c: c.reset(), lambda c: c.step(0.0, 0.1), lambda c: c.ping()])
@pytest.mark.parametrize("lockstep", [True, False])
@pytest.mark.parametrize("flood", ["nonsense", "a car that never stands"])
def test_a_flood_does_not_put_a_deadline_off(act: Callable[[SimClient], Any], lockstep: bool, flood: str) -> None:
    """More than can be read, none of it what is waited for."""
    packet = Telemetry(np.zeros((2, 2, 3), np.uint8), speed=3.0, steering_angle=0.7)
    lines = {
        "nonsense": b'{"msg_type":"gossip"}\n',
        "a car that never stands": encode_line(write_telemetry(packet, ImageEncoding("PNG"), ImageEncoding())),
    }

    class Flood:
        address = "flood"

        def __init__(self) -> None:
            self.said = b'{"msg_type":"protocol_version","version":"2","lockstep":%d}\n' % lockstep

        def send(self, data: bytes, deadline: float) -> None:
            pass

        def receive(self, deadline: float) -> bytes:
            said, self.said = self.said, lines[flood]
            return said if time.monotonic() < start + 5.0 else b""

        def close(self) -> None:
            pass

    start = time.monotonic()
    client = SimClient(deadlines=IMPATIENT, dial=lambda deadline: Flood())
    client.connect()
    with contextlib.suppress(SimulatorTimeout):  # a step takes any frame in the end
        act(client)
    assert time.monotonic() - start < 3.0
    client.close()


def test_what_cannot_be_used_is_named_when_a_wait_ends_in_vain() -> None:
    with mute() as listener:

        def simulator() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'{"msg_type":"car_loaded"}\n{"msg_type":"protocol_version","version":"2"}\n')
                connection.sendall(b'{"msg_type":"telemetry","speed":1.0}\n' * 3)
                connection.recv(1)
                time.sleep(1.0)

        thread = threading.Thread(target=simulator)
        thread.start()
        client = client_of(listener.getsockname(), IMPATIENT)
        client.connect()
        with pytest.raises(SimulatorTimeout, match=r"in vain. What it sends cannot be used: Telemetry has no 'image'"):
            client.load_scene("warren")
        client.close()
        thread.join()


def test_a_simulator_that_is_gone_is_noticed_at_once() -> None:
    with running(speed=10.0) as server, proxied(server.address) as proxy:
        client = client_of(proxy.address, Deadlines(frame=30.0))
        client.connect()
        client.load_scene("warren")
        client.reset()
        proxy.reset_all()
        start = time.monotonic()
        with pytest.raises(SimulatorLost):
            drive(client, 10)
        assert time.monotonic() - start < 15.0, "far before the deadline"
        assert not client.is_connected
        with pytest.raises(SimulatorLost, match="There is no connection"):
            client.step(0.0, 0.1)
        client.reconnect()
        assert client.reset().pos_z == 0.0
        client.close()


def test_a_server_that_stops_ends_the_wait() -> None:
    with running(lockstep=True) as server:
        client = client_of(server)
        client.connect()
        client.load_scene("warren")
        client.reset()
        server.stop()
        with pytest.raises(SimulatorLost, match=r"Waited .* for a frame|broke"):
            drive(client, 100_000)


@pytest.mark.parametrize("mangle", [split, delayed(0.002), merged(2)], ids=["split", "delayed", "merged"])
def test_a_rough_network_changes_nothing(mangle: Any) -> None:
    with running(speed=10.0) as server, proxied(server.address) as proxy:
        proxy.to_server = split
        client = client_of(proxy.address)
        client.connect()
        client.load_scene("warren")
        proxy.to_client = mangle  # from here on something always follows that what is kept back can be merged with
        client.configure(m.CamConfig(img_enc="PNG", img_w=16, img_h=12))
        client.reset()
        frames = drive(client, 10)
        assert all(later.time > sooner.time for sooner, later in itertools.pairwise(frames))
        assert client.skipped == 0
        client.close()


def test_damaged_bytes_cost_frames_and_not_the_session() -> None:
    with running(speed=10.0) as server, proxied(server.address) as proxy:
        client = client_of(proxy.address)
        client.connect()
        client.load_scene("warren")
        client.reset()
        proxy.to_client = corrupted(4001)
        proxy.to_server = corrupted(997)
        drive(client, 30)
        proxy.to_client, proxy.to_server = split, split
        assert client.reset().time > 0.0
        client.close()


def test_a_lost_answer_in_lockstep_is_a_timeout_and_reconnecting_helps() -> None:
    with running(lockstep=True) as server, proxied(server.address) as proxy:
        client = client_of(proxy.address, Deadlines(frame=0.2))
        client.connect()
        client.load_scene("warren")
        client.reset()
        proxy.to_server = nothing
        with pytest.raises(SimulatorTimeout, match="for a frame"):
            client.step(0.0, 0.5)
        proxy.to_server = split
        client.reconnect()
        assert client.reset().throttle == 0.0
        client.close()


# --- The Unity simulator's ways ---------------------------------------------------------------------------------------


class Script:
    """A transport that answers as a Unity simulator would, without one."""

    address = "script"

    def __init__(self, *, on_track: bool, nodes: int = 297, commas: bool = False, old: bool = False) -> None:
        self.sent: list[str] = []
        self._car_at = 0.0
        self._on_track = on_track
        self._nodes, self._commas, self._old = nodes, commas, old
        self._steering = self._next_steering = 0.0
        self._out = [encode_line(m.write_event(m.CarLoaded() if on_track else m.SceneSelectionReady()))]

    def send(self, data: bytes, deadline: float) -> None:
        text, decoder, start = data.decode(), json.JSONDecoder(), 0
        while start < len(text):
            message, start = decoder.raw_decode(text, start)
            assert all(isinstance(value, str) for value in message.values()), "Unity reads strings only"
            self._handle(message)

    def _handle(self, message: dict[str, str]) -> None:
        kind = message["msg_type"]
        self.sent.append(kind)
        if kind == "get_protocol_version" and not self._old:
            self._out.append(encode_line(m.write_event(m.ProtocolVersion())))
        elif kind == "get_scene_names" and not self._on_track:
            self._out.append(encode_line(m.write_event(m.SceneNames(("warren", "waveshare")))))
        elif kind == "load_scene" and not self._on_track:
            self._on_track, self._nodes = True, {"warren": 297, "waveshare": 24}[message["scene_name"]]
            self._out.append(encode_line(m.write_event(m.CarLoaded())))
        elif kind == "exit_scene":
            self._on_track = False
        elif kind == "control":
            self._steering = float(message["steering"])

    def receive(self, deadline: float) -> bytes:
        if self._out:
            return self._out.pop(0)
        if self._on_track and deadline > time.monotonic():
            self._car_at += 0.5
            return self._telemetry()
        return b"{}\n" if deadline > time.monotonic() + 1.0 else b""

    def _telemetry(self) -> bytes:
        image = np.zeros((120, 160, 3), np.uint8)
        packet = Telemetry(image, steering_angle=self._steering, total_nodes=self._nodes, time=self._car_at, pos_x=0.25)
        line = encode_line(write_telemetry(packet, ImageEncoding(), ImageEncoding()))
        return line.replace(b"0.25", b"0,25").replace(b"0.0", b"0,0") if self._commas else line

    def close(self) -> None:
        pass


def unity(**kwargs: Any) -> tuple[SimClient, Script]:
    script = Script(**kwargs)

    def dial(deadline: float) -> Transport:
        return script

    client = SimClient(deadlines=Deadlines(answer=0.3), dial=dial)
    client.connect()
    return client, script


def test_a_loaded_scene_is_told_by_its_nodes() -> None:
    client, script = unity(on_track=True, nodes=297)
    client.load_scene("warren")
    assert "exit_scene" not in script.sent
    assert client.step(0.5, 0.0).steering_angle == 0.5


@pytest.mark.parametrize("nodes", [24, 12345])
def test_a_wrong_or_unknown_scene_is_exchanged(nodes: int) -> None:
    client, script = unity(on_track=True, nodes=nodes)
    client.load_scene("warren")
    assert script.sent[1:] == ["exit_scene", "get_scene_names", "load_scene"]
    assert client.reset().total_nodes == 297


class Late(Script):
    """Packets that were on their way when a control came: `arrived` are here already, `coming` come after it."""

    arrived = 0
    coming = 0

    def _handle(self, message: dict[str, str]) -> None:
        before = self._steering
        super()._handle(message)
        self._next_steering, self._steering = self._steering, before

    def receive(self, deadline: float) -> bytes:
        if not self._out and self.arrived:
            self.arrived -= 1
            self._car_at += 0.5
            return self._telemetry()
        if not self._out and self._on_track and deadline > time.monotonic():
            if not self.coming:
                self._steering = self._next_steering
            self.coming = max(0, self.coming - 1)
        return super().receive(deadline)


@pytest.mark.parametrize(("arrived", "coming"), [(0, 0), (3, 0), (0, 2), (3, 1)])
def test_packets_older_than_the_control_are_passed_over(arrived: int, coming: int) -> None:
    script = Late(on_track=True)
    client = SimClient(deadlines=Deadlines(answer=0.3), dial=lambda deadline: script)
    client.connect()
    client.load_scene("warren")
    for steering in (0.5, -0.5):
        script.arrived, script.coming = arrived, coming
        assert client.step(steering, 0.0).steering_angle == steering


def test_packets_that_have_arrived_are_old_whatever_they_echo() -> None:
    """The same control twice: only the clock tells the packet before it from the one after it."""
    script = Late(on_track=True)
    client = SimClient(deadlines=Deadlines(answer=0.3), dial=lambda deadline: script)
    client.connect()
    client.load_scene("warren")
    first = client.step(0.5, 0.0)
    script.arrived = 3
    assert client.step(0.5, 0.0).time == first.time + 4 * 0.5


def test_a_release_that_echoes_nothing_costs_its_patience_three_times_only() -> None:
    client, script = unity(on_track=True)
    client.load_scene("warren")
    script._telemetry = lambda telemetry=script._telemetry: telemetry().replace(
        b'"steering_angle":0.5', b'"steering_angle":9'
    )
    for _ in range(3):
        client.step(0.5, 0.0)
    start = client.step(0.5, 0.0).time
    assert client.step(0.5, 0.0).time == start + 0.5, "the next packet is taken as it comes"


def test_decimal_commas_and_releases_that_know_no_version() -> None:
    client, _ = unity(on_track=False, commas=True, old=True)
    assert client.server == ""
    client.load_scene("waveshare")
    assert client.step(0.0, 0.0).pos_x == 0.25
    assert client.skipped == 0


def test_lockstep_is_not_to_be_had_from_unity() -> None:
    client, _ = unity(on_track=False)
    with pytest.raises(ConfigError, match="real time only"):
        client.use_lockstep()


def test_a_memory_simulator_that_cannot_answer_is_a_timeout_at_once() -> None:
    engine = SimEngine(FakeHost(), ServerOptions(lockstep=True))
    client = SimClient(deadlines=Deadlines(frame=3600.0), dial=lambda deadline: connect_in_memory(engine))
    client.connect()
    client.load_scene("warren")
    with pytest.raises(SimulatorTimeout, match="for a frame"):
        client.wait_frame()
    (session,) = engine.sessions
    engine.close(session)
    with pytest.raises(SimulatorLost):
        client.step(0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.7:9093", ("10.0.0.7", 9093)),
        ("pi.local", ("pi.local", 9091)),
        (":9092", ("127.0.0.1", 9092)),
        (" localhost:1 ", ("localhost", 1)),
    ],
)
def test_addresses_are_read(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["a:b", "a:0", "a:65536", "a:1,b:2", "http://a:1", "a b:1", "::1", "a:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT, such as"):
        parse_address(text)


def test_helpers_tell_the_truth() -> None:
    assert control("1")["steering"] == "1"
    assert not eventually(lambda: False, seconds=0.01)
