"""Two machines that share a catalog and a store; see ``tests/faults/two_machines.py``."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy, Trouble

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("steps", "more"), [("12", ()), ("6", ("--copies", "4", "--threads", "8", "--healthy"))]
)
def test_nothing_is_lost_or_doubled_between_two_machines(steps: str, more: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.two_machines", "--steps", steps, "--seed", "1", *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-2000:]}"
    assert ended.stdout.splitlines()[-1].startswith(f"machines: {steps} steps, ")


@pytest.fixture
def answering() -> int:
    """The port of a server that answers each part with ``answer``."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            client, _ = server.accept()
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        while client.recv(1000):
            client.sendall(b"answer")

    threading.Thread(target=serve, daemon=True).start()
    return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("trouble", "request_", "first", "second"),
    [
        (Trouble.NONE, b"PUT /x", b"answer", b"answer"),
        (Trouble.SLOW, b"PUT /x", b"answer", b"answer"),
        (Trouble.REFUSED, b"PUT /x", b"", b""),
        (Trouble.UNAVAILABLE, b"PUT /x", b"HTTP/1.1 503", b"HTTP/1.1 503"),
        (Trouble.EXPIRED, b"GET /x", b"HTTP/1.1 403", b"HTTP/1.1 403"),
        (Trouble.ANSWER_LOST, b"PUT /x", b"", b"answer"),
        (Trouble.ANSWER_LOST, b"GET /x", b"answer", b"answer"),
    ],
)
def test_a_proxy_fails_as_it_should(
    answering: int, trouble: Trouble, request_: bytes, first: bytes, second: bytes
) -> None:
    proxy = Proxy(answering, (b"PUT ",))
    try:
        proxy.begin(trouble)
        assert [answer_to(proxy, request_)[:12] for _ in range(2)] == [first, second]
        proxy.heal()
        assert answer_to(proxy, request_) == b"answer"
    finally:
        proxy.close()


def test_an_answer_is_held_back_until_it_is_over(answering: int) -> None:
    proxy = Proxy(answering, (b"PUT ",))
    try:
        proxy.begin(Trouble.ANSWER_HELD)
        first: list[bytes] = []
        waiting = threading.Thread(target=lambda: first.append(answer_to(proxy, b"PUT /x")))
        waiting.start()
        while not proxy.met:
            threading.Event().wait(0.01)
        assert answer_to(proxy, b"PUT /x") == b"answer"
        assert first == []
        proxy.heal()
        waiting.join(10)
        assert first == [b""]
    finally:
        proxy.close()


def test_a_silent_proxy_answers_once_it_is_over(answering: int) -> None:
    proxy = Proxy(answering, (b"PUT ",))
    try:
        proxy.begin(Trouble.SILENT)
        threading.Timer(0.3, proxy.heal).start()
        assert answer_to(proxy, b"GET /x") == b"answer"
        assert proxy.met >= 1
    finally:
        proxy.close()


def answer_to(proxy: Proxy, request_: bytes) -> bytes:
    """The answer to a request on a new connection; empty if there is none."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        try:
            client.sendall(request_)
            return client.recv(1000)
        except ConnectionError:
            return b""
