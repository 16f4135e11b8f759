"""Iceberg's metadata as values in memory: tables, snapshots, branches, views, and how commits move them.

A catalog of one process without files: what a commit does to a table's log and rows is what Iceberg 1.12
does, as far as dbt-arctic relies on it (``test_conformance.py`` holds both against each other). It knows no
SQL and nothing of dbt-arctic.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any

MAIN = "main"
MANIFEST_BYTES = 1000
"""The length of a snapshot's manifest. It has one."""
ENGINE_VERSION = version("pyspark")
FILE_BYTES = 1000
"""The size of any file."""
_EPOCH = date(1970, 1, 1)


class Refused(Exception):
    """Iceberg refuses: the text is what Spark would say."""


@dataclass(frozen=True)
class Field:
    """A column. Rows hold values by ``field_id``, so a column that was dropped and made again is empty."""

    field_id: int
    name: str
    type: str
    comment: str = ""
    nullable: bool = True


@dataclass(frozen=True)
class Row:
    """:param sequence: Iceberg's ``_last_updated_sequence_number``."""

    row_id: int
    sequence: int
    values: Mapping[int, Any]


@dataclass(frozen=True)
class File:
    """A data file as it was written."""

    path: str
    rows: tuple[Row, ...]

    def bounds(self, field_id: int) -> tuple[int | None, int | None]:
        """The smallest and the largest value. A date is the number of its day, as Iceberg stores it."""
        found = [row.values.get(field_id) for row in self.rows]
        known = [_as_stored(value) for value in found if value is not None]
        return (min(known), max(known)) if known else (None, None)

    def nulls(self, field_id: int) -> int:
        return sum(row.values.get(field_id) is None for row in self.rows)


Files = tuple[tuple[File, frozenset[int]], ...]
"""The live files of a snapshot, each with the row ids that a deletion vector hides."""


