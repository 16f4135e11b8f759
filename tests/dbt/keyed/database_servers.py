"""PostgreSQL and MariaDB for tests: on loopback, started and stopped by the tests."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.matrix.components import PASSWORD, NotRun, mariadb, postgres

from .kafka_topics import tools


@dataclass(frozen=True)
class Server:
    """A server that runs.

    :param url: without a password.
    :param connect: opens a connection in autocommit mode.
    """

    kind: str
    url: str
    connect: Callable[[], Any]

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, and return the rows of the last one."""
        with contextlib.closing(self.connect()) as connection:
            return run(connection, *statements)


def run(connection: Any, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in a connection, and return the rows of the last one."""
    with contextlib.closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


KINDS = ("postgresql", "mariadb")


@contextlib.contextmanager
def running_server(kind: str) -> Iterator[Server]:
    """A server of a kind in a folder of its own."""
    # PostgreSQL does not run as root, and another user may not enter pytest's folders.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with (postgres_server if kind == "postgresql" else mariadb_server)(folder) as made:
            yield made


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[Server]:
    """A PostgreSQL. It is expected in CI; on a machine without it, the tests are skipped."""
    import psycopg

    with contextlib.ExitStack() as opened:
        try:
            address = opened.enter_context(postgres(folder)).address
        except NotRun as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"{error}: sources of PostgreSQL are not tested")
        url = address.replace("//", "//dbt@")
        yield Server("postgresql", url, lambda: psycopg.connect(url, password=PASSWORD, autocommit=True))


@contextlib.contextmanager
def mariadb_server(folder: Path) -> Iterator[Server]:
    """A MariaDB. Where it is neither installed nor to be had from Debian, the tests are skipped."""
    import pymysql

    with contextlib.ExitStack() as opened:
        try:
            address = opened.enter_context(mariadb(folder, tools())).address
        except NotRun as error:
            pytest.skip(f"{error}: sources of MariaDB are not tested")
        parts = urlsplit(address)
        login = {"host": parts.hostname, "port": parts.port, "user": "dbt", "password": PASSWORD}
        yield Server(
            "mariadb",
            address.replace("//", "//dbt@"),
            lambda: pymysql.connect(**login, database="lake", autocommit=True, charset="utf8mb4"),
        )


__all__ = ["KINDS", "Server", "run", "running_server"]
