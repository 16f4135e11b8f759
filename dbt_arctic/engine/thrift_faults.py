"""Converts errors of a Spark Thrift server to ``ArcticError``s.

Distinguishes lost connections from failures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbt_arctic.engine.faults import Fault, Reaction, classify, shortened
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.lost_connection import lost_connection
from dbt_arctic.engine.statement import Statement
from dbt_arctic.engine.thrift_client import OperationCancelled, OperationFailed
from dbt_arctic.errors import ArcticError, ConnectionLost, ServerUnreachable, StatementCancelled

_WRAPPED = re.compile(r"^(?:[\w.]+HiveSQLException: )?Error running query: (?:\[[\w.]+\] )?")
_CAUSED_BY = re.compile(r"^\s*Caused by: ", re.MULTILINE)
_LOST_SESSION = re.compile(r"Invalid SessionHandle")
_STACK = re.compile(r"\n\s+at ")


def is_lost(error: Exception) -> bool:
    """Whether the session is lost: the server does not respond, or no longer knows the session."""
    if isinstance(error, OperationFailed):
        return _LOST_SESSION.search(str(error)) is not None
    return isinstance(error, OSError | EOFError) or _is_of_the_transport(error)


def thrift_fault(error: Exception, statement: Statement, endpoint: str, *, repeatable: bool) -> Fault | None:
    """The error for an exception; ``None`` if it does not come from the server and indicates a bug.

    :param repeatable: whether the lost session held no state that the statement may depend on.
    """
    if isinstance(error, ArcticError):
        return Fault(error)
    if isinstance(error, OperationCancelled):
        return Fault(StatementCancelled("The statement was cancelled.", where=shortened(statement.sql)))
    if isinstance(error, OperationFailed) and is_lost(error):
        # The server has refused the statement, so it can be sent again, even a write.
        return Fault(
            ConnectionLost(
                "The server has closed the session before the statement was sent.",
                where=f"{endpoint}: {shortened(statement.sql)}",
                why=_first_line(error),
                fix="run again; nothing was changed",
            ),
            Reaction.RETRY_ON_NEW_CONNECTION if repeatable else Reaction.RAISE,
        )
    if is_lost(error):
        return lost_connection(statement, endpoint, _first_line(error), repeatable=repeatable)
    if isinstance(error, OperationFailed):
        return classify(list(causes_of(str(error))), statement.sql)
    return None


def unreachable(error: Exception, endpoint: str) -> ServerUnreachable:
    """The error for a session that cannot be opened."""
    return ServerUnreachable(
        "No session could be opened on the Spark Thrift server.",
        where=endpoint,
        why=_first_line(error),
        fix="check host, port, auth, user, password and use_ssl in the profile, and that the server runs",
    )


def causes_of(message: str) -> Iterator[Cause]:
    """The chain of Java causes in the message of a failed statement, the outermost first.

    The server puts the error of the statement into one of its own.
    """
    first, *others = _CAUSED_BY.split(_WRAPPED.sub("", message))
    for cause in (first, *others):
        java_class, is_named, rest = _STACK.split(cause, maxsplit=1)[0].partition(": ")
        if is_named and re.fullmatch(r"[\w.$]+", java_class):
            yield Cause(java_class, rest.strip())
        else:
            yield Cause("org.apache.hive.service.cli.HiveSQLException", cause.strip())


def _is_of_the_transport(error: Exception) -> bool:
    return any(kind.__name__ == "TTransportException" for kind in type(error).__mro__)


def _first_line(error: Exception) -> str:
    # Thrift's own text does not say why: the certificate, or nothing that listens.
    cause = getattr(error, "inner", None) if _is_of_the_transport(error) else None
    lines = (line.strip() for line in str(cause or error).splitlines())
    return next(filter(None, lines), type(error).__name__)
