"""A data source of Spark as a temporary view, in any kind of PySpark session.

SQL could create such a view as well, but its text is logged, and the options may contain passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt_arctic.engine.api import FileRead, SourceRead
from dbt_arctic.engine.connectors import CONNECTORS
from dbt_arctic.errors import DependencyError, StatementError

_MISSING = re.compile("Failed to find (the )?data source")
_NO_DRIVER = re.compile(r"ClassNotFoundException: \S*(postgresql|mariadb)\S*Driver")
_ARGUMENTS = ("url", "dbtable")


def create_source_view(session: Any, name: str, source: SourceRead) -> None:
    """A temporary view over a data source."""
    if source.predicates:
        properties = {name: value for name, value in source.options.items() if name not in _ARGUMENTS}
        frame = session.read.jdbc(
            *(source.options[name] for name in _ARGUMENTS),
            predicates=list(source.predicates),
            properties=properties,
        )
    else:
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
        driver = _NO_DRIVER.search(error.why)
        if driver is None and not _MISSING.search(error.why):
            raise
        connector = source.format if driver is None else driver[1]
        raise DependencyError(
            f"this Spark cannot read from {connector}",
            where=error.where,
            why="it was started without the jars of the connector",
            fix="add them to `packages` in the profile, or to the class path of the server: "
            + ", ".join(CONNECTORS[connector]),
        ) from error


__all__ = ["create_source_view", "with_reader"]
