"""The rows of ``dbt docs generate``: columns and statistics of relations, from metadata alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

from dbt_common.contracts.metadata import StatsItem

from dbt_arctic.adapter.dbt_warning import emit_warning
from dbt_arctic.catalog.api import CatalogReader, RelationEntry, TableState, ViewState
from dbt_arctic.compaction.status import TableStatus, measure_keyed, measure_plain
from dbt_arctic.errors import ArcticError, UnknownRelation
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import is_keyed
from dbt_arctic.refresh.clone import is_clone
from dbt_arctic.refresh.materializations import is_materialized_view
from dbt_arctic.store.state import consistent_pair, keyed_from_view


class Statistic(NamedTuple):
    """A statistic as dbt's documentation shows it."""

    label: str
    description: str


STATISTICS = {
    "num_rows": Statistic("Rows", "Rows of the table; of a keyed table, without pending changes"),
    "num_bytes": Statistic("Bytes", "Size of the data files"),
    "num_files": Statistic("Files", "Data files; of a keyed table, those of both of its tables"),
    "pending_rows": Statistic("Pending rows", "Upserts and deletes that are not compacted yet"),
    "last_commit": Statistic("Last commit", "Time of the newest commit"),
}
"""The statistics by their ids."""

_COLUMNS = (
    *("table_database", "table_schema", "table_name", "table_type", "table_comment", "table_owner"),
    *("column_name", "column_index", "column_type", "column_comment"),
)
CATALOG_COLUMNS = (
    *_COLUMNS,
    *(f"stats:{name}:{part}" for name in STATISTICS for part in ("label", "value", "description", "include")),
)
"""The columns of dbt's catalog."""


def readable_rows(catalog: CatalogReader, database: str, entry: RelationEntry) -> list[dict[str, Any]]:
    """The rows of ``catalog_rows``; of a relation that cannot be read none, with a warning.

    dbt loses all relations of a catalog with one error.
    """
    try:
        return [*catalog_rows(catalog, database, entry)]
    except ArcticError as error:
        emit_warning(error)
        return []


def catalog_rows(catalog: CatalogReader, database: str, entry: RelationEntry) -> Iterator[dict[str, Any]]:
    """The columns of a relation, each with what is known of the relation."""
    name = Name(database, entry.schema, entry.name)
    reader = catalog.of(name)
    table = reader.load_table(entry.schema, entry.name) if entry.kind == "table" else None
    state = table or reader.load_view(entry.schema, entry.name)
    if state is None:  # dropped since it was listed
        return
    comment = table.properties.get("comment", "") if table else getattr(state, "comment", "")
    statistics = as_columns(_status(catalog, name, state))
    for index, column in enumerate(state.columns, start=1):
        yield {
            "table_database": database,
            "table_schema": entry.schema,
            "table_name": entry.name,
            "table_type": table_type(entry),
            "table_comment": comment or None,
            "table_owner": "",
            "column_name": column.name,
            "column_index": index,
            "column_type": column.type,
            "column_comment": column.comment or None,
            **statistics,
        }


def table_type(entry: RelationEntry) -> str:
    """The kind of a relation in the documentation."""
    if is_materialized_view(entry.properties):
        return "materialized view"
    if is_keyed(entry.properties):
        return "keyed table"
    return "clone" if is_clone(entry.properties) else entry.kind


def as_columns(status: TableStatus | None) -> dict[str, Any]:
    """The statistics of a table as columns of dbt's catalog; those that it does not have are not shown."""
    values: dict[str, Any] = {}
    if status is not None:
        at = status.written_ms
        values = {
            "num_rows": status.base.live_rows,
            "num_bytes": status.size_bytes,
            "num_files": status.files,
            "pending_rows": None if status.table is None else status.pending.rows,
            # As text: dbt would show a number, and does not take a time.
            "last_commit": at and f"{datetime.fromtimestamp(at / 1000, timezone.utc):%d %b %Y, %H:%M} UTC",
        }
    found: dict[str, Any] = {}
    for name, (label, description) in STATISTICS.items():
        value = values.get(name)
        parts = {"label": label, "value": value, "description": description, "include": value is not None}
        found |= {f"stats:{name}:{part}": one for part, one in parts.items()}
    return found


def statistics_of(row: dict[str, Any]) -> dict[str, StatsItem]:
    """The statistics in a row of the catalog, as dbt has them for a single relation."""
    return {
        name: StatsItem(
            id=name,
            label=statistic.label,
            value=row[f"stats:{name}:value"],
            include=True,
            description=statistic.description,
        )
        for name, statistic in STATISTICS.items()
        if row[f"stats:{name}:include"]
    }


def _status(catalog: CatalogReader, name: Name, state: TableState | ViewState) -> TableStatus | None:
    """The status of a table; ``None`` for a view, and for a keyed table that has lost a part."""
    now_ms = int(time.time() * 1000)
    if isinstance(state, TableState):
        return measure_plain(catalog, name, state, now_ms)
    table = keyed_from_view(name, state)
    if table is None:
        return None
    try:
        base, change = consistent_pair(catalog, table)
    except UnknownRelation:
        return None  # `dbt-arctic verify` reports it.
    return measure_keyed(catalog, table, base, change, now_ms)


__all__ = [
    "CATALOG_COLUMNS",
    "STATISTICS",
    "as_columns",
    "catalog_rows",
    "readable_rows",
    "statistics_of",
    "table_type",
]