@dataclass(frozen=True)
class Commit:
    """A snapshot: Iceberg's metadata, its columns, and its files."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    summary: Mapping[str, str]
    fields: tuple[Field, ...]
    files: Files
    removed: tuple[File, ...] = ()
    """Files that it or an earlier commit has removed: its manifests still have their bounds."""
    has_row_ids: bool = True

    def rows(self) -> Iterable[Row]:
        for file, hidden in self.files:
            for row in file.rows:
                if row.row_id not in hidden:
                    yield row


@dataclass
class Table:
    schema: str
    name: str
    properties: dict[str, str]
    fields: tuple[Field, ...]
    partitioned_by: str = ""
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)
    commits: dict[int, Commit] = field(default_factory=dict)
    branches: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    last_sequence: int = 0
    last_field: int = 0
    next_row: int = 0
    changes: int = 0
    """Grows with every change of the metadata."""

    @property
    def location(self) -> str:
        return f"memory/{self.uid}"

    @property
    def head(self) -> Commit | None:
        return self.at_branch(MAIN)

    def at_branch(self, branch: str) -> Commit | None:
        snapshot = self.branches.get(branch)
        return None if snapshot is None else self.commits[snapshot]

    def require_branch(self, branch: str) -> Commit | None:
        if branch != MAIN and branch not in self.branches:
            raise Refused(f"Cannot use branch (does not exist): {branch}")
        return self.at_branch(branch)

    def require_commit(self, snapshot_id: int) -> Commit:
        if snapshot_id not in self.commits:
            raise Refused(f"Cannot find snapshot with ID {snapshot_id}")
        return self.commits[snapshot_id]

    def field_named(self, name: str) -> Field:
        for one in self.fields:
            if one.name.lower() == name.lower():
                return one
        raise Refused(f"[UNRESOLVED_COLUMN] no column {name} in {self.name}")

    def history(self, snapshot_id: int | None) -> Iterable[Commit]:
        while snapshot_id is not None and snapshot_id in self.commits:
            yield self.commits[snapshot_id]
            snapshot_id = self.commits[snapshot_id].parent_id


@dataclass
class View:
    """:param columns: name, type and comment of each column."""

    schema: str
    name: str
    properties: dict[str, str]
    columns: tuple[tuple[str, str, str], ...]
    sql: str
    comment: str = ""


class Lake:
    """One catalog.

    :param clock: the time of a commit, in milliseconds.
    :param new_id: makes snapshot ids.
    """

    has_views = True

    def __init__(self, clock: Callable[[], int], new_id: Callable[[], int]) -> None:
        self.clock = clock
        self._new_id = new_id
        self.relations: dict[tuple[str, str], Table | View] = {}

    # Names

    def table(self, schema: str, name: str) -> Table:
        found = self.relations.get((schema, name))
        if not isinstance(found, Table):
            raise Refused(f"[TABLE_OR_VIEW_NOT_FOUND] The table or view `{schema}`.`{name}` cannot be found")
        return found

    def view(self, schema: str, name: str) -> View:
        found = self.relations.get((schema, name))
        if not isinstance(found, View):
            raise Refused(f"[VIEW_NOT_FOUND] The view `{schema}`.`{name}` cannot be found")
        return found

    def create_table(
        self,
        schema: str,
        name: str,
        columns: Sequence[tuple[str, str, str, bool]],
        properties: Mapping[str, str],
        partitioned_by: str = "",
    ) -> Table:
        """:param columns: name, type, comment, and whether NULL is allowed."""
        if (schema, name) in self.relations:
            raise Refused(f"[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create `{schema}`.`{name}`")
        fields = tuple(Field(at + 1, *column) for at, column in enumerate(columns))
        made = Table(schema, name, dict(properties), fields, partitioned_by, last_field=len(fields))
        self.relations[schema, name] = made
        return made

    def replace_table(
        self,
        schema: str,
        name: str,
        columns: Sequence[tuple[str, str, str, bool]],
        properties: Mapping[str, str],
    ) -> None:
        """``CREATE OR REPLACE TABLE`` for a table without rows: properties that are not named stay."""
        old = self.relations.pop((schema, name), None)
        if isinstance(old, View):
            raise Refused(f"[EXPECT_TABLE_NOT_VIEW] `{schema}`.`{name}` is a view")
        kept = {} if old is None else old.properties
        self.create_table(schema, name, columns, {**kept, **properties})

    def replace_view(self, view: View) -> None:
        """Properties that the new view does not name stay; a table of that name is in the way."""
        if not self.has_views:
            raise Refused("[MISSING_CATALOG_ABILITY.VIEWS] Catalog `lake` does not support views.")
        old = self.relations.get((view.schema, view.name))
        if isinstance(old, Table):
            raise Refused(f"[EXPECT_VIEW_NOT_TABLE] `{view.schema}`.`{view.name}` is a table")
        if old is not None:
            view.properties = {**old.properties, **view.properties}
        self.relations[view.schema, view.name] = view

    def rename_table(self, schema: str, name: str, to: str) -> None:
        table = self.table(schema, name)
        if (schema, to) in self.relations:
            raise Refused(f"[TABLE_OR_VIEW_ALREADY_EXISTS] `{schema}`.`{to}`")
        del self.relations[schema, name]
        table.name = to
        self.relations[schema, to] = table
        table.changes += 1

    def rename_view(self, schema: str, name: str, to: str) -> None:
        view = self.view(schema, name)
        if (schema, to) in self.relations:
            raise Refused(f"[VIEW_ALREADY_EXISTS] `{schema}`.`{to}`")
        del self.relations[schema, name]
        view.name = to
        self.relations[schema, to] = view

    def drop(self, schema: str, name: str, kind: type[Table] | type[View]) -> None:
        """``DROP ... IF EXISTS``: what is of the other kind stays, without a word."""
        if isinstance(self.relations.get((schema, name)), kind):
            del self.relations[schema, name]

    # Columns

    def add_columns(self, table: Table, columns: Sequence[tuple[str, str]]) -> None:
        known = {one.name.lower() for one in table.fields}
        for name, type_ in columns:
            if name.lower() in known:
                raise Refused(f"[FIELD_ALREADY_EXISTS] {name}")
            table.last_field += 1
            table.fields += (Field(table.last_field, name, type_),)
        table.changes += 1

    def drop_columns(self, table: Table, names: Sequence[str]) -> None:
        gone = {table.field_named(name).field_id for name in names}
        table.fields = tuple(one for one in table.fields if one.field_id not in gone)
        table.changes += 1

    def replace_field(self, table: Table, new: Field) -> None:
        table.fields = tuple(new if one.field_id == new.field_id else one for one in table.fields)
        table.changes += 1

    # Commits

    def commit(
        self,
        table: Table,
        branch: str,
        operation: str,
        summary: Mapping[str, str],
        files: Files,
        rewrites_manifests: bool = False,
    ) -> Commit:
        """:param rewrites_manifests: whether its manifests name no file that was removed."""
        parent = table.require_branch(branch)
        removed: tuple[File, ...] = ()
        if parent is not None and not rewrites_manifests:
            kept = {file.path for file, _ in files}
            removed = parent.removed + tuple(file for file, _ in parent.files if file.path not in kept)
        table.last_sequence += 1
        made = Commit(
            snapshot_id=self._new_id(),
            parent_id=None if parent is None else parent.snapshot_id,
            sequence_number=table.last_sequence,
            timestamp_ms=self.clock(),
            operation=operation,
            # Rows that deletion vectors hide are still in their files.
            summary={
                **summary,
                "engine-name": "spark",
                "engine-version": ENGINE_VERSION,
                "iceberg-version": "Apache Iceberg 1.12.0 (commit in-memory)",
                **({"spark.app.id": "in-memory"} if operation == "append" else {}),
                "total-data-files": str(len(files)),
                "total-records": str(sum(len(file.rows) for file, _ in files)),
                "total-files-size": str(FILE_BYTES * len(files)),
                "total-delete-files": str(sum(bool(hidden) for _, hidden in files)),
                "total-position-deletes": str(sum(len(hidden) for _, hidden in files)),
            },
            fields=table.fields,
            files=files,
            removed=removed,
            has_row_ids=table.properties.get("format-version") == "3",
        )
        table.commits[made.snapshot_id] = made
        table.branches[branch] = made.snapshot_id
        table.changes += 1
        return made

    def append(
        self, table: Table, branch: str, rows: Sequence[Mapping[int, Any]], summary: Mapping[str, str]
    ) -> Commit:
        parent = table.require_branch(branch)
        counts = {"added-data-files": "1", "added-records": str(len(rows))} if rows else {}
        files = (() if parent is None else parent.files) + self._new_file(table, rows)
        return self.commit(table, branch, "append", {**summary, **counts}, files)

    def delete_files(self, table: Table, branch: str, paths: frozenset[str]) -> Commit:
        """``DELETE`` that needs no more than to let go of whole files."""
        parent = table.require_branch(branch)
        before = () if parent is None else parent.files
        files = tuple(one for one in before if one[0].path not in paths)
        counts = {"deleted-data-files": str(len(before) - len(files))} if len(files) < len(before) else {}
        return self.commit(table, branch, "delete", counts, files)

    def replace_files(
        self,
        table: Table,
        branch: str,
        paths: frozenset[str],
        kept: Sequence[Row],
        new: Sequence[Mapping[int, Any]],
    ) -> Commit:
        """Copy on write, and ``INSERT OVERWRITE``: new files in place of others, in one commit.

        :param kept: rows that stay as old as they are.
        """
        parent = table.require_branch(branch)
        before = () if parent is None else parent.files
        files = tuple(one for one in before if one[0].path not in paths)
        if kept:
            files += ((File(f"{table.location}/{uuid.uuid4().hex}", tuple(kept)), frozenset()),)
        counts = {"deleted-data-files": str(len(paths)), "added-records": str(len(kept) + len(new))}
        return self.commit(table, branch, "overwrite", counts, files + self._new_file(table, new))

    def delete_rows(
        self, table: Table, branch: str, doomed: frozenset[int], summary: Mapping[str, str]
    ) -> Commit:
        """``DELETE`` of some rows of a file: deletion vectors for all rows that go, by their ids."""
        parent = table.require_branch(branch)
        before = () if parent is None else parent.files
        files, vectors = _hide(before, doomed)
        counts = {"added-dvs": str(vectors), "added-position-deletes": str(len(doomed))} if vectors else {}
        return self.commit(table, branch, "delete", {**summary, **counts}, files)

    def merge(
        self,
        table: Table,
        branch: str,
        hidden: frozenset[int],
        updated: Sequence[tuple[int, Mapping[int, Any]]],
        inserted: Sequence[Mapping[int, Any]],
        summary: Mapping[str, str],
    ) -> Commit:
        """``MERGE`` on read: an updated row keeps its row id, and is the commit's as all new rows are.

        :param hidden: row ids of deleted and updated rows.
        """
        parent = table.require_branch(branch)
        files, vectors = _hide(() if parent is None else parent.files, hidden)
        written = len(updated) + len(inserted)
        counts = {"added-data-files": "1", "added-records": str(written)} if written else {}
        if vectors:
            counts.update({"added-dvs": str(vectors), "added-position-deletes": str(len(hidden))})
        operation = "overwrite" if vectors and written else "delete" if vectors else "append"
        files += self._new_file(table, inserted, updated)
        return self.commit(table, branch, operation, {**summary, **counts}, files)

    def rewrite(
        self, table: Table, takes: Callable[[File], bool] = lambda file: True, every: bool = False
    ) -> Commit | None:
        """``rewrite_data_files``: one file with all live rows, each as old as it was.

        :param takes: which files may have rows that meet the condition; the others stay as they are.
        :param every: also a file that is alone and of which no row is hidden.
        """
        parent = table.head
        before = () if parent is None else parent.files
        taken = tuple(one for one in before if takes(one[0]))
        if not taken or (len(taken) < 2 and not any(hidden for _, hidden in taken) and not every):
            return None
        rows = tuple(row for file, hidden in taken for row in file.rows if row.row_id not in hidden)
        made: Files = ((File(f"{table.location}/{uuid.uuid4().hex}", rows), frozenset()),) if rows else ()
        counts = {"deleted-data-files": str(len(taken))}
        if rows:
            counts.update({"added-data-files": "1", "added-records": str(len(rows))})
        files = tuple(one for one in before if not takes(one[0])) + made
        return self.commit(table, MAIN, "replace", counts, files)

    def rewrite_manifests(self, table: Table) -> None:
        """New manifests without the files that were removed. A single one of the target size stays."""
        head = table.head
        size = int(table.properties.get("commit.manifest.target-size-bytes", 8 * 1024 * 1024))
        if head is not None and size < MANIFEST_BYTES:
            self.commit(table, MAIN, "replace", {}, head.files, rewrites_manifests=True)

    def _new_file(
        self,
        table: Table,
        rows: Sequence[Mapping[int, Any]],
        updated: Sequence[tuple[int, Mapping[int, Any]]] = (),
    ) -> Files:
        sequence = table.last_sequence + 1
        for values in (*rows, *(values for _, values in updated)):
            for one in table.fields:
                if not one.nullable and values.get(one.field_id) is None:
                    raise Refused(f"[NOT_NULL_ASSERT_VIOLATION] NULL value appeared in {one.name}")
        made = [Row(row_id, sequence, values) for row_id, values in updated]
        for values in rows:
            made.append(Row(table.next_row, sequence, values))
            table.next_row += 1
        if not made:
            return ()
        return ((File(f"{table.location}/{uuid.uuid4().hex}", tuple(made)), frozenset()),)

    # References

    def create_branch(self, table: Table, branch: str, snapshot_id: int | None) -> None:
        if branch in table.branches or branch in table.tags:
            raise Refused(f"Ref {branch} already exists")
        if snapshot_id is None and table.head is None:
            self.commit(table, MAIN, "append", {}, ())
            table.branches[branch] = table.branches.pop(MAIN)  # main stays empty
            return
        if snapshot_id is None:
            assert table.head is not None
            snapshot_id = table.head.snapshot_id
        table.require_commit(snapshot_id)
        table.branches[branch] = snapshot_id
        table.changes += 1

    def create_tag(self, table: Table, tag: str, snapshot_id: int) -> None:
        if tag in table.tags or tag in table.branches:
            raise Refused(f"Ref {tag} already exists")
        table.require_commit(snapshot_id)
        table.tags[tag] = snapshot_id
        table.changes += 1

    def drop_reference(self, table: Table, name: str) -> None:
        if name != MAIN:
            table.branches.pop(name, None)
            table.tags.pop(name, None)
            table.changes += 1

    def fast_forward(self, table: Table, branch: str, to: str) -> None:
        if to not in table.branches and to not in table.tags:
            raise Refused(f"Ref does not exist: {to}")
        target = table.branches.get(to, table.tags.get(to))
        current = table.branches.get(branch)
        if current is not None and current not in {one.snapshot_id for one in table.history(target)}:
            raise Refused(f"Cannot fast-forward: {branch} is not an ancestor of {to}")
        assert target is not None
        table.branches[branch] = target
        table.changes += 1

    def cherry_pick(self, table: Table, snapshot_id: int) -> None:
        """The rows of an append on top of main, without the properties that were committed with them."""
        picked, head = table.require_commit(snapshot_id), table.head
        if picked.parent_id == (None if head is None else head.snapshot_id):
            table.branches[MAIN] = snapshot_id
            table.changes += 1
            return
        known = {file.path for file, _ in (() if head is None else head.files)}
        before = (
            {file.path for file, _ in table.commits[picked.parent_id].files} if picked.parent_id else set()
        )
        new = [file for file, _ in picked.files if file.path not in known | before]
        sequence = table.last_sequence + 1
        files = tuple(
            (File(file.path, tuple(Row(row.row_id, sequence, row.values) for row in file.rows)), frozenset())
            for file in new
        )
        summary = {"source-snapshot-id": str(snapshot_id)}
        summary.update({k: v for k, v in picked.summary.items() if k.startswith("added-")})
        self.commit(table, MAIN, "append", summary, (() if head is None else head.files) + files)

    def expire(self, table: Table, older_than_ms: int, retain_last: int = 1) -> int:
        """``expire_snapshots``: what no branch or tag keeps. Returns how many went."""
        kept = set(table.tags.values())
        reachable = set(kept)
        for head in table.branches.values():
            for place, commit in enumerate(table.history(head)):
                reachable.add(commit.snapshot_id)
                if place < retain_last or commit.timestamp_ms >= older_than_ms:
                    kept.add(commit.snapshot_id)
        kept |= {
            commit.snapshot_id
            for commit in table.commits.values()
            if commit.snapshot_id not in reachable and commit.timestamp_ms >= older_than_ms
        }
        gone = set(table.commits) - kept
        for snapshot_id in gone:
            del table.commits[snapshot_id]
        table.changes += 1
        return len(gone)


def _as_stored(value: Any) -> Any:
    return (value - _EPOCH).days if type(value) is date else value


def _hide(files: Files, doomed: frozenset[int]) -> tuple[Files, int]:
    """The files with these rows hidden, and how many deletion vectors that takes."""
    found, vectors = [], 0
    for file, hidden in files:
        more = {row.row_id for row in file.rows if row.row_id in doomed} - hidden
        vectors += bool(more)
        found.append((file, hidden | more))
    return tuple(found), vectors
