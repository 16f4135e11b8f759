"""A ``CatalogReader`` over the lake in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

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
from dbt_arctic.errors import UnknownRelation, VersionUnavailable
from tests.model.lake import Commit, Field, Lake, Table, View

_FILE_BYTES = 1000


class MemoryCatalog:
    """:param before: called before each load of a table or view: what others do in between."""

    needs_spark: ClassVar[bool] = False

    def __init__(self, lake: Lake, schema: str) -> None:
        self._lake = lake
        self._schema = schema
        self._states: dict[str, tuple[int, TableState]] = {}
        self.before: Callable[[str], None] | None = None

    def has_views(self) -> bool:
        return True

    def list_schemas(self) -> list[str]:
        return [self._schema]

    def list_relations(self, schema: str) -> list[RelationEntry]:
        return [
            RelationEntry(schema, name, "view", dict(found.properties))
            if isinstance(found, View)
            else RelationEntry(schema, name, "table")
            for (of, name), found in self._lake.relations.items()
            if of == schema
        ]

    def list_names(self, schema: str) -> list[RelationEntry]:
        return [RelationEntry(entry.schema, entry.name, entry.kind) for entry in self.list_relations(schema)]

    def load_table(self, schema: str, name: str) -> TableState | None:
        self._pause(f"load {name}")
        found = self._lake.relations.get((schema, name))
        return self._state(found) if isinstance(found, Table) else None

    def load_view(self, schema: str, name: str) -> ViewState | None:
        self._pause(f"load {name}")
        found = self._lake.relations.get((schema, name))
        if not isinstance(found, View):
            return None
        columns = tuple(CatalogColumn(*column) for column in found.columns)
        return ViewState(schema, name, dict(found.properties), columns, found.sql, found.comment)

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        fields = self._commit(schema, name, snapshot_id).fields
        return {one.name: CatalogColumn(one.name, one.type) for one in fields}

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        commit = self._commit(schema, name, snapshot_id)
        field_id = self._lake.table(schema, name).field_named(column).field_id
        return [
            DataFile(file.path, len(file.rows), _FILE_BYTES, *file.bounds(field_id))
            for file, _ in commit.files
        ]

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        return [
            StoredFile(file.path, _FILE_BYTES) for file, _ in self._commit(schema, name, snapshot_id).files
        ]

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        commit = self._commit(schema, name, snapshot_id)
        field_id = self._lake.table(schema, name).field_named(column).field_id if column else 0
        found = []
        for file, hidden in commit.files:
            low, high = file.bounds(field_id) if column else (None, None)
            bounds = None if low is None or high is None else (low, high)
            found.append(PlacedFile(True, len(file.rows), _FILE_BYTES, ("0",), bounds))
            if hidden:
                found.append(PlacedFile(False, len(hidden), _FILE_BYTES, ("0",)))
        return found

    def _commit(self, schema: str, name: str, snapshot_id: int) -> Commit:
        table = self._lake.relations.get((schema, name))
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
    return CatalogColumn(one.name, one.type, one.comment, one.nullable)


def _snapshot(commit: Commit) -> Snapshot:
    return Snapshot(
        commit.snapshot_id,
        commit.parent_id,
        commit.sequence_number,
        commit.timestamp_ms,
        commit.operation,
        commit.summary,
    )
