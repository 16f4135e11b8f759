"""Errors of a Spark Thrift server: what Spark says, and what became of a statement whose answer was lost."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.faults import Fault, Reaction
from dbt_arctic.engine.statement import Statement
from dbt_arctic.engine.thrift_client import OperationCancelled, OperationFailed
from dbt_arctic.engine.thrift_faults import causes_of, is_lost, thrift_fault, unreachable
from dbt_arctic.errors import CommitConflict, ConnectionLost, ProfileError, StatementCancelled, StatementError

WRITE, QUERY = "INSERT INTO t VALUES (1)", "SELECT 1"
STACK = "\n\tat org.apache.spark.sql.hive.thriftserver.X.run(X.scala:43)\n\t... 21 more\n"
HEAD = "org.apache.hive.service.cli.HiveSQLException: Error running query: "


def fault(error: Exception, sql: str, *, repeatable: bool = True) -> Fault:
    statement = Statement(sql, Statement.cancel)
    found = thrift_fault(error, statement, "thrift://x:1", repeatable=repeatable)
    assert found is not None
    return found


def failed(*causes: str) -> OperationFailed:
    first, *others = causes
    return OperationFailed(HEAD + first + STACK + "".join(f"Caused by: {one}{STACK}" for one in others))


def test_a_statement_that_the_server_refused_for_its_session_has_not_run() -> None:
    error = OperationFailed("Invalid SessionHandle: SessionHandle [1]")
    assert is_lost(error)
    for sql in (WRITE, QUERY):
        assert fault(error, sql).reaction is Reaction.RETRY_ON_NEW_CONNECTION
        kept = fault(error, sql, repeatable=False)
        assert kept.reaction is Reaction.RAISE
        assert isinstance(kept.error, ConnectionLost)
        assert "nothing was changed" in kept.error.fix


def test_the_causes_are_those_of_the_statement() -> None:
    error = failed("[X.Y] org.apache.spark.SparkException: [X.Y] outer\nmore", "a.b.C$D: inner: with a colon")
    assert list(causes_of(str(error))) == [
        ("org.apache.spark.SparkException", "[X.Y] outer\nmore"),
        ("a.b.C$D", "inner: with a colon"),
    ]
    ((_, message),) = causes_of("something else: without a class")
    assert message == "something else: without a class"


def test_errors_are_those_of_other_connections() -> None:
    missing = failed(
        "[TABLE_OR_VIEW_NOT_FOUND] org.apache.spark.sql.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] no `t`"
    )
    found = fault(missing, QUERY).error
    assert isinstance(found, StatementError)
    assert "check the name and the schema" in found.fix
    assert "thriftserver" not in str(found)
    raised = (
        "[USER_RAISED_EXCEPTION] org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] AR-101|x"
    )
    assert isinstance(fault(failed(f"{raised} SQLSTATE: P0001"), QUERY).error, ProfileError)
    conflict = failed(
        "org.apache.spark.SparkException: Writing job aborted",
        "org.apache.iceberg.exceptions.CommitFailedException: Cannot commit: stale",
    )
    found_fault = fault(conflict, WRITE)
    assert isinstance(found_fault.error, CommitConflict)
    assert found_fault.reaction is Reaction.RETRY
    assert isinstance(fault(OperationCancelled(), WRITE).error, StatementCancelled)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        EOFError(),
        TimeoutError("timed out"),
        type("TTransportException", (Exception,), {})("read 0 bytes"),
    ],
)
def test_a_write_whose_answer_was_lost_may_have_landed_and_a_query_is_repeated(error: Exception) -> None:
    assert is_lost(error)
    lost = fault(error, WRITE)
    assert isinstance(lost.error, ConnectionLost)
    assert lost.reaction is Reaction.RAISE
    assert "unknown whether" in lost.error.what
    assert fault(error, QUERY).reaction is Reaction.RETRY_ON_NEW_CONNECTION
    assert fault(error, QUERY, repeatable=False).reaction is Reaction.RAISE


def test_a_mistake_of_ours_is_no_error_of_the_server() -> None:
    assert thrift_fault(KeyError("x"), Statement(QUERY, Statement.cancel), "x", repeatable=True) is None


def test_why_no_session_could_be_opened_is_the_cause_and_not_what_thrift_says() -> None:
    class TTransportException(Exception):
        def __init__(self, message: str, inner: Exception | None) -> None:
            super().__init__(message)
            self.inner = inner

    general = "Could not connect to any of [('127.0.0.1', 10000)]"
    refused = TTransportException(general, ConnectionRefusedError(111, "Connection refused"))
    assert unreachable(refused, "thrift://h:1").why == "[Errno 111] Connection refused"
    assert unreachable(TTransportException(general, None), "thrift://h:1").why == general
