"""Converts exceptions of the Connect client to ``ArcticError``s.

Distinguishes lost connections from failures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbt_arctic.engine.faults import Fault, classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.lost_connection import changes_nothing, lost_connection
from dbt_arctic.engine.statement import Statement
from dbt_arctic.errors import ArcticError, ServerUnreachable

_LOST_CONDITIONS = ("INVALID_HANDLE", "RESPONSE_ALREADY_RECEIVED", "INVALID_CURSOR")
_LOST_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
_BROKEN_OFF_CODES = {"INTERNAL", "UNKNOWN", "CANCELLED", "ABORTED"}
"""Codes of an interrupted stream, as proxies and the transport report it. Failures of Spark have more
details."""
_REFUSED_CODES = {"UNAUTHENTICATED", "PERMISSION_DENIED"}
_CAUSED_BY = re.compile(r"^Caused by: ", re.MULTILINE)


def is_lost(error: Exception) -> bool:
    """Whether the session is lost: the server does not respond, or no longer knows the session."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        # An interrupted stream raises an error of gRPC itself.
        return _grpc_code(error) in _LOST_CODES
    condition = error.getCondition() or ""
    return condition.startswith(_LOST_CONDITIONS) or _grpc_code(error) in _LOST_CODES


def _is_broken_off(error: Exception) -> bool:
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    if _grpc_code(error) not in _BROKEN_OFF_CODES:
        return False
    # The class of errors that consist only of a code and a text.
    return type(error) is SparkConnectGrpcException or not isinstance(error, PySparkException)


def connect_fault(
    error: Exception, statement: Statement, endpoint: str, *, repeatable: bool, is_opening: bool = False
) -> Fault | None:
    """The error for an exception; ``None`` if it does not come from Spark and indicates a bug.

    :param repeatable: whether the lost session held no state that the statement may depend on.
    :param is_opening: whether it was the first call of a session.
    """
    from pyspark.errors import PySparkException

    if isinstance(error, ArcticError):
        return Fault(error)
    is_write = not is_opening and not changes_nothing(statement)
    # A token may have expired while the statement was running. The statement continues on the server.
    if is_write and (_grpc_code(error) == "UNAUTHENTICATED" or _is_broken_off(error)):
        return lost_connection(statement, endpoint, _first_line(error), repeatable=repeatable)
    if _grpc_code(error) in _REFUSED_CODES:
        return Fault(
            ServerUnreachable(
                "The Spark Connect server rejected the connection.",
                where=endpoint,
                why=_first_line(error),
                fix="check token, user_id and use_ssl in the profile",
            )
        )
    if is_lost(error):
        if is_opening:
            return Fault(_unreachable(error, endpoint))
        return lost_connection(statement, endpoint, _first_line(error), repeatable=repeatable)
    if not isinstance(error, PySparkException):
        return None
    return classify(list(_causes(error)), statement.sql)


def _unreachable(error: Exception, endpoint: str) -> ServerUnreachable:
    return ServerUnreachable(
        "No Spark Connect server answers.",
        where=endpoint,
        why=_first_line(error),
        fix="check host, port and use_ssl in the profile, and that the server is running; "
        "connect_timeout limits how many seconds dbt waits for it",
    )


def _causes(error: Exception) -> Iterator[Cause]:
    """The chain of Java causes in the server's stack trace, the outermost first."""
    message = getattr(error, "_message", None) or str(error)
    first, *others = _CAUSED_BY.split(getattr(error, "_stacktrace", None) or type(error).__name__)
    yield Cause(first.split("\n", 1)[0].strip(), message)
    for other in others:
        java_class, _, rest = other.partition(": ")
        yield Cause(java_class, rest.split("\n\tat ", 1)[0])


def _grpc_code(error: Exception) -> str:
    read_code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    code = read_code() if callable(read_code) else None
    return str(getattr(code, "name", ""))


def _first_line(error: Exception) -> str:
    details = getattr(error, "details", None)
    text = str(details()) if callable(details) else getattr(error, "_message", None) or str(error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    match = re.search(r'details = "([^"]*)"', text)
    return match.group(1) if match else line
