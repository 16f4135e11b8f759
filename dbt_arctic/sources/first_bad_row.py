"""Finds the row of a file that made a strict read fail, for the error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.engine.api import Connection
from dbt_arctic.sources.bad_rows import first_bad, folder_columns, tolerant_request
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.quarantine import cache_statement


class BadRow(NamedTuple):
    """A row that does not fit.

    :param position: among the rows of the file, from 1.
    """

    position: int
    error: str
    text: str


def find_bad_row(
    source: FileSource,
    path: str,
    view: str,
    connection: Connection,
    query: Callable[[str], list[tuple[Any, ...]]],
) -> BadRow | None:
    """The first row of a file that does not fit; ``None`` if each of them does.

    :param view: the name of a temporary view for it.
    """
    tolerant = replace(source, on_bad_row="quarantine")
    connection.create_file_view(view, tolerant_request(tolerant, [ListedFile(path, 0, 0)]))
    # Spark refuses a query that reads no column but the text.
    query(cache_statement(view))
    rows = query(first_bad(tolerant, view, folder_columns(source, [path])))
    return BadRow(int(rows[0][0]), str(rows[0][1]), str(rows[0][2])) if rows else None


__all__ = ["BadRow", "find_bad_row"]
