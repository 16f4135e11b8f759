"""What became of a statement whose answer was lost is not known, whatever code the transport gives it."""

from __future__ import annotations

import time

import grpc
import pytest
from pyspark.errors.exceptions.connect import AnalysisException, SparkConnectGrpcException

from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.connect_faults import connect_fault
from dbt_arctic.engine.connect_settings import ConnectSettings
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.statement import Statement
from dbt_arctic.errors import ConnectionLost, ServerUnreachable, StatementError

WRITE, QUERY = "INSERT INTO t VALUES (1)", "SELECT 1"
CUT = ["INTERNAL", "UNKNOWN", "CANCELLED", "ABORTED"]


def fault(error: Exception, sql: str, *, is_opening: bool = False) -> Fault:
    statement = Statement(sql, Statement.cancel)
    found = connect_fault(error, statement, "sc://x", repeatable=True, is_opening=is_opening)
    assert found is not None
    return found


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "UNAUTHENTICATED", *CUT])
def test_a_write_whose_answer_was_lost_may_have_landed(code: str) -> None:
    lost = SparkConnectGrpcException("RST_STREAM", grpc_status_code=grpc.StatusCode[code])
    assert isinstance(fault(lost, WRITE).error, ConnectionLost)


def test_what_spark_says_is_no_lost_answer() -> None:
    refused = AnalysisException(
        "no such table", errorClass="TABLE_OR_VIEW_NOT_FOUND", grpc_status_code=grpc.StatusCode.INTERNAL
    )
    assert not isinstance(fault(refused, WRITE).error, ConnectionLost)


def test_a_query_that_is_analysed_has_the_line_that_spark_rejected() -> None:
    """The server analyses it in a subquery, which begins a line earlier."""

    class Session:
        def sql(self, text: str) -> None:
            line = text.split("\n").index("  amout") + 1
            raise AnalysisException(f"[UNRESOLVED_COLUMN] no column amout; line {line} pos 2")

    connection = ConnectEngine(ConnectSettings("x", "lake")).connect()
    connection._session, connection._used_at = Session(), time.monotonic()
    with pytest.raises(StatementError) as found:
        connection.query_schema("select order_id,\n  amout\nfrom orders")
    assert (found.value.where, found.value.line) == ("the line: amout", 3)
    assert found.value.statement.split("\n")[2] == "  amout"
    assert "line" not in found.value.why


def test_a_refused_token_is_reported() -> None:
    refused = SparkConnectGrpcException("no", grpc_status_code=grpc.StatusCode.UNAUTHENTICATED)
    assert isinstance(fault(refused, QUERY).error, ServerUnreachable)
    assert isinstance(fault(refused, WRITE, is_opening=True).error, ServerUnreachable)
