"""A data source of Spark as a temporary view, in any kind of PySpark session.

SQL could create such a view as well, but its text is logged, and the options may contain passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt_arctic.engine.api import FileRead, SourceRead
from dbt_arctic.engine.settings import CONNECTORS
from dbt_arctic.errors import DependencyError, StatementError

_MISSING = re.compile("Failed to find (the )?data source")


def create_source_view(session: Any, name: str, source: SourceRead) -> None:
    """A temporary view over a data source."""
    frame = session.read.format(source.format).options(**source.options).load()
    frame.createOrReplaceTempView("`" + name.replace("`", "``") + "`")


@contextmanager
def with_reader(source: SourceRead | FileRead) -> Iterator[None]:
    """Explain the error of the block if Spark does not have the reader of a source.

    :raises DependencyError: names the jars that are missing.
    """
    try:
        yield
    except StatementError as error:
        if not _MISSING.search(error.why):
            raise
        raise DependencyError(
            f"this Spark cannot read from {source.format}",
            where=error.where,
            why="it was started without the jars of the connector",
            fix="add them to `packages` in the profile, or to the class path of the server: "
            + ", ".join(CONNECTORS[source.format]),
        ) from error


__all__ = ["create_source_view", "with_reader"]
