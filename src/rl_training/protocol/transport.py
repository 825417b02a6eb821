"""A client's end of the wire: TCP, and a twin in memory that needs no socket, no thread and no waiting.

Deadlines are moments of `time.monotonic()`. `receive` returns b"" when nothing came by its deadline, and at once with a
deadline in the past. A connection that is closed raises `SimulatorLost` from whichever call notices first.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from typing import Protocol

from rl_training.errors import ConfigError, SimulatorLost, SimulatorTimeout

DEFAULT_PORT = 9091
_CHUNK = 256 * 1024
_ADDRESS = re.compile(r"([^\s:/,]*):?([^\s:/,]*)")


class Transport(Protocol):
    """Bytes out, bytes in, and an end."""

    @property
    def address(self) -> str:
        """What to call the other end in messages."""

    def send(self, data: bytes, deadline: float) -> None: ...

    def receive(self, deadline: float) -> bytes: ...

    def close(self) -> None: ...


def parse_address(text: str) -> tuple[str, int]:
    """("127.0.0.1", 9091) from "127.0.0.1:9091"; the port may be left out, and so may the host."""
    match = _ADDRESS.fullmatch(text.strip())
    host, port = match.groups() if match else ("", "none")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise ConfigError(f"'{text}' is not the address of a simulator; expected HOST:PORT, such as 127.0.0.1:9091.")
    return host or "127.0.0.1", int(port or DEFAULT_PORT)


class TcpTransport:
    """A connected TCP socket."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._address = address

    @classmethod
    def connect(cls, host: str, port: int, deadline: float) -> TcpTransport:
        """Connect once; OSError when nobody answers by the deadline."""
        connection = socket.create_connection((host, port), timeout=max(0.01, deadline - time.monotonic()))
        return cls(connection, f"{host}:{port}")

    @property
    def address(self) -> str:
        return self._address

    def send(self, data: bytes, deadline: float) -> None:
        try:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            self._socket.sendall(data)
        except TimeoutError:
            raise SimulatorTimeout(f"The simulator at {self._address} takes no more messages.") from None
        except OSError as error:
            raise SimulatorLost(f"The connection to {self._address} broke ({error.strerror or error}).") from error

    def receive(self, deadline: float) -> bytes:
        try:
            self._socket.settimeout(max(0.0, deadline - time.monotonic()))
            data = self._socket.recv(_CHUNK)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise SimulatorLost(f"The connection to {self._address} broke ({error.strerror or error}).") from error
        if not data:
            raise SimulatorLost(f"The simulator at {self._address} closed the connection.")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class MemoryPeer(Protocol):
    """The far end of a `MemoryTransport`."""

    def deliver(self, data: bytes) -> None:
        """The client sent something."""

    def collect(self) -> bytes:
        """What there is for the client now."""

    def pass_time(self) -> bool:
        """Let something happen; False when nothing ever would without a message from the client."""

    def hang_up(self) -> None: ...

    @property
    def is_open(self) -> bool: ...


class MemoryTransport:
    """A peer in the same thread. It works while the client waits, so a wait that cannot be met ends at once."""

    def __init__(self, peer: MemoryPeer) -> None:
        self._peer = peer

    @property
    def address(self) -> str:
        return "memory"

    def send(self, data: bytes, deadline: float) -> None:
        self._check()
        self._peer.deliver(data)

    def receive(self, deadline: float) -> bytes:
        data = self._peer.collect()
        while not data and time.monotonic() < deadline and self._peer.is_open and self._peer.pass_time():
            data = self._peer.collect()
        if not data:
            self._check()
        return data

    def close(self) -> None:
        self._peer.hang_up()

    def _check(self) -> None:
        if not self._peer.is_open:
            raise SimulatorLost("The simulator in memory closed the connection.")
