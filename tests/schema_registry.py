"""A schema registry for tests, on loopback: the part of Confluent's interface that readers use."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Registry:
    """A registry that runs.

    :param login: ``user:password`` that a request must have; empty for none.
    :param requests: the paths of the requests.
    """

    url: str
    login: str = ""
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def add(self, schema: Any) -> int:
        """Register a schema; its id."""
        number = 7 + len(self.schemas)
        self.schemas[number] = {"schema": json.dumps(schema)}
        return number

    def answer(self, path: str, login: str | None) -> tuple[int, dict[str, Any]]:
        self.requests.append(path)
        if self.login and login != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            return 401, {"error_code": 40101}
        found = self.schemas.get(int(path.rpartition("/")[2]))
        return (404, {"error_code": 40403}) if found is None else (200, found)


@contextlib.contextmanager
def registry(login: str = "") -> Iterator[Registry]:
    """A registry that ends with the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = made.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Registry(f"http://127.0.0.1:{server.server_address[1]}", login)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


__all__ = ["Registry", "registry"]
