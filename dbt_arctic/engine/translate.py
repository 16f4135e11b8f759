"""Converts exceptions of pyspark or py4j to ``ArcticError``s, by reading Java objects."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dbt_arctic.engine.faults import Fault, classify, shortened
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ArcticError, SparkEnded, StatementError

if TYPE_CHECKING:
    from dbt_arctic.engine.jvm import SparkProcess

_MAX_CAUSES = 20
_STOPPED = re.compile(r"SparkContext was shut down|stopped SparkContext")


def fault_of(error: Exception, sql: str, process: SparkProcess) -> Fault | None:
    """The error for an exception; ``None`` if it does not come from Spark and indicates a bug."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.captured import CapturedException

    if isinstance(error, ArcticError):
        return Fault(error)
    if isinstance(error, Py4JJavaError):
        origin = error.java_exception
    elif isinstance(error, CapturedException) and error._origin is not None:
        origin = error._origin
    elif isinstance(error, (Py4JError, ConnectionError, EOFError)):
        return Fault(_lost(error, sql, process))
    elif isinstance(error, PySparkException):
        return classify([Cause(type(error).__name__, str(error))], sql)
    else:
        return None
    try:
        causes = list(_chain(origin))
    except (Py4JError, ConnectionError) as gone:
        return Fault(_lost(gone, sql, process))
    found = classify(causes, sql)
    return Fault(_ended(error, sql, process)) if has_ended(found.error, process) else found


def has_ended(error: ArcticError, process: SparkProcess) -> bool:
    """Whether a statement failed because Spark is shutting down: a terminated process stops Spark first."""
    return type(error) is StatementError and (
        not process.is_alive() or _STOPPED.search(str(error)) is not None
    )


@contextlib.contextmanager
def translated(sql: str, process: SparkProcess) -> Iterator[None]:
    """Raise errors of Spark inside the block as an ``ArcticError`` with its cause."""
    try:
        yield
    except Exception as error:
        fault = fault_of(error, sql, process)
        if fault is None or fault.error is error:
            raise
        raise fault.error from error


def _chain(origin: Any) -> Iterator[Cause]:
    at = origin
    for _ in range(_MAX_CAUSES):
        if at is None:
            return
        yield Cause(at.getClass().getName(), at.getMessage() or "")
        at = at.getCause()


def _lost(error: Exception, sql: str, process: SparkProcess) -> ArcticError:
    if process.is_alive():
        return StatementError("Spark's answer could not be read.", where=shortened(sql), why=str(error))
    return _ended(error, sql, process)


def _ended(error: Exception, sql: str, process: SparkProcess) -> ArcticError:
    tail = process.log_tail()
    return SparkEnded(
        "Spark ended while the statement ran.",
        where=shortened(sql),
        why=tail or f"Its process is gone ({type(error).__name__}: {error}).",
        fix="run again: the next statement starts a new Spark. It is unknown whether this one has finished: "
        "after an append to a plain table, check its newest snapshot first. "
        "If memory ran out, increase `driver_memory` in the profile.",
    )
