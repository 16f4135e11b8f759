"""After a cancel nothing is sent any more, whatever the connection was about to do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.engine import jvm
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.connect_settings import ConnectSettings
from dbt_arctic.engine.cursor import SparkCursor
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.statement import RunningStatement, Statement
from dbt_arctic.errors import ArcticError, CommitStateUnknown, StatementCancelled, StatementError


class OneCursor(SparkCursor):
    """A cursor whose statements do what a test says. ``sent``: the statements that reached Spark."""

    job_count = None

    def __init__(self, run: Callable[[], None] = lambda: None) -> None:
        super().__init__(RunningStatement())
        self._do = run
        self.sent: list[str] = []
        self.stopped: list[str] = []

    def _prepared(self, sql: str) -> Statement:
        return Statement(sql, lambda statement: self.stopped.append(statement.sql))

    def _run(self, statement: Statement) -> None:
        self.sent.append(statement.sql)
        self._do()

    def _fault(self, error: Exception, statement: Statement) -> Fault | None:
        return Fault(error) if isinstance(error, ArcticError) else None


def test_what_was_cancelled_before_it_began_is_not_sent() -> None:
    cursor = OneCursor()
    cursor._running.cancel()
    with pytest.raises(StatementCancelled):
        cursor.execute("INSERT INTO t VALUES (1)")
    assert cursor.sent == []


def test_what_is_cancelled_between_its_beginning_and_spark_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cursor = OneCursor()
    begin = RunningStatement.begin

    def begin_and_cancel(running: RunningStatement, statement: Statement) -> None:
        begin(running, statement)
        running.cancel()

    monkeypatch.setattr(RunningStatement, "begin", begin_and_cancel)
    with pytest.raises(StatementCancelled):
        cursor.execute("CREATE TABLE t (a INT)")  # no job that could be stopped
    assert cursor.sent == []


def test_what_has_landed_in_spite_of_a_cancel_is_done_and_the_next_is_not_sent() -> None:
    cursor = OneCursor(lambda: cursor._running.cancel())
    cursor.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(StatementCancelled):
        cursor.execute("INSERT INTO t VALUES (2)")
    assert cursor.sent == ["INSERT INTO t VALUES (1)"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [(StatementError("job cancelled"), StatementCancelled), (CommitStateUnknown("?"), CommitStateUnknown)],
)
def test_a_cancelled_write_with_an_unknown_result_is_not_reported_as_undone(
    error: ArcticError, raised: type[ArcticError]
) -> None:
    def fail() -> None:
        cursor._running.cancel()
        raise error

    cursor = OneCursor(fail)
    with pytest.raises(raised):
        cursor.execute("INSERT INTO t VALUES (1)")


def test_an_interrupted_thread_stops_what_it_has_sent() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cursor = OneCursor(interrupt)
    with pytest.raises(KeyboardInterrupt):
        cursor.execute("INSERT INTO t VALUES (1)")
    assert cursor.stopped == ["INSERT INTO t VALUES (1)"]


def test_a_spark_that_is_up_after_a_cancel_gets_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = SessionEngine(SparkSettings(catalog="lake", warehouse="lake")).connect()
    sessions: list[Any] = []

    def started(settings: SparkSettings) -> Any:
        connection.cancel()
        return SimpleNamespace(new_session=sessions.append, is_alive=lambda: True)

    monkeypatch.setattr(jvm, "started_spark", started)
    for _ in range(2):  # once it starts, once it runs
        with pytest.raises(StatementCancelled):
            connection.cursor().execute("CREATE SCHEMA s")
    assert not connection.is_open
    assert sessions == []


def test_a_cancel_ends_the_wait_for_a_server() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, without a listener
        settings = ConnectSettings("127.0.0.1", "lake", port=nobody.getsockname()[1], timeout_s=100_000)
        connection = ConnectEngine(settings).connect()
        told: list[BaseException] = []

        def execute() -> None:
            with pytest.raises(StatementCancelled) as caught:
                connection.cursor().execute("SELECT 1")
            told.append(caught.value)

        running = threading.Thread(target=execute)
        running.start()
        while connection._session is None and running.is_alive() and not connection._opening.locked():
            running.join(0.01)
        connection.cancel()
        running.join()
    assert told
