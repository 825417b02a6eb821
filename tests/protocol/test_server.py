"""The server under abuse: garbage, floods, slow readers, abrupt ends. The others must not notice."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from rl_training.errors import SimulatorError
from rl_training.protocol import messages as m
from rl_training.protocol.framing import SERVER_LIMIT
from rl_training.protocol.server import SimServer
from rl_training.protocol.sessions import OUTBOX_LIMIT, TELEMETRY_WAITING, Outbox, ServerOptions, SimEngine
from tests.protocol.fake_host import FakeHost, Wire, control, eventually, running


@pytest.fixture
def server() -> Iterator[SimServer]:
    with running(speed=20.0) as server:
        yield server


def still_serves(server: SimServer) -> bool:
    with Wire(server.address) as wire:
        first = wire.message()["msg_type"]
        wire.send({"msg_type": "get_protocol_version"})
        return first in ("scene_selection_ready", "car_loaded") and wire.until("protocol_version")["version"] == "2"


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00\xff" * 5000,
        b"{" * 100_000,
        b'{"msg_type":' * 10_000,
        b"}" * 1000,
        b'{"msg_type":"control","steering":',
        json.dumps({"msg_type": "load_scene", "scene_name": ["a"]}).encode(),
        b'{"msg_type":["load_scene"]}{"msg_type":7}[1,2]"text"3',
    ],
)
def test_garbage_costs_nothing_but_itself(server: SimServer, garbage: bytes) -> None:
    with Wire(server.address) as wire:
        wire.send(garbage, b"\n", {"msg_type": "get_protocol_version"}, {"msg_type": "get_protocol_version"})
        assert wire.until("protocol_version")["version"] == "2"
        assert still_serves(server)


def test_a_hundred_megabytes_without_a_brace(server: SimServer) -> None:
    """Sent here in part; the reader's bound is tested with all of them."""
    with Wire(server.address) as wire:
        wire.send(b'{"msg_type":"', *[b"x" * (1 << 20)] * 20)
        (session,) = server.engine.sessions
        wire.send(b'"}', {"msg_type": "get_protocol_version"})
        assert wire.until("protocol_version")
        assert session._decoder.buffered <= SERVER_LIMIT
        assert session.errors > 0


def test_a_client_that_dies_in_mid_message_is_forgotten() -> None:
    host = FakeHost()
    with running(host, speed=20.0) as server, Wire(server.address) as witness:
        witness.load()
        for _ in range(20):
            wire = Wire(server.address)
            wire.send(b'{"msg_type":"control","steer')
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wire.close()
        assert still_serves(server), "whoever came before has been seen to by now"
        assert eventually(lambda: len(host.cars) == 1 and len(list(server.engine.sessions)) == 1)
        assert witness.until("telemetry")


def test_a_slow_reader_loses_the_oldest_frames_and_blocks_nobody() -> None:
    """It asks for large images and never reads; the other's frames keep coming, and memory stays where it is."""
    host = FakeHost()
    with running(host, speed=20.0) as server, Wire(server.address) as good, Wire(server.address) as slow:
        good.load()
        slow.send({"msg_type": "cam_config", "img_w": "640", "img_h": "480", "img_enc": "TGA"})
        times = [good.until("telemetry")["time"] for _ in range(60)]
        assert times == sorted(set(times))
        name = f"127.0.0.1:{slow.socket.getsockname()[1]}"
        (session,) = [session for session in server.engine.sessions if session.name == name]
        frame = 640 * 480 * 3 * 4 / 3 + 2000
        assert session.outbox.dropped > 10
        assert session.outbox.size <= (TELEMETRY_WAITING + 1) * frame


def test_a_slow_reader_does_not_lose_a_hit() -> None:
    host = FakeHost()
    engine = SimEngine(host)
    session = engine.open("slow")
    engine.load("warren")
    (car,) = host.cars.values()
    for tick in range(10):
        car.hit = "Line01" if tick == 3 else "none"
        engine.tick()
    received = b""
    while chunk := session.outbox.next_chunk():
        received += chunk
        session.outbox.sent(len(chunk))
    packets = [json.loads(line) for line in received.splitlines()]
    hits = [packet["hit"] for packet in packets if packet["msg_type"] == "telemetry"]
    assert hits == ["Line01", "none", "none"], "it and the newest two"


def test_a_client_that_asks_and_never_reads_is_not_read_from_either(server: SimServer) -> None:
    with Wire(server.address) as greedy:
        greedy.socket.settimeout(0.3)
        questions = json.dumps({"msg_type": "get_scene_names"}).encode() * 3_000_000
        with pytest.raises(TimeoutError):
            greedy.socket.sendall(questions)
        (session,) = server.engine.sessions
        assert session.outbox.size <= OUTBOX_LIMIT + 1000
        assert len(session._pending) < 5000, "a read or two"
        assert still_serves(server)


