"""A secondary index of a keyed table: for one column, each value with the keys whose rows had it.

An index is a table in the schema of the keyed table. Columns: the indexed one, then those of the key. It has
an entry for each row that is visible, and may have entries of rows that have changed since (a superset).
docs/explanation/secondary-indexes.md explains why that is enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.keyed.write_options import write_options

PROPERTY_INDEXES = "arctic.indexes"
"""On a change table: JSON list of the indexed columns of its generation."""
PROPERTY_INDEX_OF = "arctic.index-of"
"""On an index: the dotted name of the keyed table that it was created for."""
PROPERTY_INDEX_COLUMN = "arctic.index-column"
"""On an index: the column, in lower case."""
PROPERTY_COVERED = "arctic.covered"
"""On each commit of an index that wrote entries: see ``Coverage``."""

ROW_GROUP_BYTES = 1024 * 1024
"""A lookup reads a row group of each file that may have the value."""

_MARK = "__index_"
_PLAIN_NAME = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True)
class Coverage:
    """What an index covers after a commit.

    :param change_id: the ``arctic.id`` of the change table of the generation.
    :param version: each row that was visible in it has an entry.
    :param after: the snapshot of the index that the new entries were added to; ``None`` if they replaced all.
        The commit covers nothing if another one got in between.
    """

    change_id: str
    version: Version
    after: int | None

    def encode(self) -> str:
        """The form in which the commit records it."""
        return json.dumps([self.change_id, self.version.token, self.after])

    @classmethod
    def decode(cls, text: str) -> Coverage:
        """Parse the form in which a commit records it."""
        change_id, token, after = json.loads(text)
        return cls(str(change_id), Version.parse(token), None if after is None else int(after))


def coverage(history: Sequence[SnapshotLike]) -> Coverage | None:
    """What an index covers; ``None`` if it has no valid commit, so that it must be built again.

    :param history: the commits of the index, newest first.
    """
    for commit in history:
        text = commit.summary.get(PROPERTY_COVERED)
        if text is not None:
            found = Coverage.decode(text)
            return found if found.after is None or found.after == commit.parent_id else None
        if commit.operation != "replace":  # a rewrite of files changes no entries
            return None
    return None


def index_name(table: KeyedTable, column: str) -> Name:
    """The name of the index of a column."""
    of, folded = table.storage_name, column.lower()
    # Not every catalog supports every character in the name of a table.
    part = folded if _PLAIN_NAME.fullmatch(folded) else sha256(folded.encode()).hexdigest()[:12]
    return of.sibling(f"{of.identifier}{_MARK}{part}")


def is_index(table: KeyedTable, column: str, properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties is the index of a column."""
    return is_index_of(table, properties) and properties.get(PROPERTY_INDEX_COLUMN) == column.lower()


def is_index_of(table: KeyedTable, properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties is an index of a keyed table."""
    return properties.get(PROPERTY_INDEX_OF) == table.storage_name.dotted


def entry_columns(table: KeyedTable, column: str) -> tuple[str, ...]:
    """The columns of an index, in its order."""
    return (column, *(name for name in table.key if name != column))


def indexed_columns(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The indexed columns, from the properties of a change table."""
    return tuple(json.loads(properties.get(PROPERTY_INDEXES) or "[]"))


def set_indexed_columns(table: KeyedTable, columns: Sequence[str]) -> str:
    """SQL that records the indexed columns of a generation."""
    return (
        f"ALTER TABLE {table.change.sql} SET TBLPROPERTIES "
        f"({literal(PROPERTY_INDEXES)}={literal(json.dumps(list(columns)))})"
    )


def create_index(table: KeyedTable, column: str) -> str:
    """SQL that creates an index without entries. It replaces one with other columns."""
    name, types = index_name(table, column), table.types
    columns = ", ".join(f"{quote(one)} {types[one]}" for one in entry_columns(table, column))
    properties = {
        "format-version": "3",
        "write.parquet.row-group-size-bytes": str(ROW_GROUP_BYTES),
        PROPERTY_INDEX_OF: table.storage_name.dotted,
        PROPERTY_INDEX_COLUMN: column.lower(),
    }
    listed = ", ".join(f"{literal(key)}={literal(value)}" for key, value in properties.items())
    return f"CREATE OR REPLACE TABLE {name.sql} ({columns})\nUSING iceberg\nTBLPROPERTIES ({listed})"


def order_index(table: KeyedTable, column: str) -> str:
    """SQL that sorts the entries of an index by their value."""
    return f"ALTER TABLE {index_name(table, column).sql} WRITE ORDERED BY {quote(column)}"


def fill_index(table: KeyedTable, column: str, rows: str, covered: Coverage) -> str:
    """SQL that replaces all entries of an index, in one commit.

    :param rows: SQL of the merged rows of the covered version.
    """
    name = index_name(table, column)
    # Not INSERT OVERWRITE, which keeps the entries if there are no rows and overwrites are dynamic.
    options = write_options({PROPERTY_COVERED: covered.encode()})
    return f"INSERT INTO {name.sql} WITH ({options}) REPLACE WHERE true\n{_entries(table, column, rows)}"


def extend_index(table: KeyedTable, column: str, changes: str, covered: Coverage) -> str:
    """SQL that adds the entries of changed rows, in one commit.

    :param changes: SQL of the changes since the version that the index covers, with ``_action``.
    """
    name, columns = index_name(table, column), entry_columns(table, column)
    options = {"distribution-mode": "none"}
    upserts = f"SELECT * FROM (\n{changes}\n) WHERE {quote(ACTION)} = 'U'"
    return (
        f"INSERT INTO {name.sql} WITH ({write_options({PROPERTY_COVERED: covered.encode()}, options)}) "
        f"({quote_all(columns)})\n{_entries(table, column, upserts)}"
    )


def _entries(table: KeyedTable, column: str, rows: str) -> str:
    columns = quote_all(entry_columns(table, column))
    return f"SELECT {columns}\nFROM (\n{rows}\n)\nWHERE {quote(column)} IS NOT NULL"


def rows_without_entry(
    table: KeyedTable, column: str, rows: str, entries_at: int, changes: str | None
) -> str:
    """SQL of the number of rows that neither an index nor the changes since then have with their value.

    :param rows: SQL of the merged rows.
    :param entries_at: the snapshot of the index.
    :param changes: SQL of the changes since the version that the index covers; ``None`` for none.
    """
    columns, name = entry_columns(table, column), index_name(table, column)
    known = f"SELECT {quote_all(columns)} FROM {name.at(entries_at)}"
    if changes is not None:
        known += f"\nUNION ALL\nSELECT {quote_all(columns)} FROM (\n{changes}\n)"
    same = " AND ".join(f"i.{quote(one)} = r.{quote(one)}" for one in columns)
    return (
        f"SELECT count(*)\nFROM (\n{rows}\n) AS r\nLEFT ANTI JOIN (\n{known}\n) AS i\n  ON {same}\n"
        f"WHERE r.{quote(column)} IS NOT NULL"
    )


__all__ = [
    "PROPERTY_COVERED",
    "PROPERTY_INDEXES",
    "PROPERTY_INDEX_COLUMN",
    "PROPERTY_INDEX_OF",
    "Coverage",
    "coverage",
    "create_index",
    "entry_columns",
    "extend_index",
    "fill_index",
    "index_name",
    "indexed_columns",
    "is_index",
    "is_index_of",
    "order_index",
    "rows_without_entry",
    "set_indexed_columns",
]
