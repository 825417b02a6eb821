"""The simulator's TCP server: one thread, one selector, any number of clients.

It carries bytes between sockets and `SimEngine`, keeps the clock, and never waits for a client: sockets do not block,
what a slow reader does not take is dropped by its outbox, and who sends faster than it reads is not read from.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import signal
import socket
import threading
import time
from collections.abc import Iterator

from rl_training.errors import SimulatorError
from rl_training.protocol.scene_host import PERIOD, SceneHost
from rl_training.protocol.sessions import ServerOptions, Session, SimEngine
from rl_training.protocol.transport import DEFAULT_PORT, MemoryTransport

logger = logging.getLogger(__name__)

_READ_SIZE = 64 * 1024
# Frames of a slow reader belong in the outbox, where the oldest are dropped, not in the kernel's buffer.
_SEND_BUFFER = 128 * 1024
_MOST_BEHIND = 0.1  # [s] of wall time; a clock further behind gives up catching up, as Unity's does
_LONGEST_WAIT = 0.5


class _Connection:
    """A socket and its session."""

    def __init__(self, connection: socket.socket, session: Session) -> None:
        self.socket = connection
        self.session = session
        self.heard = time.monotonic()
        self.watched = selectors.EVENT_READ


class SimServer:
    """Serves a `SceneHost` on host:port; port 0 takes a free one, `address` tells which.

    `serve_forever` runs until `stop()` is called (from any thread or signal handler) or a client may and does quit.
    """

    def __init__(
        self,
        scene_host: SceneHost,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        options: ServerOptions | None = None,
    ) -> None:
        self.engine = SimEngine(scene_host, options)
        self._options = self.engine.options
        self._connections: dict[socket.socket, _Connection] = {}
        self._listener = _listen(host, port)
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = socket.socketpair()
        self._stopping = False
        self._next_tick: float | None = None
        for readable in (self._listener, self._wake_in):
            readable.setblocking(False)
            self._selector.register(readable, selectors.EVENT_READ)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    def stop(self) -> None:
        """Ask the server to end."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._wake_out.send(b"x")

    def serve_forever(self) -> None:
        """Serve until stopped, then close every socket."""
        try:
            with self._signals():
                while not self._stopping and not self.engine.quit_requested:
                    self._serve_once()
        finally:
            self.close()

    def connect_out(self, host: str, port: int, timeout: float = 10.0) -> None:
        """Call a client that listens: in the oldest releases the learner was the server and the simulator called."""
        connection = socket.create_connection((host, port), timeout=timeout)
        self._welcome(connection, f"{host}:{port}", host)

    def close(self) -> None:
        """Close every socket; harmless when done twice."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._selector.close()
        for each in (self._listener, self._wake_in, self._wake_out):
            each.close()

    # --- The loop -----------------------------------------------------------------------------------------------------

    def _serve_once(self) -> None:
        for key, events in self._selector.select(self._wait_time()):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._wake_in:
                self._wake_in.recv(64)
            elif events & selectors.EVENT_READ:
                self._read(self._connections[key.fileobj])  # type: ignore[index]
        now = time.monotonic()
        for connection in list(self._connections.values()):
            self.engine.work(connection.session)
            self._probe(connection, now)
        self._keep_time(now)
        for connection in list(self._connections.values()):
            self._flush(connection)

    def _wait_time(self) -> float:
        if any(connection.session.has_work for connection in self._connections.values()):
            return 0.0
        longest = min(_LONGEST_WAIT, self._options.probe_after)
        return longest if self._next_tick is None else min(max(0.0, self._next_tick - time.monotonic()), longest)

    def _keep_time(self, now: float) -> None:
        """At most one tick: a clock that is behind comes back here before anything is waited for."""
        period = PERIOD / self._options.speed
        if not self.engine.runs_by_clock:
            self._next_tick = None
        elif self._next_tick is None:
            self._next_tick = now + period
        elif now >= self._next_tick:
            self.engine.tick()
            self._next_tick = max(self._next_tick + period, now - _MOST_BEHIND)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # gone already, or no free file descriptor: the next one may fare better
            connection, peer = self._listener.accept()
            self._welcome(connection, f"{peer[0]}:{peer[1]}", peer[0])

    def _welcome(self, connection: socket.socket, name: str, peer_host: str) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        session = self.engine.open(name, is_local=peer_host.startswith("127.") or peer_host == "::1")
        self._connections[connection] = _Connection(connection, session)
        self._selector.register(connection, selectors.EVENT_READ)
        logger.info("Client %s connected.", name)

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.socket.recv(_READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            connection.heard = time.monotonic()
            connection.session.receive(data)
        else:
            self._drop(connection)

    def _flush(self, connection: _Connection) -> None:
        """Send what the socket takes, then watch it for what the session needs next."""
        outbox = connection.session.outbox
        try:
            while chunk := outbox.next_chunk():
                outbox.sent(connection.socket.send(chunk))
        except BlockingIOError:
            pass
        except OSError:
            connection.session.is_open = False
        if not connection.session.is_open:
            self._drop(connection)
            return
        reading = selectors.EVENT_READ if connection.session.wants_input else 0
        watched = reading | (selectors.EVENT_WRITE if outbox.size else 0)
        # A client that neither takes its answers nor is read from still has to be noticed when it goes.
        watched = watched or selectors.EVENT_WRITE
        if watched != connection.watched:
            connection.watched = watched
            self._selector.modify(connection.socket, watched)

    def _probe(self, connection: _Connection, now: float) -> None:
        if now - connection.heard >= self._options.probe_after and connection.session.is_open:
            connection.heard = now
            self.engine.probe(connection.session)

    def _drop(self, connection: _Connection) -> None:
        self.engine.close(connection.session)
        if self._connections.pop(connection.socket, None) is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            logger.info("Client %s is gone.", connection.session.name)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM end the loop; only the main thread may say so."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, lambda *_: self.stop())
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=100)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]  # Python adds the address, which is said here
        advice = "Choose an address of this machine and a free port above 1023."
        if error.errno == errno.EADDRINUSE:
            advice = "Is another simulator running there? Choose another port, or stop it."
        raise SimulatorError(f"The simulator cannot listen on {host}:{port}: {reason}. {advice}") from error


class _MemorySession:
    """A client in the same thread, for `connect_in_memory`."""

    def __init__(self, engine: SimEngine) -> None:
        self._engine = engine
        self._session = engine.open("memory")

    @property
    def is_open(self) -> bool:
        return self._session.is_open

    def deliver(self, data: bytes) -> None:
        self._session.receive(data)

    def collect(self) -> bytes:
        self._engine.work(self._session)
        outbox = self._session.outbox
        parts = []
        while chunk := outbox.next_chunk():
            parts.append(bytes(chunk))
            outbox.sent(len(chunk))
        return b"".join(parts)

    def pass_time(self) -> bool:
        if self._session.has_work:
            return True
        if self._engine.runs_by_clock:
            self._engine.tick()
            return True
        return False

    def hang_up(self) -> None:
        self._engine.close(self._session)


def connect_in_memory(engine: SimEngine) -> MemoryTransport:
    """A client's transport to an engine in this thread; real time passes as quickly as the client waits for it."""
    return MemoryTransport(_MemorySession(engine))
