"""A model that follows a table of PostgreSQL, in plain Python: which rows it has after each run.

It takes the same decisions as a run does, and stores what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_arctic.databases.address import parse_address
from dbt_arctic.databases.api import TableName, TableVersion, columns_shape
from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.databases.postgres import PostgresSchemaReader
from dbt_arctic.databases.postgres_versions import read_versions
from dbt_arctic.databases.replication_slot import PostgresSlot
from dbt_arctic.sources.capture_settings import CapturedColumns, parse_capture, resolve_columns
from dbt_arctic.sources.column_changes import Effect, RecordedTable, TableChange, table_changes
from tests.matrix.components import PASSWORD

EFFECTS: tuple[Effect, ...] = ("none", "null", "read", "load")
"""From the least to the greatest."""
Row = dict[str, "str | None"]


class Missing(Exception):
    """A change lacks a column. The statement that decodes it fails the run."""


@dataclass
class FollowedDatabase:
    """A database of which each table is followed, through one connection.

    :param slot: the name of the slot, and of the publication.
    """

    url: str
    connection: Any
    slot: str
    versions: Mapping[TableName, TableVersion] = field(default_factory=dict)
    """The columns of the tables before the last changes were taken."""

    def __post_init__(self) -> None:
        self.run(f"CREATE PUBLICATION {self.slot} FOR ALL TABLES")
        self.run(f"SELECT pg_create_logical_replication_slot('{self.slot}', 'pgoutput')")

    def run(self, text: str, values: Any = None, /) -> list[Any]:
        cursor = self.connection.execute(text, values)
        return list(cursor.fetchall()) if cursor.description else []

    def take(self) -> dict[str, list[LoggedChange]]:
        """The changes since the last time, by table."""
        slot = PostgresSlot(self.run, self.slot, self.slot, "test")
        self.versions = slot.versions()
        until, found = slot.state().current, dict[str, list[LoggedChange]]()
        for one in slot.changes(0, until, 10**6).changes:
            found.setdefault(one.table, []).append(one)
        slot.advance(until)
        return found

    def columns(self, name: str) -> CapturedColumns:
        """A table as it is."""
        place, address = TableName("public", name), parse_address(self.url, "", PASSWORD, "test")
        table = PostgresSchemaReader(self.run, address, "test").describe(place)
        oid = int(table.table_id.rpartition("/")[2])
        version = read_versions(self.run, {oid: place}, self.slot)[place]
        source = parse_capture("crm.t", {"slot": self.slot, "table": name})
        return resolve_columns(source, table._replace(version=version), place, "t")


@dataclass
class FollowedTable:
    """A model that follows one of the tables."""

    database: FollowedDatabase
    name: str
    rows: dict[str, Row] = field(default_factory=dict)
    recorded: RecordedTable | None = None
    changes: list[TableChange] = field(default_factory=list)

    def load(self) -> None:
        """The first run: all rows of the table."""
        self._read(self.database.columns(self.name))

    def run(self, logged: Sequence[LoggedChange]) -> Effect:
        """A later run; what the changes of the table mean for it.

        :param logged: the changes of rows since the last run.
        """
        assert self.recorded is not None
        columns = self.database.columns(self.name)
        events, shapes = columns.events, {columns_shape(one.shape) for one in logged}
        self.changes = table_changes(self.recorded, columns.table, events.columns, events.key, shapes)
        effect = max((one.effect for one in self.changes), key=EFFECTS.index, default="none")
        if effect in ("read", "load"):
            self._read(columns)
            return effect
        newer = {one.column for one in self.changes if one.effect == "null"}
        for row in self.rows.values():
            for name in set(row) - set(events.columns):
                del row[name]
            row.update(dict.fromkeys(set(events.columns) - set(row)))
        for one in logged:
            self._apply(one, columns, newer)
        self.recorded = self._recorded(columns)
        return effect

    def there(self) -> dict[str, Row]:
        """The rows of the database, of the columns that are in the log."""
        events = self.database.columns(self.name).events
        names = list(events.columns)
        # A cast of inet to text adds the bits of its mask.
        listed = ", ".join(f'CASE WHEN "{name}" IS NOT NULL THEN concat("{name}") END' for name in names)
        made = [
            dict(zip(names, row, strict=True))
            for row in self.database.run(f"SELECT {listed} FROM {self.name}")
        ]
        return {str(row[events.key[0]]): row for row in made}

    def _read(self, columns: CapturedColumns) -> None:
        self.rows, self.recorded = self.there(), self._recorded(columns)

    def _recorded(self, columns: CapturedColumns) -> RecordedTable | None:
        return columns.recorded(self.recorded, self.database.versions[TableName("public", self.name)])

    def _apply(self, change: LoggedChange, columns: CapturedColumns, newer: set[str]) -> None:
        (key,) = columns.events.key
        old = change.before or change.after
        assert old is not None
        stored = self.rows.pop(str(old[key]), {})
        if change.after is None:
            return
        row: Row = {}
        for name in columns.events.columns:
            if name in change.unsent:
                row[name] = stored[name]
            elif name in change.after:
                value = change.after[name]
                row[name] = "{" + ",".join(value) + "}" if isinstance(value, list) else value
            elif name in newer:
                row[name] = None
            else:
                raise Missing(name)
        self.rows[str(change.after[key])] = row


__all__ = ["EFFECTS", "FollowedDatabase", "FollowedTable", "Missing"]
