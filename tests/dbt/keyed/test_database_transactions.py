"""Transactions on real servers: one state each, and a fingerprint that differs if a row does. No Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from dbt_arctic.adapter.database_sources import database_of
from dbt_arctic.databases.api import Column, Database, RowQuery, SelectedColumn, Window
from dbt_arctic.errors import ServerUnreachable, UnknownRelation
from tests.matrix.components import PASSWORD

from .database_servers import KINDS, Server, run, running_server


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running_server(request.param) as made:
        yield made


def table(server: Server, name: str, password: str = PASSWORD, **settings: Any) -> Database:
    declared = {
        "name": "crm.t",
        "where": "models/crm.yml",
        "settings": {"from": "jdbc", "url": server.url, "table": name, **settings},
    }
    return database_of(declared, {"crm": {"password": password}})


def columns(database: Database) -> tuple[Column, ...]:
    with contextlib.closing(database.begin()) as transaction:
        return transaction.table.columns


def fingerprint(database: Database, of: Sequence[str], window: Window | None = None) -> str:
    with contextlib.closing(database.begin()) as transaction:
        found = [transaction.table.column(name) for name in of]
        return transaction.fingerprint([one for one in found if one is not None], window)


def test_a_fingerprint_differs_if_a_row_does(server: Server) -> None:
    kind = "bytea" if server.kind == "postgresql" else "blob"
    double = "double precision" if server.kind == "postgresql" else "float"
    server.sql(
        f"CREATE TABLE prints (id int PRIMARY KEY, a varchar(20), b varchar(20), raw {kind}, f {double})"
    )
    database = table(server, "prints")
    every = ["id", "a", "b", "raw", "f"]
    changes = [
        "INSERT INTO prints VALUES (1, 'x,y', 'z', NULL, 0.1)",
        "UPDATE prints SET a = 'x', b = 'y,z'",
        "UPDATE prints SET b = NULL",
        "UPDATE prints SET b = ''",
        "UPDATE prints SET b = 'NULL'",
        "UPDATE prints SET b = ' '",
        "UPDATE prints SET a = 'X'",
        "UPDATE prints SET f = 123456.01",
        "UPDATE prints SET f = 123456.02",
        "INSERT INTO prints VALUES (2, 'x', 'y', NULL, 0.1)",
        "UPDATE prints SET a = 'y', b = 'x' WHERE id = 2",
        "UPDATE prints SET id = 3 WHERE id = 2",
        "DELETE FROM prints WHERE id = 1",
    ]
    seen = [fingerprint(database, every)]
    for change in changes:
        server.sql(change)
        seen.append(fingerprint(database, every))
        assert fingerprint(database, every) == seen[-1]
    assert len(set(seen)) == len(seen)
    assert fingerprint(database, ["id"]) != seen[-1]


def test_a_look_and_its_readers_see_one_state(server: Server) -> None:
    server.sql(
        "CREATE TABLE states (id int PRIMARY KEY, at int)", "INSERT INTO states VALUES (1, 10), (2, NULL)"
    )
    database = table(server, "states")
    with contextlib.closing(database.begin()) as transaction:
        key, at = transaction.table.columns
        assert transaction.table.key == ("id",)
        before = transaction.fingerprint([key, at], None)
        snapshot = transaction.share()
        server.sql("UPDATE states SET at = 11 WHERE id = 1", "INSERT INTO states VALUES (3, 30)")
        assert transaction.fingerprint([key, at], None) == before
        assert (transaction.newest(at), transaction.has_null(at), transaction.extremes(key)) == (
            "10",
            True,
            (1, 2),
        )
        assert transaction.count(Window(at, "10", True, "40")) == 1
        read = database.read(
            RowQuery([SelectedColumn(key), SelectedColumn(at)], None, (), (), None, snapshot)
        )
        assert bool(snapshot) == (server.kind == "postgresql")
        with contextlib.closing(server.connect()) as reader:
            if snapshot:
                run(reader, "BEGIN")
            for statement in read.options.get("sessionInitStatement", "").split("; "):
                if statement:
                    run(reader, statement)
            rows = sorted(run(reader, f"SELECT c0, c1 FROM {read.options['dbtable']}"))
    # MariaDB has no snapshot that another connection could use.
    assert rows == ([(1, 10), (2, None)] if snapshot else [(1, 11), (2, None), (3, 30)])


def test_a_cursor_is_compared_in_utc_and_to_the_microsecond(server: Server) -> None:
    is_postgres = server.kind == "postgresql"
    kinds = ("timestamptz", "timestamp") if is_postgres else ("timestamp(6) NULL", "datetime(6)")
    low, high = "2026-01-01 05:00:00.000001", "2026-01-01 05:00:00.000002"
    server.sql(
        f"CREATE TABLE times (id int PRIMARY KEY, tz {kinds[0]}, ts {kinds[1]}, d date)",
        "SET TIME ZONE 'Asia/Karachi'" if is_postgres else "SET time_zone = '+05:00'",
        f"INSERT INTO times VALUES (1, '{low}', '{low}', '2026-01-01')",
        f"INSERT INTO times VALUES (2, '{high}', '{high}', '2026-01-02')",
    )
    with contextlib.closing(table(server, "times").begin()) as transaction:
        expected = {
            "tz": ("2026-01-01 00:00:00.000001", "2026-01-01 00:00:00.000002"),
            "ts": ("2026-01-01 05:00:00.000001", "2026-01-01 05:00:00.000002"),
            "d": ("2026-01-01", "2026-01-02"),
        }
        for name, (low, high) in expected.items():
            cursor = transaction.table.column(name)
            assert cursor is not None
            assert transaction.newest(cursor) == high
            assert transaction.count(Window(cursor, low, True, high)) == 2
            assert transaction.count(Window(cursor, low, False, high)) == 1
            assert transaction.count(Window(cursor, None, True, low)) == 1


def test_names_may_have_any_characters_and_views_can_be_read(server: Server) -> None:
    name = '"odd "" % ` name"' if server.kind == "postgresql" else '`odd " % `` name`'
    server.sql(f"CREATE TABLE {name} ({name} int PRIMARY KEY)", f"INSERT INTO {name} VALUES (7)")
    database = table(server, name)
    (column,) = columns(database)
    assert column.name == name[1:-1].replace('""', '"').replace("``", "`")
    assert fingerprint(database, [column.name]).startswith("1:")
    server.sql(f"CREATE VIEW looked AS SELECT {name} AS id FROM {name}")
    assert [one.name for one in columns(table(server, "looked"))] == ["id"]


def test_what_cannot_be_looked_at_is_an_error_without_the_password(server: Server) -> None:
    place = server.url.rsplit(":", 1)[0]
    for database, kind in (
        (table(server, "nowhere"), UnknownRelation),
        (table(server, "nowhere", url=f"{place}:1/lake"), ServerUnreachable),
        (table(server, "t", url=server.url.replace("/lake", "/other")), ServerUnreachable),
        (table(server, "t", password="hunter22"), ServerUnreachable),
    ):
        with pytest.raises(kind) as error:
            database.begin()
        assert error.value.where == "models/crm.yml"
        assert error.value.fix
        assert "hunter22" not in str(error.value)
        assert PASSWORD not in str(error.value)
