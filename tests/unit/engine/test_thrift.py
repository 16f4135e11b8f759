"""Sessions on a Spark Thrift server, whose answers these tests give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.engine import thrift
from dbt_arctic.engine.api import ColumnInfo, FileRead, SourceRead
from dbt_arctic.engine.thrift import ThriftConnection, ThriftEngine
from dbt_arctic.engine.thrift_client import OperationFailed, Result
from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import ConfigError, ConnectionLost, ServerUnreachable, StatementCancelled

Answer = Callable[[str], Result | Exception]


class Client:
    """A session that answers as a test wants, and records the statements of all sessions."""

    ran: list[str]
    opened: int
    answer: Answer

    def __init__(self, settings: ThriftSettings) -> None:
        type(self).opened += 1
        self.is_broken = False
        self.idle = 0.0
        self.is_alive = True

    def idle_s(self) -> float:
        return self.idle

    def is_known(self) -> bool:
        self.ran.append("checked")
        return self.is_alive

    def run(self, sql: str) -> Result:
        self.ran.append(sql)
        answer = self.answer(sql)
        if isinstance(answer, Exception):
            self.is_broken = isinstance(answer, OSError)
            raise answer
        return answer

    def close(self) -> None:
        self.ran.append("closed")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    made = type("Given", (Client,), {"ran": [], "opened": 0, "answer": lambda self, sql: Result()})
    monkeypatch.setattr(thrift, "ThriftClient", made)
    return made


def answering(client: type[Client], answers: dict[str, Result | Exception]) -> None:
    client.answer = lambda self, sql: answers.get(sql, Result())  # type: ignore[method-assign,assignment,misc]


@pytest.fixture
def connection() -> ThriftConnection:
    conf = {"spark.sql.session.timeZone": "UTC", "spark.x": "a`b", "spark.y": ""}
    return ThriftEngine(ThriftSettings("h", "lake", conf=conf)).connect()


def fetched(connection: ThriftConnection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def test_nothing_is_opened_before_the_first_statement(
    client: type[Client], connection: ThriftConnection
) -> None:
    assert not connection.is_open
    assert client.opened == 0
    connection.cursor().execute("INSERT INTO t VALUES (1)")
    assert connection.is_open
    assert client.ran == [
        "SET `spark.sql.session.timeZone`=`UTC`",
        "SET `spark.x`=`a``b`",
        "SET `spark.y`=",
        "INSERT INTO t VALUES (1)",
    ]


def test_the_columns_of_a_query_are_requested_first(
    client: type[Client], connection: ThriftConnection
) -> None:
    sql = "SELECT a, b FROM t"
    types = Result(["n", "t"], rows=[("a", "int"), ("b", "array<int>")])
    as_json = Result(["c0", "c1"], ["int", "string"], [(1, "[1,2]"), (None, None)])
    client.answer = lambda self, text: types if text == f"DESCRIBE QUERY {sql}" else as_json  # type: ignore[method-assign,assignment,misc]
    cursor = connection.cursor()
    cursor.execute(sql)
    assert cursor.fetchall() == [(1, [1, 2]), (None, None)]
    assert [column[:2] for column in cursor.description or []] == [("a", "int"), ("b", "array<int>")]
    assert client.ran[-1].endswith(f"FROM (\n{sql}\n) AS q(c0, c1)")


def test_a_schema_is_that_of_the_query_without_running_it(
    client: type[Client], connection: ThriftConnection
) -> None:
    client.answer = lambda self, text: Result(["n", "t"], rows=[("a", "int")])  # type: ignore[method-assign,assignment,misc]
    assert connection.query_schema("SELECT 1 AS a") == [ColumnInfo("a", "int")]
    assert client.ran[-1] == "DESCRIBE QUERY SELECT * FROM (\nSELECT 1 AS a\n)"


@pytest.mark.parametrize(
    "sql", ["WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "FROM a INSERT INTO t"]
)
def test_a_write_is_sent_as_it_is(client: type[Client], connection: ThriftConnection, sql: str) -> None:
    cursor = connection.cursor()
    cursor.execute(sql)
    assert client.ran[-1] == sql
    assert not [one for one in client.ran if one.startswith("DESCRIBE")]
    assert (cursor.description, cursor.known_rows, cursor.rowcount, cursor.job_count) == (
        None,
        None,
        -1,
        None,
    )


def test_a_query_is_repeated_in_a_new_session_once(
    client: type[Client], connection: ThriftConnection
) -> None:
    lost = [ConnectionResetError("reset")]

    def answer(self: Client, sql: str) -> Result | Exception:
        if sql == "SHOW TABLES" and lost:
            return lost.pop()
        return Result(["a"], ["int"], [(1,)])

    client.answer = answer  # type: ignore[method-assign,assignment]
    assert fetched(connection, "SHOW TABLES") == [(1,)]
    assert client.opened == 2
    # A session with a temporary view is not replaced in silence.
    connection.create_temp_view("v", ["a"], [["it's"], [None]])
    assert client.ran[-1].startswith("CREATE OR REPLACE TEMPORARY VIEW `v` AS\nSELECT * FROM VALUES")
    lost.append(ConnectionResetError("reset"))
    with pytest.raises(ConnectionLost, match="nothing was changed"):
        fetched(connection, "SHOW TABLES")


@pytest.mark.parametrize(("idle", "is_alive"), [(1.0, False), (99.0, True), (99.0, False)])
def test_a_session_that_was_lost_while_it_was_idle_is_opened_again_before_a_write(
    client: type[Client], connection: ThriftConnection, idle: float, is_alive: bool
) -> None:
    connection.cursor().execute("INSERT INTO t VALUES (1)")
    session: Any = connection.client
    session.idle, session.is_alive = idle, is_alive
    connection.cursor().execute("INSERT INTO t VALUES (2)")
    assert client.opened == (2 if idle > 30 and not is_alive else 1)
    assert ("checked" in client.ran) == (idle > 30)
    assert client.ran.count("INSERT INTO t VALUES (2)") == 1
    # A session with a setting is not replaced in silence.
    session = connection.client
    connection.remember_state()
    session.idle, session.is_alive = 99.0, False
    assert connection.client is session


def test_a_write_that_the_server_refused_for_its_session_is_sent_again(
    client: type[Client], connection: ThriftConnection
) -> None:
    refused: list[Exception] = [OperationFailed("Invalid SessionHandle: SessionHandle [1]")]
    client.answer = lambda self, sql: refused.pop() if "INSERT" in sql and refused else Result()  # type: ignore[method-assign,assignment,misc]
    connection.cursor().execute("INSERT INTO t VALUES (1)")
    assert client.ran.count("INSERT INTO t VALUES (1)") == 2
    assert client.opened == 2


def test_settings_are_read_and_changed_by_sql(client: type[Client], connection: ThriftConnection) -> None:
    answering(
        client,
        {
            "SET `a`": Result(["key", "value"], ["string"] * 2, [("a", "1")]),
            "SET `b`": Result(["key", "value"], ["string"] * 2, [("b", "<undefined>")]),
        },
    )
    conf = connection.session.conf
    assert (conf.get("a"), conf.get("b"), conf.get("b", "x")) == ("1", None, "x")
    conf.set("a", "2")
    assert client.ran[-1] == "SET `a`=`2`"


def test_all_settings_are_read_at_once_and_those_of_a_new_session_only_once(client: type[Client]) -> None:
    answering(client, {"SET": Result(["key", "value"], ["string"] * 2, [("a", "1"), ("b", "x=y")])})
    engine = ThriftEngine(ThriftSettings("h", "lake", conf={}))
    first, second, third = (engine.connect() for _ in range(3))
    first.cursor().execute("SET c=2")
    assert first.conf(start=False) == {"a": "1", "b": "x=y"}, "its own, which no other session has"
    assert second.conf(start=False) == {"a": "1", "b": "x=y"}
    assert client.ran == ["SET c=2", "SET", "SET"]
    assert third.conf(start=False) == {"a": "1", "b": "x=y"}
    assert not third.is_open
    third.conf()
    assert client.ran == ["SET c=2", "SET", "SET", "SET"]
    assert not third._has_state, "a query is still repeated if the session is lost"
    third.cancel()
    assert not third.is_open
    assert third.conf(start=False) == {"a": "1", "b": "x=y"}


def test_what_needs_a_pyspark_session_is_refused(client: type[Client], connection: ThriftConnection) -> None:
    files = FileRead("csv", ["/x"], "/x", "", {})
    for refused in (
        lambda: connection.session.createDataFrame,
        lambda: connection.create_file_view("v", files),
        lambda: connection.file_columns(files),
        lambda: connection.create_source_view("v", SourceRead("kafka", {})),
    ):
        with pytest.raises(ConfigError, match="cannot be used with method: thrift"):
            refused()
    assert client.ran == []


def test_a_server_that_does_not_answer_is_reported_with_its_address(
    client: type[Client], connection: ThriftConnection
) -> None:
    for error in (ConnectionRefusedError("refused"), OperationFailed("no such conf")):
        client.answer = lambda self, sql, error=error: error  # type: ignore[method-assign,assignment,misc]
        with pytest.raises(ServerUnreachable, match="thrift://h:10000"):
            fetched(connection, "SELECT 1")


def test_a_cancelled_connection_sends_nothing(client: type[Client], connection: ThriftConnection) -> None:
    connection.cancel()
    with pytest.raises(StatementCancelled):
        fetched(connection, "SELECT 1")
    assert client.opened == 0
