"""Reads the table of operations, without Spark if the catalog is read without Spark."""

from __future__ import annotations

import datetime as dt
from typing import Any

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import COLUMNS, OPERATIONS, Record


def read_operations(catalog: CatalogReader, schema: Name, table: str = "") -> list[Record]:
    """Read the records of past operations, newest first.

    :param schema: any name of the schema that has the table of operations. The result is empty if there is
        none.
    :param table: a dotted name; empty for all.
    """
    name = schema.sibling(OPERATIONS)
    if catalog.of(name).load_table(name.schema, name.identifier) is None:
        return []
    rows = catalog.of(name).read_rows(name.schema, name.identifier, list(COLUMNS))
    found = [_record(row) for row in rows]
    return sorted(
        (one for one in found if table in ("", one.table_name)), key=lambda one: one.at_ms, reverse=True
    )


def _record(row: tuple[Any, ...]) -> Record:
    at: dt.datetime = row[0]
    return Record(round(at.timestamp() * 1000), *row[1:])
