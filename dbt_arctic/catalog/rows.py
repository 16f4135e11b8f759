"""Reads the rows of a small table from its files, without Spark. pyiceberg applies deletes of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbt_arctic.catalog.damage import unreadable_rows

if TYPE_CHECKING:
    from pyiceberg.table import Table


def table_rows(
    catalog: str,
    schema: str,
    name: str,
    table: Table,
    columns: Sequence[str],
    snapshot_id: int | None = None,
) -> list[tuple[Any, ...]]:
    """All rows, in the order of ``columns``. Values of type ``timestamp`` are in UTC.

    :raises CatalogUnavailable: one of its files cannot be read.
    """
    try:
        found = table.scan(selected_fields=tuple(columns), snapshot_id=snapshot_id).to_arrow()
    except Exception as error:  # for damaged bytes, the reader may raise any error
        place = getattr(error, "filename", None) or table.location()
        raise unreadable_rows(f"{catalog}.{schema}.{name}", str(place), error) from error
    return list(zip(*(found.column(column).to_pylist() for column in columns), strict=True))
