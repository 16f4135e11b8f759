"""Makes a session the active one of a thread, for Java calls in which Spark does not do so itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


@contextmanager
def active_session(session: Any) -> Iterator[None]:
    """Make a session the active one of this thread.

    The parser uses the settings of the active session instead of Spark's. A catalog is loaded with them at
    its first use in any session, and they may be those of another warehouse.
    """
    sessions = _session_class(session.sparkContext._gateway)
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@lru_cache(maxsize=1)
def _session_class(gateway: Any) -> Any:
    """Java's class, once for each Spark: py4j tries each part of a name as a class in each jar."""
    return gateway.jvm.org.apache.spark.sql.classic.SparkSession


__all__ = ["active_session"]
