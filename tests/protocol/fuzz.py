"""Random peers against framing, server and client: `make fuzz`, or `python -m tests.protocol.fuzz [INPUTS [SEED]]`.

100,000 inputs by default, of a seed that is printed, on all cores. A few hundred run in the test suite.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from rl_training.errors import ConfigError, SimulatorError
from rl_training.protocol import images
from rl_training.protocol import messages as m
from rl_training.protocol.client import SimClient
from rl_training.protocol.deadlines import Deadlines
from rl_training.protocol.framing import SERVER_LIMIT, FrameDecoder, encode_line
from rl_training.protocol.server import connect_in_memory
from rl_training.protocol.sessions import ServerOptions, SimEngine
from rl_training.protocol.telemetry import ImageEncoding, Telemetry, write_telemetry
from tests.protocol.fake_host import SCENES, FakeHost

TEXT = st.text(max_size=8)
LEAVES = st.one_of(
    st.sampled_from(["0", "1", "-1", "0,5", "20", "1e308", "-1e999", "nan", "", "synchronous", "PNG", *SCENES[:3]]),
    st.integers(-300, 300),
    st.integers(),
    st.floats(),
    st.none(),
    TEXT,
)
VALUES = st.one_of(LEAVES, LEAVES, LEAVES, st.lists(LEAVES, max_size=2), st.dictionaries(TEXT, LEAVES, max_size=2))
BYTES = st.one_of(
    st.binary(max_size=30), st.sampled_from([b"{", b"}", b'"', b"\\", b"\n", b"{}\n", b'{"msg_type":"', b"\xf0\x9f"])
)


def _messages(kinds: dict[str, type[m.Message]]) -> st.SearchStrategy[bytes]:
    """JSON objects of known types, with their own fields and anything in them, whole or cut off."""

    def of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
        names = [entry.name for entry in m._LAYOUTS[kinds[kind]]]
        fields = st.fixed_dictionaries({"msg_type": st.just(kind)}, optional=dict.fromkeys(names, VALUES))
        whole = st.fixed_dictionaries({"msg_type": st.just(kind), **dict.fromkeys(names, LEAVES)})
        return st.one_of(fields, whole, whole)

    objects = st.sampled_from(sorted(kinds)).flatmap(of).map(lambda raw: json.dumps(raw).encode())
    return st.one_of(
        objects, objects, objects, objects.flatmap(lambda raw: st.integers(0, len(raw)).map(lambda n: raw[:n]))
    )


def _telemetry_line() -> bytes:
    packet = Telemetry(np.zeros((8, 8, 3), np.uint8), time=0.5, pos_x=1.0, total_nodes=297, cte=0.25)
    return encode_line(write_telemetry(packet, ImageEncoding(), ImageEncoding()))


def _damaged(data: bytes) -> st.SearchStrategy[bytes]:
    def strike(place: tuple[int, int]) -> bytes:
        index, value = place
        return data[:index] + bytes([value]) + data[index + 1 :]

    return st.one_of(st.just(data), st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)).map(strike))


@given(st.lists(BYTES, max_size=12))
def framing(pieces: list[bytes]) -> None:
    """No bytes break the reader, grow its buffer beyond what came, or hide what follows."""
    decoder = FrameDecoder(SERVER_LIMIT)
    for piece in pieces:
        assert all(isinstance(message, dict) and message for message in decoder.feed(piece))
        assert decoder.buffered <= sum(map(len, pieces))
    assert {"mark": 2} in decoder.feed(b'\n{"mark":1}\n{"mark":2}\n')


@given(st.booleans(), st.lists(st.one_of(_messages(m.COMMANDS), _messages(m.COMMANDS), BYTES), max_size=8))
def server_end(lockstep: bool, pieces: list[bytes]) -> None:
    """Whatever a client sends, the server answers in valid JSON, keeps to the protocol, and serves the next client."""
    engine = SimEngine(FakeHost(), ServerOptions(lockstep=lockstep))
    abuser = connect_in_memory(engine)
    abuser.send(b'{"msg_type":"load_scene","scene_name":"generated_road"}', 0.0)
    received = b""
    for piece in pieces:
        abuser.send(piece, 0.0)
        received += abuser.receive(0.0)
    for line in received.splitlines():
        json.loads(line, parse_constant=lambda name: f"{name} is not JSON")
    assert not received or received.endswith(b"\n")
    engine.quit_requested = False
    friend = SimClient(deadlines=QUICK, dial=lambda deadline: connect_in_memory(engine))
    friend.connect()
    friend.load_scene("warren")
    friend.step(0.0, 0.5)
    friend.close()
    abuser.close()
    assert list(engine.sessions) == []


class _Babble:
    """A transport that says what it was given, once, and then nothing."""

    address = "babble"

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = list(pieces)

    def send(self, data: bytes, deadline: float) -> None:
        pass

    def receive(self, deadline: float) -> bytes:
        return self._pieces.pop(0) if self._pieces and deadline > time.monotonic() else b""

    def close(self) -> None:
        pass


QUICK = Deadlines(connect=5.0, answer=5.0, scene=5.0, frame=5.0, reset=5.0)
_EVENTS = st.one_of(_messages(m.EVENTS), _damaged(_telemetry_line()), BYTES)


@given(st.lists(_EVENTS, max_size=10))
def client_end(pieces: list[bytes]) -> None:
    """Whatever a simulator says, each call of the client ends, with a frame or with an error that is ours."""
    greeting = [b'{"msg_type":"protocol_version","version":"2"}\n', b'{"msg_type":"car_loaded"}\n', _telemetry_line()]
    client = SimClient(deadlines=QUICK, dial=lambda deadline: _Babble(greeting + pieces))
    client.connect()
    calls: list[Callable[[], object]] = [
        lambda: client.load_scene("warren"),
        client.reset,
        lambda: client.step(0.1, 0.2),
        client.ping,
        lambda: client.node_position(1),
        client.scene_names,
    ]
    for call in calls:
        with contextlib.suppress(SimulatorError, ConfigError):
            call()


@given(_damaged(images.encode(np.zeros((8, 8, 3), np.uint8), "PNG")), st.binary(max_size=40))
def image_files(image: bytes, junk: bytes) -> None:
    """Damaged images are an error of ours, never a crash."""
    for data in (image, junk, image[: len(junk)] + junk):
        with contextlib.suppress(images.ProtocolError):
            assert images.decode(data).ndim == 3


PART = 5000  # inputs of one process at a time
TARGETS: dict[str, tuple[Callable[[], None], float]] = {  # and its share of the inputs
    "framing": (framing, 0.6),
    "server": (server_end, 0.15),
    "client": (client_end, 0.15),
    "images": (image_files, 0.1),
}


def run(target: Callable[[], None], inputs: int) -> None:
    """Try a target with so many inputs."""
    phases = (Phase.generate, Phase.shrink)
    quiet = settings(
        max_examples=inputs, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck)
    )
    quiet(target)()


def _share(job: tuple[str, int, int]) -> tuple[str, int, float]:
    """One part of the long run, in a process of its own: target, inputs, seconds. Image libraries talk; not here."""
    name, inputs, part_seed = job
    logging.disable(logging.CRITICAL)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    started = time.monotonic()
    run(seed(part_seed)(TARGETS[name][0]), inputs)
    return name, inputs, time.monotonic() - started


def main(total: int, first_seed: int) -> None:
    """The long run; the first fault ends it with hypothesis's account of the smallest input that shows it."""
    jobs = []
    for name, (_, share) in TARGETS.items():
        inputs = round(total * share)
        parts = max(1, inputs // PART)
        jobs += [(name, inputs // parts + (k < inputs % parts), first_seed + k) for k in range(parts)]
    print(f"{sum(job[1] for job in jobs)} inputs from seed {first_seed} in {len(jobs)} parts", flush=True)
    started = time.monotonic()
    done: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    with multiprocessing.get_context("spawn").Pool(maxtasksperchild=1) as pool:
        for name, inputs, seconds in pool.imap_unordered(_share, jobs):
            done[name] += inputs
            spent[name] += round(seconds)
            if done[name] == round(total * TARGETS[name][1]):
                print(f"{name:8} {done[name]:7} inputs, no fault, {spent[name]} s", flush=True)
    print(f"{'in all':8} {sum(done.values()):7} inputs, no fault, {time.monotonic() - started:.0f} s of wall clock")


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(numbers[0] if numbers else 100_000, numbers[1] if len(numbers) > 1 else secrets.randbelow(2**31))
