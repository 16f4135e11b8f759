"""``dbt-arctic openlineage`` appends events to a file, or sends them to a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.cli.openlineage import KEY_VARIABLE, append_events, send_events
from dbt_arctic.errors import ConfigError, ServerUnreachable

EVENTS = [{"eventType": "START"}, {"eventType": "COMPLETE"}]


class Server(HTTPServer):
    """Keeps what it receives, and answers with a status."""

    status = 201

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str | None, Any]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.headers["Authorization"], json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_events_are_sent_one_by_one_with_the_token(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://127.0.0.1:{server.server_port}/api/v1/lineage"
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    send_events(EVENTS, url)
    monkeypatch.setenv(KEY_VARIABLE, "t0ken")
    send_events(EVENTS[:1], url)
    assert server.received == [(None, EVENTS[0]), (None, EVENTS[1]), ("Bearer t0ken", EVENTS[0])]


def test_a_server_that_refuses_is_an_error_with_what_to_do(server: Server) -> None:
    server.status = 403
    with pytest.raises(ServerUnreachable, match="403") as caught:
        send_events(EVENTS, f"http://127.0.0.1:{server.server_port}/")
    assert KEY_VARIABLE in caught.value.fix
    assert len(server.received) == 1


@pytest.mark.parametrize("url", ["http://host:abc/x", "http://127.0.0.1:9/a b", "http://["])
def test_what_is_no_url_is_an_error(url: str) -> None:
    with pytest.raises(ConfigError, match="the URL of --to cannot be used"):
        send_events(EVENTS, url)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "x"):
        with pytest.raises(ConfigError, match="the events could not be written"):
            append_events(EVENTS, place)


def test_a_file_gets_one_event_a_line_and_keeps_the_earlier_ones(tmp_path: Path) -> None:
    file = tmp_path / "made" / "events.jsonl"
    append_events(EVENTS, file)
    append_events(EVENTS[:1], file)
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == [
        *EVENTS,
        EVENTS[0],
    ]
