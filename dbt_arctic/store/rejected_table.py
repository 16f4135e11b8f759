"""The rejected table of a model: the rows of its sources that did not fit, as of each commit of the model.

The model consumes the table as it consumes a file list: its commit records the snapshot of the rejected table
that belongs to its rows. So the rejected rows of a model are those of that snapshot, whatever a run that
failed, was rolled back or ran at the same time has written to the table.

Columns: ``source`` STRING (``<source>.<table>``), ``location`` STRING (the file, ``<topic>-<partition>``, or
the table of a database), ``modified`` TIMESTAMP (of the file or the message, or a cursor that is a time),
``position`` BIGINT (of the row in the file, from 1, or the offset; for a database, a cursor that is a whole
number, otherwise 0; NULL if rows were dropped), ``error`` STRING, ``raw`` STRING (the text of the row; NULL
if rows were dropped), ``row_count`` BIGINT (1, or more if rows were dropped), ``rejected_at`` TIMESTAMP,
``message`` STRUCT (the message as it was received; NULL for all others and if rows were dropped), ``key``
STRING (the key of a row of a database, as JSON; NULL for all others).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.version import Consumed, is_outside, of_relations
from dbt_arctic.store.state import plain_id

PROPERTY_OF = "arctic.rejected-of"
"""On the table: the model whose rejected rows it contains."""
COLUMNS = {
    "source": "STRING",
    "location": "STRING",
    "modified": "TIMESTAMP",
    "position": "BIGINT",
    "error": "STRING",
    "raw": "STRING",
    "row_count": "BIGINT",
    "rejected_at": "TIMESTAMP",
    "message": "STRUCT<`key`: BINARY, `value`: BINARY, "
    "`headers`: ARRAY<STRUCT<`key`: STRING, `value`: BINARY>>, `partition`: INT>",
    "key": "STRING",
}
SUFFIX = "__rejected"


class RejectedVersion(NamedTuple):
    """A rejected table at a snapshot."""

    name: Name
    consumed: Consumed

    @property
    def rows(self) -> str:
        """SQL of its rows, for a ``FROM``."""
        return self.name.at(int(self.consumed.version))


def rejected_name(model: Name) -> Name:
    """The name of the rejected table of a model."""
    return model.sibling(model.identifier + SUFFIX)


def model_of(state: TableState) -> str | None:
    """The dotted name of the model whose rejected rows a table contains; ``None`` for any other table."""
    return state.properties.get(PROPERTY_OF)


def load_rejected(catalog: CatalogReader, name: Name) -> TableState | None:
    """The rejected table of that name; ``None`` if there is none.

    :raises ConfigError: another table has the name.
    """
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is not None and model_of(state) is None:
        raise ConfigError(
            f"the table {name} is not a table of rejected rows",
            where=name.dotted,
            why=f"it has this name, but not the property {PROPERTY_OF}",
            fix="rename the table, or the model whose rejected rows would be stored under this name",
        )
    return state


def version_of(name: Name, state: TableState) -> RejectedVersion | None:
    """A rejected table as it is now; ``None`` if nothing was written to it."""
    head = state.current_snapshot_id
    return None if head is None else RejectedVersion(name, Consumed(plain_id(state), str(head)))


def _as_named_here(catalog: CatalogReader, name: Name, dotted: str) -> Name:
    """A recorded name. If its catalog is unknown, it is how another client names the one of ``name``."""
    other = Name(*dotted.split(".", 2))
    is_known = other.catalog in catalog.names_with(name)
    return other if is_known else replace(other, catalog=name.catalog)


def last_rejected(
    catalog: CatalogReader, name: Name, last_consumed: Mapping[str, Consumed]
) -> RejectedVersion | None:
    """The rejected rows that belong to a model's last commit; ``None`` for none.

    A clone, or a table that was renamed, has those of its original. If the table was dropped, there are none.

    :param name: of the model's own rejected table.
    :param last_consumed: what the model has consumed, by dotted name.
    :raises VersionUnavailable: the table has lost the snapshot.
    """
    entries = of_relations(last_consumed)
    for dotted in sorted(entries, key=lambda dotted: (dotted != name.dotted, dotted)):
        if not (dotted == name.dotted or dotted.endswith(SUFFIX)) or is_outside(entries[dotted]):
            continue
        consumed, other = entries[dotted], _as_named_here(catalog, name, dotted)
        state = catalog.of(other).load_table(other.schema, other.identifier)
        if state is None or model_of(state) is None or plain_id(state) != consumed.table_id:
            continue
        if int(consumed.version) not in {snapshot.snapshot_id for snapshot in state.snapshots}:
            raise VersionUnavailable(
                f"the rejected rows of {name} are not available",
                where=other.dotted,
                why=f"the snapshot {consumed.version} was expired by another tool than dbt-arctic expire",
                fix="to continue without them, drop the table",
            )
        return RejectedVersion(other, consumed)
    return None


def create_statement(name: Name, model: Name) -> str:
    """SQL that creates a rejected table without rows."""
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in COLUMNS.items())
    return (
        f"CREATE TABLE IF NOT EXISTS {name.sql} ({columns})\nUSING iceberg\n"
        f"TBLPROPERTIES ('format-version'='3', {literal(PROPERTY_OF)}={literal(model.dotted)})"
    )


def append_statement(name: Name, rows: str) -> str:
    """SQL that appends the rows of a query with the columns of ``COLUMNS``."""
    return f"INSERT INTO {name.sql} ({quote_all(COLUMNS)})\n{rows}"


def replace_statement(name: Name, rows: str) -> str:
    """SQL that replaces all rows. Earlier snapshots stay."""
    # Not INSERT OVERWRITE, which keeps the rows if the query has none and overwrites are dynamic.
    return f"INSERT INTO {name.sql} REPLACE WHERE true\n{rows}"


def all_rows(version: RejectedVersion) -> str:
    """SQL of the rows of a version."""
    return f"SELECT {quote_all(COLUMNS)}\nFROM {version.rows}"


def counts(catalog: CatalogReader, version: RejectedVersion) -> dict[str, tuple[int, int]]:
    """How many rows of each source are in a version: with their text, and dropped ones."""
    found: dict[str, tuple[int, int]] = {}
    name = version.name
    rows = catalog.of(name).read_rows(
        name.schema, name.identifier, ("source", "position", "row_count"), int(version.consumed.version)
    )
    for source, position, number in rows:
        kept, dropped = found.get(str(source), (0, 0))
        is_kept = position is not None
        found[str(source)] = (kept + int(number) * is_kept, dropped + int(number) * (not is_kept))
    return found


__all__ = [
    "COLUMNS",
    "PROPERTY_OF",
    "SUFFIX",
    "RejectedVersion",
    "all_rows",
    "append_statement",
    "counts",
    "create_statement",
    "last_rejected",
    "load_rejected",
    "model_of",
    "rejected_name",
    "replace_statement",
    "version_of",
]
