"""A proxy on loopback, between one machine and a catalog or store, which can be made to fail."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from enum import Enum

_CHUNK = 1 << 16
_METHODS = (b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ")
_ANSWERS = {
    "unavailable": ("503 Slow Down", "SlowDown"),
    "expired": ("403 Forbidden", "ExpiredToken"),
}


class Trouble(Enum):
    """What happens to the connections of a proxy."""

    NONE = "none"
    REFUSED = "refused"
    """Open connections are cut, and new ones are closed at once."""
    SILENT = "silent"
    """Nothing is passed on until it is over."""
    SLOW = "slow"
    """Each part is passed on after a while."""
    UNAVAILABLE = "unavailable"
    """Each request is answered with 503. Of HTTP only."""
    EXPIRED = "expired"
    """Each request is answered with 403, as with expired credentials. Of HTTP only."""
    ANSWER_LOST = "answer lost"
    """The next request that writes is carried out, and its connection cut before the answer."""
    ANSWER_HELD = "answer held"
    """The same, but the connection is cut when it is over. Others may write until then."""


_WITHOUT_ANSWER = {Trouble.ANSWER_LOST, Trouble.ANSWER_HELD}
OF_HTTP = {Trouble.UNAVAILABLE, Trouble.EXPIRED}


class Proxy:
    """Passes connections on to a port of this machine.

    :param writes: the beginnings or parts of requests that write, whose answers can be lost.
    """

    def __init__(self, port: int, writes: tuple[bytes, ...]) -> None:
        self._upstream = port
        self._writes = writes
        self._trouble = Trouble.NONE
        self._healthy = threading.Event()
        self._healthy.set()
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.met = 0
        """How many connections or requests a trouble has met."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, trouble: Trouble) -> None:
        self._trouble = trouble
        if trouble is Trouble.SILENT:
            self._healthy.clear()
        if trouble is Trouble.ANSWER_HELD:
            self._released.clear()
        if trouble is Trouble.REFUSED:
            self._cut_all()

    def heal(self) -> None:
        self._trouble = Trouble.NONE
        self._healthy.set()
        self._released.set()

    def close(self) -> None:
        self.heal()
        self._server.close()
        self._cut_all()

    def _cut_all(self) -> None:
        with self._lock:
            opened = list(self._open)
            self.met += len(opened)
        for one in opened:
            _cut(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self._trouble is Trouble.REFUSED:
                self.met += 1
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._upstream))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            cut = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, cut), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server, cut), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with self._ended(client, server):
            while data := client.recv(_CHUNK):
                self._wait()
                if self._trouble in OF_HTTP and data.startswith(_METHODS):
                    self.met += 1
                    client.sendall(_refusal(self._trouble))
                    return
                if self._trouble in _WITHOUT_ANSWER and any(part in data for part in self._writes):
                    if self._trouble is Trouble.ANSWER_LOST:
                        self._released.set()
                    self._trouble = Trouble.NONE
                    self.met += 1
                    cut.set()
                server.sendall(data)

    def _answers(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with self._ended(client, server):
            while data := server.recv(_CHUNK):
                self._wait()
                if cut.is_set():
                    self._released.wait()
                    return
                client.sendall(data)

    def _wait(self) -> None:
        if self._trouble is Trouble.SLOW:
            self.met += 1
            threading.Event().wait(0.1)
        if not self._healthy.is_set():
            self.met += 1
            self._healthy.wait()

    @contextlib.contextmanager
    def _ended(self, *pair: socket.socket) -> Iterator[None]:
        """Both connections end with the block."""
        try:
            with contextlib.suppress(OSError):
                yield
        finally:
            with self._lock:
                self._open -= set(pair)
            for one in pair:
                _cut(one)


def _cut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def _refusal(trouble: Trouble) -> bytes:
    status, code = _ANSWERS[trouble.value]
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
