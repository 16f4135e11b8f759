"""Something between a client and a server on loopback: forwards bytes, can be cut, can speak TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator


class Wire:
    """Listens on a port of its own and forwards each connection to another port."""

    def __init__(self, to_port: int, tls: ssl.SSLContext | None = None) -> None:
        self._to_port = to_port
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection at once, in the middle of whatever is said. New ones are accepted."""
        with self._lock:
            ended, self._open = self._open, []
        for end in ended:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._tls is not None:
                    client = self._tls.wrap_socket(client, server_side=True)
                server = socket.create_connection(("127.0.0.1", self._to_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self.connections += 1
                self._open += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_forward, args=(source, target), daemon=True).start()


@contextlib.contextmanager
def wire(to_port: int, tls: ssl.SSLContext | None = None) -> Iterator[Wire]:
    made = Wire(to_port, tls)
    try:
        yield made
    finally:
        made.close()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
