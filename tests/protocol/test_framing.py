"""Bytes ⇄ messages: however a stream is cut, the same messages come out; whatever stands between them is survived."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_training.protocol.framing import SERVER_LIMIT, FrameDecoder, encode_bare, encode_line

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.one_of(
    TEXT, st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
MESSAGES = st.dictionaries(
    TEXT,
    st.one_of(VALUES, st.lists(VALUES, max_size=3), st.dictionaries(TEXT, VALUES, max_size=2)),
    min_size=1,
    max_size=4,
)


def feed_all(decoder: FrameDecoder, data: bytes, cuts: list[int]) -> list[dict[str, Any]]:
    """Feed `data` in the pieces that `cuts` make of it."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [message for start, end in itertools.pairwise(edges) for message in decoder.feed(data[start:end])]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(MESSAGES, max_size=5),
    st.sampled_from(["", "\n", " ", "\r\n", "{}\n", "\n{}"]),
    st.booleans(),
    st.lists(st.integers(0, 10**6), max_size=6),
)
def test_any_cut_of_any_stream_gives_the_messages(
    messages: list[dict[str, Any]], between: str, ascii_only: bool, cuts: list[int]
) -> None:
    text = between.join(json.dumps(message, ensure_ascii=ascii_only) for message in messages)
    decoder = FrameDecoder()
    assert feed_all(decoder, text.encode(), cuts) == messages
    assert decoder.errors == 0


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.lists(st.integers(0, 10**6), max_size=4))
def test_garbage_never_hides_what_follows_it(garbage: bytes, cuts: list[int]) -> None:
    """Two marks are sent, for garbage may end in an open quote that eats into the first."""
    marks = b'\n{"mark":1}\n{"mark":2}\n'
    assert {"mark": 2} in feed_all(FrameDecoder(), garbage + marks, cuts)


def test_bare_objects_and_lines_may_be_mixed() -> None:
    assert FrameDecoder().feed(b'{"a":1}{"b":"}{"}\n\n{"c":{"d":[{}]}}  {}\n{"e":"\\"{"}') == [
        {"a": 1},
        {"b": "}{"},
        {"c": {"d": [{}]}},
        {"e": '"{'},
    ]


def test_one_byte_at_a_time() -> None:
    data = '{"car_name":"Zoë {🚗}","x":-1.5e-3}'.encode() * 3
    decoder = FrameDecoder()
    assert [message for byte in data for message in decoder.feed(bytes([byte]))] == [
        json.loads(data[: len(data) // 3])
    ] * 3
    assert decoder.buffered == 0


@pytest.mark.parametrize(
    "broken",
    [
        b'{"steering":abc}',
        b'{"steering":"0.5,"throttle":"1"}',
        b'{"a" 1}',
        b"}}}{{{",
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b'{"a":' * 100_000 + b"1}",
        b'{"n":' + b"9" * 5000 + b"}",
        b"\xff\xfe\x00",
        b'{"a":"\n"}',
        b'{"a":tru}',
    ],
)
def test_a_broken_object_is_counted_and_the_next_is_read(broken: bytes) -> None:
    decoder = FrameDecoder()
    messages = decoder.feed(broken) + decoder.feed(b'{"msg_type":"first"}') + decoder.feed(b'{"msg_type":"second"}')
    assert messages[-1] == {"msg_type": "second"}
    assert {"msg_type": "first"} in messages
    assert decoder.errors >= 1


def test_a_message_cut_off_in_its_middle_costs_only_itself() -> None:
    decoder = FrameDecoder()
    decoder.feed(b'{"msg_type":"control","steering":"0.5')
    assert decoder.feed(b'{"msg_type":"reset_car"}') == [{"msg_type": "reset_car"}]
    assert decoder.errors == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"speed":1,25,"cte":-0,5}', {"speed": 1.25, "cte": -0.5}),
        (b'{"a":1,5E-05,"n":3,"b":2,5}', {"a": 1.5e-5, "n": 3, "b": 2.5}),
        (b'{"n":3,"list":[1,2],"s":"1,5","x":0,75}', {"n": 3, "list": [1, 2], "s": "1,5", "x": 0.75}),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 100])
def test_decimal_commas_are_understood(text: bytes, expected: dict[str, Any], piece: int) -> None:
    decoder = FrameDecoder()
    data = text + b"\n" + text + b"\n"
    messages = [message for i in range(0, len(data), piece) for message in decoder.feed(data[i : i + piece])]
    assert messages == [expected, expected]
    assert decoder.errors == 0


def test_the_buffer_is_bounded() -> None:
    """A hundred megabytes without a brace, in and out of an object, then business as usual."""
    chunk = b"x" * (1 << 20)
    for opening in (b"", b"{", b'{"a":"'):
        decoder = FrameDecoder(SERVER_LIMIT)
        decoder.feed(opening)
        most = 0
        for _ in range(100):
            decoder.feed(chunk)
            most = max(most, decoder.buffered)
        assert most <= SERVER_LIMIT
        assert decoder.feed(b'"}{"a":1}')[-1:] == [{"a": 1}]
        assert decoder.errors >= 1


@pytest.mark.parametrize(
    "pattern", [b"{", b'{"', b'{"}', b'"', b'{"a":1,', b'{"a":{', b"}", b'{"a":1,2,', b"\\", b'{"a":"}']
)
def test_no_pattern_makes_it_slow(pattern: bytes) -> None:
    """A megabyte costs a few parses for each read, where a careless reader tries at every brace again."""
    data = pattern * (1_000_000 // len(pattern))
    decoder = FrameDecoder(SERVER_LIMIT)
    scan, tries, messages = decoder._scan, 0, 0

    def counted(text: str, start: int) -> tuple[dict[str, Any], int]:
        nonlocal tries
        tries += 1
        return scan(text, start)

    decoder._scan = counted
    for i in range(0, len(data), 65536):
        messages += len(decoder.feed(data[i : i + 65536]))
    assert messages == 0
    assert tries <= 16 * 400


def test_lines_are_compact_and_bare_messages_have_no_inner_brace() -> None:
    assert encode_line({"a": 1.5, "b": "x"}) == b'{"a":1.5,"b":"x"}\n'
    bare = encode_bare({"msg_type": "car_config", "car_name": "a{b}c"})
    assert bare.count(b"{") == bare.count(b"}") == 1
    assert json.loads(bare)["car_name"] == "a(b)c"
    with pytest.raises(ValueError, match="Out of range float"):
        encode_line({"a": float("nan")})
