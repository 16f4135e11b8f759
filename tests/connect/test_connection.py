"""A connection over Spark Connect: results, errors, cancelling, TLS, and what is done when it is lost."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import trustme

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.engine.connect import ConnectConnection, ConnectEngine
from dbt_arctic.engine.connect_settings import ConnectSettings, connect_conf
from dbt_arctic.errors import (
    ArcticError,
    ConnectionLost,
    NullKey,
    ProfileError,
    ServerUnreachable,
    StatementCancelled,
    StatementError,
)
from tests.connect.wire import Wire, wire

Sql = Callable[..., list[tuple[Any, ...]]]

ENDLESS = "SELECT sum(hash(id)) FROM range(0, 1000000000000, 1, 1)"
# Two seconds in a task, however fast the machine is.
SLOW = "SELECT length(reflect('java.lang.Thread', 'sleep', 2000L + id)) AS a FROM range(0, 1, 1, 1)"

pytestmark = pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED.:UserWarning")


@contextlib.contextmanager
def connected(settings: ConnectSettings) -> Iterator[ConnectConnection]:
    with contextlib.closing(ConnectEngine(settings).connect()) as made:
        yield made


def rows(connection: ConnectConnection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def test_values_come_back_as_they_were_written(connection: ConnectConnection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT 1 AS a, 'é' AS b, CAST(1.50 AS DECIMAL(10,2)) AS c, TIMESTAMP'2020-01-01 00:00:00' AS d, "
        "TIMESTAMP_NTZ'2020-01-01 00:00:00' AS e, X'01' AS f, named_struct('k', map('m', array(1))) AS g, "
        "DATE'2020-02-03' AS h, CAST(NULL AS STRING) AS i"
    )
    assert cursor.fetchall() == [
        (
            1,
            "é",
            Decimal("1.50"),
            dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc),
            dt.datetime(2020, 1, 1),
            b"\x01",
            {"k": {"m": [1]}},
            dt.date(2020, 2, 3),
            None,
        )
    ]
    assert cursor.description is not None
    assert [(column[0], column[1]) for column in cursor.description][:3] == [
        ("a", "int"),
        ("b", "string"),
        ("c", "decimal(10,2)"),
    ]
    assert cursor.rowcount == 1
    assert cursor.job_count is None
    nested = "map(named_struct('at', TIMESTAMP'2020-01-01 00:00:00.123456', 'n', CAST(NULL AS INT)), X'00')"
    assert rows(connection, f"SELECT {nested} AS m") == [
        (r'{"{\"at\":\"2020-01-01 00:00:00.123456Z\",\"n\":null}":"AA=="}',)
    ]


def test_a_command_returns_what_it_returns_and_a_write_nothing(
    connection: ConnectConnection, schema: str
) -> None:
    cursor = connection.cursor()
    cursor.execute(f"CREATE TABLE lake.{schema}.t (a INT) USING iceberg")
    assert (cursor.fetchall(), cursor.description, cursor.rowcount) == ([], None, -1)
    cursor.execute(f"DESCRIBE lake.{schema}.t")
    assert cursor.fetchall() == [("a", "int", None)]


def test_errors_are_those_of_a_spark_in_this_process(connection: ConnectConnection, schema: str) -> None:
    table = f"lake.{schema}.t"
    rows(connection, f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS a")
    with pytest.raises(StatementError, match="UNRESOLVED_COLUMN"):
        rows(connection, "SELECT nope")
    with pytest.raises(StatementError, match="PARSE_SYNTAX_ERROR"):
        rows(connection, "SELEC 1")
    with pytest.raises(StatementError, match="DIVIDE_BY_ZERO"):
        rows(connection, f"SELECT a / 0 FROM {table}")
    with pytest.raises(NullKey) as raised:
        rows(connection, f"INSERT INTO {table} SELECT raise_error('AR-303|No key.|t.k|it is NULL|Set it.')")
    assert (raised.value.what, raised.value.fix) == ("No key.", "Set it.")
    assert rows(connection, f"SELECT * FROM {table}") == [(1,)]


def test_a_lost_race_for_a_commit_is_run_again(engine: ConnectEngine, sql: Sql, schema: str) -> None:
    table = f"lake.{schema}.t"
    # Without Iceberg's own retries each lost race comes up to the cursor.
    sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg TBLPROPERTIES ('commit.retry.num-retries'='0')")

    def write(number: int) -> None:
        with contextlib.closing(engine.connect()) as own:
            rows(own, f"INSERT INTO {table} VALUES ({number})")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))
    assert sql(f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(6, 6)]


def test_a_query_is_analysed_without_being_run_and_a_command_not_at_all(
    connection: ConnectConnection, schema: str
) -> None:
    assert connection.query_schema(
        "WITH c AS (SELECT 1 AS a) SELECT a, 2L AS b FROM c ORDER BY a -- end"
    ) == [
        ColumnInfo("a", "int"),
        ColumnInfo("b", "bigint"),
    ]
    rows(connection, f"CREATE TABLE lake.{schema}.t (a INT) USING iceberg")
    with pytest.raises(StatementError, match="PARSE_SYNTAX_ERROR"):
        connection.query_schema(f"DROP TABLE lake.{schema}.t")
    assert rows(connection, f"SELECT * FROM lake.{schema}.t") == []


def test_sessions_have_views_and_settings_of_their_own(
    engine: ConnectEngine, connection: ConnectConnection
) -> None:
    connection.create_temp_view("two `rows", ["a", "b c"], [["1", None], ["é", "2"]])
    assert rows(connection, "SELECT * FROM `two ``rows` ORDER BY a") == [("1", None), ("é", "2")]
    with contextlib.closing(engine.connect()) as other, pytest.raises(StatementError, match="NOT_FOUND"):
        rows(other, "SELECT * FROM `two ``rows`")
    # The server's own conf as well, which no profile names.
    rows(connection, "SET spark.sql.legacy.sizeOfNull=false")
    own = connection.conf()
    assert own["spark.sql.legacy.sizeOfNull"] == "false"
    assert own["spark.sql.extensions"].startswith("org.apache.iceberg")
    with contextlib.closing(engine.connect()) as other:
        assert "spark.sql.legacy.sizeOfNull" not in other.conf(start=False)
    with contextlib.closing(engine.connect()) as last:
        assert last.conf(start=False).items() < own.items()
        assert not last.is_open


def cancel_until_done(connection: ConnectConnection, running: Future[None]) -> None:
    while not running.done():
        connection.cancel()
        wait([running], timeout=0.1)


def test_cancelling_stops_only_the_own_statement(
    engine: ConnectEngine, connection: ConnectConnection
) -> None:
    with contextlib.closing(engine.connect()) as other, ThreadPoolExecutor(2) as threads:
        own_running = threads.submit(connection.cursor().execute, ENDLESS)
        other_running = threads.submit(other.cursor().execute, ENDLESS)
        try:
            cancel_until_done(connection, own_running)
            assert isinstance(own_running.exception(), StatementCancelled)
            assert not other_running.done()
        finally:
            cancel_until_done(connection, own_running)
            cancel_until_done(other, other_running)
        assert isinstance(other_running.exception(), StatementCancelled)
    with pytest.raises(StatementCancelled):
        rows(connection, "SELECT 1")
    with contextlib.closing(engine.connect()) as later:
        assert rows(later, "SELECT 1") == [(1,)]


def test_a_connection_that_breaks_off_in_a_write_is_taken_up_again_and_writes_once(
    connect_settings: ConnectSettings, sql: Sql, schema: str
) -> None:
    sql(f"CREATE TABLE lake.{schema}.t (a INT) USING iceberg")
    with (
        wire(connect_settings.port) as between,
        connected(dataclasses.replace(connect_settings, port=between.port)) as own,
        ThreadPoolExecutor(1) as threads,
    ):
        rows(own, "SELECT 1")
        before = between.connections
        running = threads.submit(own.cursor().execute, f"INSERT INTO lake.{schema}.t {SLOW}")
        wait([running], timeout=0.5)
        assert not running.done()
        between.cut()
        running.result()
        assert between.connections > before
    assert sql(f"SELECT count(*) FROM lake.{schema}.t") == [(1,)]


def end_session(connection: ConnectConnection) -> None:
    """As a server does with a session that was idle for long."""
    connection.session.client.release_session()


def test_a_query_whose_session_is_gone_runs_again_on_a_new_one(connection: ConnectConnection) -> None:
    assert rows(connection, "SELECT 1") == [(1,)]
    end_session(connection)
    assert rows(connection, "SELECT 2") == [(2,)]


def test_a_write_whose_session_is_gone_is_reported_and_the_next_statement_has_a_new_one(
    connection: ConnectConnection, sql: Sql, schema: str
) -> None:
    table = f"lake.{schema}.t"
    rows(connection, f"CREATE TABLE {table} (a INT) USING iceberg")
    end_session(connection)
    with pytest.raises(ConnectionLost, match="unknown whether the statement has finished"):
        rows(connection, f"INSERT INTO {table} VALUES (1)")
    rows(connection, f"INSERT INTO {table} VALUES (2)")
    assert rows(connection, f"SELECT a FROM {table}") == [(2,)]


@pytest.mark.parametrize(
    "statement", ["SET spark.sql.shuffle.partitions = 3", "CREATE TEMP VIEW v AS SELECT 1"]
)
def test_a_query_that_may_rely_on_the_lost_session_is_not_run_again(
    connection: ConnectConnection, statement: str
) -> None:
    rows(connection, statement)
    end_session(connection)
    with pytest.raises(ConnectionLost):
        rows(connection, "SELECT 1")


def test_a_stopped_server_and_a_refusing_server_are_distinguished(connect_settings: ConnectSettings) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        gone = dataclasses.replace(connect_settings, port=nobody.getsockname()[1], timeout_s=1)
        with (
            connected(gone) as own,
            pytest.raises(ServerUnreachable, match="No Spark Connect server answers"),
        ):
            rows(own, "SELECT 1")
    refused = dataclasses.replace(connect_settings, token="wrong")
    with connected(refused) as own, pytest.raises(ServerUnreachable, match="rejected"):
        rows(own, "SELECT 1")
    other = dataclasses.replace(connect_settings, server_id="another")
    with connected(other) as own, pytest.raises(ServerUnreachable, match="A different server answers"):
        rows(own, "SELECT 1")


def test_no_secret_is_in_an_error_or_a_representation(connect_settings: ConnectSettings) -> None:
    assert connect_settings.token is not None
    assert connect_settings.token not in repr(connect_settings)
    wrong = dataclasses.replace(connect_settings, token="s3cret", parameters={"x-key": "s3cret"})
    assert "s3cret" not in repr(wrong)
    with connected(wrong) as own, pytest.raises(ArcticError) as raised:
        rows(own, "SELECT 1")
    assert "s3cret" not in str(raised.value)


def test_a_static_setting_is_an_error_and_not_ignored(connect_settings: ConnectSettings) -> None:
    static = dataclasses.replace(connect_settings, conf={"spark.sql.warehouse.dir": "x"})
    with connected(static) as own, pytest.raises(StatementError, match=r"spark\.sql\.warehouse\.dir"):
        rows(own, "SELECT 1")


def test_a_session_on_any_server_is_set_up_for_keyed_tables(connect_settings: ConnectSettings) -> None:
    conf = connect_conf("lake", None, {}, {"spark.sql.shuffle.partitions": "7"})
    with connected(dataclasses.replace(connect_settings, conf=conf)) as own:
        assert own.session.conf.get("spark.sql.catalog.lake.cache-enabled") == "false"
        assert own.session.conf.get("spark.sql.shuffle.partitions") == "7"
        assert rows(own, "SELECT current_catalog()") == [("lake",)]


def test_tls_and_the_token_pass_through(connect_settings: ConnectSettings, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with wire(connect_settings.port, context) as between:
        assert_reaches(between, connect_settings, tls_ca=tmp_path / "ca.pem")
        stranger = trustme.CA()
        stranger.cert_pem.write_to_path(tmp_path / "stranger.pem")
        wrong = dataclasses.replace(
            connect_settings, port=between.port, tls_ca=tmp_path / "stranger.pem", timeout_s=1
        )
        with connected(wrong) as own, pytest.raises(ServerUnreachable):
            rows(own, "SELECT 1")
        plain = dataclasses.replace(connect_settings, port=between.port, timeout_s=1)
        with connected(plain) as own, pytest.raises(ServerUnreachable):
            rows(own, "SELECT 1")
    missing = dataclasses.replace(connect_settings, tls_ca=tmp_path / "none.pem")
    with connected(missing) as own, pytest.raises(ProfileError, match="tls_ca cannot be read"):
        rows(own, "SELECT 1")


def assert_reaches(between: Wire, settings: ConnectSettings, **changes: Any) -> None:
    with connected(dataclasses.replace(settings, port=between.port, **changes)) as own:
        assert rows(own, "SELECT 1") == [(1,)]
    refused = dataclasses.replace(settings, port=between.port, token="wrong", **changes)
    with connected(refused) as own, pytest.raises(ServerUnreachable, match="rejected"):
        rows(own, "SELECT 1")
