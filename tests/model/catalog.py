"""A ``CatalogReader`` over the lake in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dbt_arctic.catalog.api import (
    CatalogColumn,
    DataFile,
    PlacedFile,
    RelationEntry,
    Snapshot,
    StoredFile,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import UnknownRelation, VersionUnavailable
from dbt_arctic.maintenance.file_checks import Missing
from tests.model.lake import FILE_BYTES, Commit, Field, Lake, Table, View


class MemoryCatalog(OneCatalog):
    """:param before: called before each load of a table or view: what others do in between."""

    needs_spark: ClassVar[bool] = False

    def __init__(self, lake: Lake, schema: str) -> None:
        self.lake = lake
        self._schema = schema
        self._states: dict[str, tuple[int, TableState]] = {}
        self.before: Callable[[str], None] | None = None

    def has_views(self) -> bool:
        return self.lake.has_views

    def list_schemas(self) -> list[str]:
        return [self._schema]

    def list_relations(self, schema: str) -> list[RelationEntry]:
        return [
            RelationEntry(schema, name, "view", dict(found.properties))
            if isinstance(found, View)
            else RelationEntry(schema, name, "table")
            for (of, name), found in self.lake.relations.items()
            if of == schema
        ]

    def list_names(self, schema: str) -> list[RelationEntry]:
        return [RelationEntry(entry.schema, entry.name, entry.kind) for entry in self.list_relations(schema)]

    def load_table(self, schema: str, name: str) -> TableState | None:
        self._pause(f"load {name}")
        found = self.lake.relations.get((schema, name))
        return self._state(found) if isinstance(found, Table) else None

    def load_view(self, schema: str, name: str) -> ViewState | None:
        self._pause(f"load {name}")
        found = self.lake.relations.get((schema, name))
        if not isinstance(found, View):
            return None
        columns = tuple(CatalogColumn(*column) for column in found.columns)
        return ViewState(schema, name, dict(found.properties), columns, found.sql, found.comment)

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        """By their names now: a column that was renamed is the same one."""
        fields = self._commit(schema, name, snapshot_id).fields
        now = {one.field_id: one.name for one in self.lake.table(schema, name).fields}
        return {now[one.field_id]: _column(one) for one in fields if one.field_id in now}

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        commit = self._commit(schema, name, snapshot_id)
        field_id = self.lake.table(schema, name).field_named(column).field_id
        return [
            DataFile(file.path, len(file.rows), FILE_BYTES, *file.bounds(field_id), file.nulls(field_id))
            for file, _ in commit.files
        ]

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        return [
            StoredFile(file.path, FILE_BYTES) for file, _ in self._commit(schema, name, snapshot_id).files
        ]

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        commit = self._commit(schema, name, snapshot_id)
        field_id = self.lake.table(schema, name).field_named(column).field_id if column else 0
        found = []
        for file, hidden in commit.files:
            low, high = file.bounds(field_id) if column else (None, None)
            bounds = None if low is None or high is None else (low, high)
            found.append(PlacedFile(True, len(file.rows), FILE_BYTES, ("0",), bounds))
            if hidden:
                found.append(PlacedFile(False, len(hidden), FILE_BYTES, ("0",)))
        return found

    def size_of(self, path: str) -> int | Missing:
        """The size of a file, which is missing if no snapshot of any table has it, as it was deleted then."""
        tables = [found for found in self.lake.relations.values() if isinstance(found, Table)]
        commits = [commit for table in tables for commit in table.commits.values()]
        there = any(file.path == path for commit in commits for file, _ in commit.files)
        return FILE_BYTES if there else Missing.FILE

    def traces(self, column: str, value: Any) -> list[str]:
        """Tables that hold a value: rows, hidden or not, and bounds of files that were removed."""
        found = []
        for (_, name), table in self.lake.relations.items():
            if not isinstance(table, Table):
                continue
            numbers = [one.field_id for one in table.fields if one.name == column]
            for commit in table.commits.values():
                rows = [row for file, _ in commit.files for row in file.rows]
                held = [row.values.get(number) for row in rows for number in numbers]
                held += [bound for file in commit.removed for one in numbers for bound in file.bounds(one)]
                if value in held:
                    found.append(f"{name}/{commit.snapshot_id}")
        return found

    def _commit(self, schema: str, name: str, snapshot_id: int) -> Commit:
        table = self.lake.relations.get((schema, name))
        if not isinstance(table, Table):
            raise UnknownRelation(f"{schema}.{name} does not exist")
        if snapshot_id not in table.commits:
            raise VersionUnavailable(f"the snapshot {snapshot_id} of {schema}.{name} was expired")
        return table.commits[snapshot_id]

    def _pause(self, event: str) -> None:
        if self.before is not None:
            self.before(event)

    def _state(self, table: Table) -> TableState:
        known = self._states.get(table.uid)
        if known is None or known[0] != table.changes:
            head = table.head
            state = TableState(
                schema=table.schema,
                name=table.name,
                location=table.location,
                properties=dict(table.properties),
                columns=tuple(map(_column, table.fields)),
                snapshots=tuple(map(_snapshot, table.commits.values())),
                current_snapshot_id=None if head is None else head.snapshot_id,
                branches=dict(table.branches),
                tags=dict(table.tags),
                partitioning=(table.partitioned_by.replace("`", ""),) if table.partitioned_by else None,
            )
            known = self._states[table.uid] = (table.changes, state)
        return known[1]


def _column(one: Field) -> CatalogColumn:
    return CatalogColumn(one.name, one.type, one.comment, one.nullable, one.field_id)


def _snapshot(commit: Commit) -> Snapshot:
    return Snapshot(
        commit.snapshot_id,
        commit.parent_id,
        commit.sequence_number,
        commit.timestamp_ms,
        commit.operation,
        commit.summary,
        has_row_ids=commit.has_row_ids,
    )
