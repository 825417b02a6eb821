"""A TCP proxy between client and server that does to the bytes what bad networks do."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

Mangle = Callable[[bytes], Iterator[bytes]]  # what arrived → what is passed on, piece by piece


class Proxy:
    """Forwards connections to `target`; `to_client` and `to_server` may be exchanged at any time."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.to_client: Mangle = plain
        self.to_server: Mangle = plain
        self.connections = 0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()[:2]
        return host, port

    def reset_all(self) -> None:
        """End every connection abruptly, as a machine does that lost its network."""
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RD)
            each.close()
        self._sockets.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset_all()
        for thread in self._threads:
            thread.join(2.0)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                far = socket.create_connection(self._target)
                self._sockets.append(far)
            except OSError:
                return
            self.connections += 1
            for source, sink, side in ((near, far, "to_server"), (far, near, "to_client")):
                thread = threading.Thread(target=self._pump, args=(source, sink, side), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, side: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(65536):
                for piece in getattr(self, side)(data):
                    sink.sendall(piece)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def plain(data: bytes) -> Iterator[bytes]:
    yield data


def nothing(data: bytes) -> Iterator[bytes]:
    yield from ()


def split(data: bytes) -> Iterator[bytes]:
    """In pieces of 1 to 997 bytes, each in a packet of its own."""
    size, start = 1, 0
    while start < len(data):
        yield data[start : start + size]
        start += size
        size = size * 7 % 998 + 1


def delayed(seconds: float) -> Mangle:
    def mangle(data: bytes) -> Iterator[bytes]:
        time.sleep(seconds)
        yield data

    return mangle


def merged(count: int) -> Mangle:
    """Keeps what arrives until there are so many pieces, then passes them on as one."""
    kept: list[bytes] = []

    def mangle(data: bytes) -> Iterator[bytes]:
        kept.append(data)
        if len(kept) >= count:
            yield b"".join(kept)
            kept.clear()

    return mangle


def corrupted(every: int) -> Mangle:
    """Changes a byte in each `every`."""
    passed = 0

    def mangle(data: bytes) -> Iterator[bytes]:
        nonlocal passed
        damaged = bytearray(data)
        for i in range(-passed % every, len(damaged), every):
            damaged[i] ^= 0x15
        passed += len(data)
        yield bytes(damaged)

    return mangle


@contextlib.contextmanager
def proxied(target: tuple[str, int]) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