def test_a_lockstep_flood_leaves_room_for_others() -> None:
    with running(lockstep=True) as server, Wire(server.address) as flood, Wire(server.address) as other:
        flood.load()
        other.until("car_loaded")
        thread = threading.Thread(target=flood.send, args=[control("0", "0.1")] * 5000)
        thread.start()
        for _ in range(20):
            other.send(control("0", "0.1"))
            other.until("telemetry")
        count = 0
        while flood.until("telemetry")["time"] < 5000 * 0.05 - 0.01:
            count += 1
        assert count == 4999, "each of them was answered, once"
        thread.join()


def test_a_port_in_use_is_said_clearly(server: SimServer) -> None:
    with pytest.raises(SimulatorError, match=r"cannot listen on 127.0.0.1:\d+: .* Choose another port"):
        SimServer(FakeHost(), port=server.address[1])


def test_a_host_that_fails_at_one_message_serves_the_others() -> None:
    class Fragile(FakeHost):
        def regen_road(self, config: m.RegenRoad) -> bool:
            raise ZeroDivisionError

    with running(Fragile()) as server, Wire(server.address) as wire:
        wire.load("generated_road")
        wire.send({"msg_type": "regen_road"}, {"msg_type": "get_protocol_version"})
        assert wire.until("protocol_version")


def test_quit_app_is_not_for_strangers() -> None:
    engine = SimEngine(FakeHost())
    stranger = engine.open("203.0.113.9:5", is_local=False)
    stranger.receive(b'{"msg_type":"quit_app"}')
    engine.work(stranger)
    assert not engine.quit_requested
    assert stranger.refused == 1


def test_a_client_is_read_from_while_its_answers_and_questions_are_few() -> None:
    session = SimEngine(FakeHost()).open("client")
    assert session.wants_input
    session.receive(b'{"msg_type":"get_protocol_version"}' * 64)
    assert not session.wants_input, "first these are answered"
    other = SimEngine(FakeHost()).open("other")
    other.outbox.put(b"x" * OUTBOX_LIMIT)
    assert not other.wants_input, "first it takes its answers"
    other.receive(b'{"msg_type":"get_protocol_version"}')
    assert not other.has_work


def test_who_talks_is_not_probed() -> None:
    with running(probe_after=0.5) as server, Wire(server.address) as wire:
        wire.until("scene_selection_ready")
        lines, longest_silence = [], 0.0
        start = spoke = time.monotonic()
        while time.monotonic() - start < 0.8:
            longest_silence = max(longest_silence, time.monotonic() - spoke)
            spoke = time.monotonic()
            wire.send({"msg_type": "get_protocol_version"})
            lines.append(wire.line())
            time.sleep(0.02)
        # A machine so busy that we were silent ourselves proves nothing.
        assert "{}\n" not in lines or longest_silence > 0.3


def test_a_reset_is_a_sign_of_life() -> None:
    """A car that stands for the idle limit is sent away, one that is reset now and then is not."""
    engine = SimEngine(FakeHost(), ServerOptions(lockstep=True, idle_limit=1.0))
    learner, idler = engine.open("learner"), engine.open("idler")
    engine.load("warren")
    for step in range(30):
        for session in (learner, idler):
            session.receive(json.dumps(control()).encode())
            engine.work(session)
        if step % 15 == 14:
            learner.receive(b'{"msg_type":"reset_car"}')
    assert learner.is_open
    assert not idler.is_open


def test_the_outbox_drops_the_oldest_frame_and_nothing_else() -> None:
    outbox = Outbox()
    outbox.put(b"event")
    for number in range(5):
        outbox.put(b"frame%d" % number, keep_newest=2)
    outbox.put(b"last")
    sent = []
    while chunk := outbox.next_chunk():
        sent.append(bytes(chunk))
        outbox.sent(len(chunk))
    assert sent == [b"event", b"frame3", b"frame4", b"last"]
    assert (outbox.dropped, outbox.size) == (3, 0)


def test_a_frame_that_is_half_sent_is_not_dropped() -> None:
    outbox = Outbox()
    outbox.put(b"abcdef", keep_newest=1)
    assert outbox.next_chunk() == b"abcdef"
    outbox.sent(2)
    outbox.put(b"new", keep_newest=1)
    outbox.put(b"newer", keep_newest=1)
    assert outbox.next_chunk() == b"cdef"
    outbox.sent(4)
    assert outbox.next_chunk() == b"newer"
