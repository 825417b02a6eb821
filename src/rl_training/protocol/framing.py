"""Bytes ⇄ JSON objects, with no socket in it.

The simulator ends each message with a newline, its clients put theirs one after another with nothing between them.
Both are read here, split at any byte. What is not a JSON object is skipped and counted; the next whole object is found
again. The buffer is bounded, and no loop runs over single characters: objects are parsed by the C scanner of `json`.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

RawMessage = dict[str, Any]

CLIENT_LIMIT = 8 * 1024 * 1024  # characters of one message from a simulator: images may be large
SERVER_LIMIT = 256 * 1024  # characters of one command: none needs a thousand
# After so many broken objects in a row reading goes on at the next line, after so many in one read with the next read.
_BROKEN_IN_A_ROW, _BROKEN_IN_A_READ = 20, 200

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_INCOMPLETE, _BROKEN = "incomplete", "broken"

_OBJECT_START = re.compile(r'\{(?=\s*["}]|\s*\Z)')
# An error this near the end of what has arrived may just be a token cut in two: `tru`, `-0,123`, `\u00`.
_CUT_TOKEN = re.compile(r'[^{}\[\],:"]{0,40}\Z')
# A comma as decimal point: `"speed":1,25,` becomes `"speed":1.25,`; the length stays the same.
_DECIMAL_COMMA = re.compile(r'("\w+"\s*:\s*-?\d+),(\d+(?:[eE][+-]?\d+)?)(?=\s*[,}])')


class FrameDecoder:
    """Collects bytes and gives back the JSON objects in them. Empty objects, the keep-alive, are left out."""

    def __init__(self, limit: int = CLIENT_LIMIT) -> None:
        self.errors = 0  # runs of garbage and broken objects skipped so far
        self._limit = limit
        self._text = ""
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._scan = json.JSONDecoder().raw_decode

    @property
    def buffered(self) -> int:
        """Characters that wait for the rest of their message."""
        return len(self._text)

    def feed(self, data: bytes) -> list[RawMessage]:
        """Take what a socket gave and return the messages it completed."""
        new = self._utf8.decode(data)
        # Parsing again makes sense only when the end of an object has arrived, or when no object has begun.
        wait = self._text.startswith("{") and "}" not in new
        self._text += new
        messages: list[RawMessage] = [] if wait else self._parse()
        if len(self._text) > self._limit:
            self._text = ""
            self.errors += 1
        return messages

    def _parse(self) -> list[RawMessage]:
        messages: list[RawMessage] = []
        clean = 0  # where the last whole object ended
        search_from = 0
        broken = broken_in_a_row = 0
        while broken < _BROKEN_IN_A_READ:
            found = _OBJECT_START.search(self._text, search_from)
            if found is None:
                break
            start = found.start()
            parsed = self._parse_object(start)
            if parsed == _INCOMPLETE:
                self._count_garbage(clean, start)
                self._text = self._text[start:]
                return messages
            if isinstance(parsed, str):
                broken += 1
                broken_in_a_row += 1
                search_from = start + 1
                if broken_in_a_row % _BROKEN_IN_A_ROW == 0:
                    search_from = self._text.find("\n", start) + 1 or len(self._text)
                continue
            message, search_from = parsed
            self._count_garbage(clean, start)
            clean = search_from
            broken_in_a_row = 0
            if message:
                messages.append(message)
        self._count_garbage(clean, len(self._text))
        self._text = ""
        return messages

    def _count_garbage(self, start: int, end: int) -> None:
        """What lies between two objects is one error, unless it is only space."""
        if end > start and not self._text[start:end].isspace():
            self.errors += 1

    def _parse_object(self, start: int) -> tuple[RawMessage, int] | str:
        """The object that begins at `start` and where it ends; or _INCOMPLETE, or _BROKEN."""
        for may_mend in (True, False):
            try:
                return self._scan(self._text, start)
            except json.JSONDecodeError as error:
                if error.msg.startswith("Unterminated string") or _CUT_TOKEN.match(self._text, error.pos):
                    return _INCOMPLETE
                # `"speed":1,25`: after the comma a key is expected and digits are found.
                if not (may_mend and self._text[error.pos].isdigit()):
                    break
                self._text = _DECIMAL_COMMA.sub(r"\1.\2", self._text)
            except (RecursionError, ValueError):  # nested thousands deep, or an integer of thousands of digits
                break
        return _BROKEN


def encode_line(message: RawMessage) -> bytes:
    """A message as the simulator sends it: compact JSON and a newline."""
    return _ENCODER.encode(message).encode() + b"\n"


def encode_bare(message: RawMessage) -> bytes:
    """A message as a client sends it. The Unity simulator splits at braces, so none may stand inside a value."""
    text = json.dumps(message)
    return (text[0] + text[1:-1].replace("{", "(").replace("}", ")") + text[-1]).encode()
