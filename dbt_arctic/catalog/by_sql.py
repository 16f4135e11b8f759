"""Reads a catalog with SQL statements on Spark, for catalogs that pyiceberg cannot read.

Depends on the output of ``SHOW``, ``DESCRIBE`` and Iceberg's metadata tables in Spark 4, and not on the
source of ``run``. Every request runs one or more statements, some of them Spark jobs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from dbt_arctic.catalog.api import (
    ArrowTable,
    CatalogColumn,
    DataFile,
    ListedFile,
    PlacedFile,
    RelationEntry,
    Snapshot,
    StoredFile,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.days import stored_bound
from dbt_arctic.catalog.ddl import (
    non_null_columns,
    partition_fields,
    quoted,
    sort_columns,
    unquoted,
    view_text,
)
from dbt_arctic.catalog.files import local_path
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.catalog.partition_names import with_default_name
from dbt_arctic.catalog.snapshot_files import no_column, no_snapshot, no_table
from dbt_arctic.catalog.types import requoted
from dbt_arctic.errors import CatalogUnavailable, StatementError, only_by_spark

Run = Callable[[str], list[tuple[Any, ...]]]

NO_SCHEMA = "dbt_arctic_no_such_schema"
_WITHOUT_VIEWS = re.compile(r"does not support|not supported|UnsupportedOperation", re.IGNORECASE)
_WITHOUT_SCHEMA = re.compile(
    r"SCHEMA_NOT_FOUND|NoSuchNamespace|NoSuchDatabase"
    r"|(namespace|schema|database)\b.*(not exist|not found|must exist|cannot be found)",
    re.IGNORECASE,
)
_HIDDEN = "*********(redacted)"
"""Spark's placeholder for a property whose name or value looks like a secret or a URL with one."""

# Entries of SHOW TBLPROPERTIES that are not properties.
_OF_A_TABLE = frozenset({"current-snapshot-id", "format", "sort-order", "identifier-fields"})
_OF_A_VIEW = frozenset({"provider", "location", "format-version"})


class _Described(NamedTuple):
    """A row of DESCRIBE: a column with its type and comment, or a detail's label and value."""

    name: str
    type: str
    comment: str


class SparkSqlCatalog(OneCatalog):
    """Reads the catalog ``catalog_name`` through Spark. A ``CatalogReader``.

    :param run: executes one statement and returns its rows. Its errors are passed on.
    :param extra: the extra of dbt-arctic with which the catalog could be read directly, if one is missing.
    """

    needs_spark: ClassVar[bool] = True

    def __init__(self, catalog_name: str, run: Run, extra: str = "") -> None:
        self._catalog = catalog_name
        self._extra = extra
        self._run = run
        self._has_views: bool | None = None

    def has_views(self) -> bool:
        """Iceberg asks the catalog to list the views of a schema only if it stores views.

        One that does not know the schema fails, or lists nothing: then a view is attempted and dropped. Any
        other error is passed on: a keyed table in a catalog without views would be missed.
        """
        if self._has_views is None:
            self._has_views = self._fails_without_schema() or self._knows_views()
        return self._has_views

    def _fails_without_schema(self) -> bool:
        try:
            self._run(f"SHOW VIEWS IN {quoted(self._catalog, NO_SCHEMA)}")
        except (CatalogUnavailable, StatementError) as error:
            if _WITHOUT_SCHEMA.search(str(error)) is not None:
                return True
            if isinstance(error, CatalogUnavailable):
                raise
            # The next statement shows whether another error is lasting.
        return False

    def _knows_views(self) -> bool:
        view = quoted(self._catalog, NO_SCHEMA, "v")
        try:
            self._run(f"CREATE VIEW {view} AS SELECT 1 AS a")
        except (CatalogUnavailable, StatementError) as error:
            if _WITHOUT_VIEWS.search(str(error)) is not None:
                return False
            if _WITHOUT_SCHEMA.search(str(error)) is None:
                raise
            return True
        self._run(f"DROP VIEW IF EXISTS {view}")
        return True

    def list_schemas(self) -> list[str]:
        return sorted(unquoted(row[0]) for row in self._run(f"SHOW SCHEMAS IN {quoted(self._catalog)}"))

    def list_relations(self, schema: str) -> list[RelationEntry]:
        if schema not in self.list_schemas():
            return []  # SHOW TABLES would fail
        tables = [RelationEntry(schema, name, "table") for name in self.list_tables(schema)]
        return sorted(tables + self.list_views(schema), key=lambda entry: entry.name)

    def list_names(self, schema: str) -> list[RelationEntry]:
        if schema not in self.list_schemas():
            return []
        return [
            *(RelationEntry(schema, name, "table") for name in self._names("TABLES", schema)),
            *(RelationEntry(schema, name, "view") for name in self._names("VIEWS", schema)),
        ]

    def list_tables(self, schema: str) -> list[str]:
        """The names of the tables of a schema, which must exist."""
        return self._names("TABLES", schema)

    def list_views(self, schema: str) -> list[RelationEntry]:
        """The views of a schema with their properties, one statement each; the schema must exist."""
        return [
            RelationEntry(schema, name, "view", self._view_properties(schema, name))
            for name in self._names("VIEWS", schema)
        ]

    def load_table(self, schema: str, name: str) -> TableState | None:
        if not self._has("TABLES", schema, name):
            return None
        table = quoted(self._catalog, schema, name)
        described, details = self._describe(table)
        everything: dict[str, str] = dict(self._run(f"SHOW TBLPROPERTIES {table}"))
        _refuse_hidden(f"{self._catalog}.{schema}.{name}", everything)
        properties = {k: v for k, v in everything.items() if k not in _OF_A_TABLE}
        for key in ("comment", "owner"):  # properties in Iceberg, table details in Spark
            if key.capitalize() in details:
                properties[key] = details[key.capitalize()]
        refs = self._run(f"SELECT name, snapshot_id, type FROM {table}.refs")
        branches = {str(branch): int(head) for branch, head, kind in refs if kind == "BRANCH"}
        text = self._run(f"SHOW CREATE TABLE {table}")[0][0]
        partitioning = partition_fields(text)
        not_null, order = non_null_columns(text), everything.get("sort-order", "")
        return TableState(
            schema=schema,
            name=name,
            location=details["Location"],
            properties=properties,
            columns=tuple(
                CatalogColumn(column, kind, comment, column not in not_null)
                for column, kind, comment in described
            ),
            snapshots=self._snapshots(table, branches.get("main")),
            current_snapshot_id=branches.get("main"),
            branches=branches,
            tags={str(tag): int(at) for tag, at, kind in refs if kind == "TAG"},
            partitioning=partitioning,
            partition_fields=tuple(map(with_default_name, partitioning)),
            sort_order=None if order == _HIDDEN else sort_columns(order),
        )

    def load_view(self, schema: str, name: str) -> ViewState | None:
        if not self._has("VIEWS", schema, name):
            return None
        view = quoted(self._catalog, schema, name)
        described, details = self._describe(view)
        comment = details.get("Comment", "")
        everything = self._all_view_properties(schema, name)
        properties = {key: value for key, value in everything.items() if key not in _OF_A_VIEW}
        return ViewState(
            schema=schema,
            name=name,
            properties={**properties, "comment": comment} if comment else properties,
            columns=tuple(CatalogColumn(*column) for column in described),
            sql=view_text(self._run(f"SHOW CREATE TABLE {view}")[0][0]),
            comment=comment,
            location=everything.get("location", ""),
        )

    def read_rows(
        self, schema: str, name: str, columns: Sequence[str], snapshot_id: int | None = None
    ) -> list[tuple[Any, ...]]:
        table = self._existing(schema, name)
        at = "" if snapshot_id is None else f" VERSION AS OF {int(snapshot_id)}"
        return self._run(f"SELECT {', '.join(quoted(column) for column in columns)} FROM {table}{at}")

    def arrow_table(self, schema: str, name: str) -> ArrowTable:
        relation = f"{self._catalog}.{schema}.{name}"
        if not self._extra:
            raise only_by_spark(relation, "only Spark can open its catalog with the settings of the profile")
        raise only_by_spark(relation, "a Python package that opens its catalog is missing", self._extra)

    def list_files(self, folder: str) -> list[ListedFile]:
        """By Spark, which reads the folder with its own credentials. One job."""
        # Times as numbers: a TIMESTAMP would be that of the session's zone.
        try:
            rows = self._run(
                "SELECT path, unix_millis(modificationTime), length"
                f" FROM binaryFile.{quoted(folder)} WITH ('recursiveFileLookup' = 'true')"
            )
        except StatementError as error:
            if "[PATH_NOT_FOUND]" in error.why:
                return []
            raise
        return [
            ListedFile(local_path(str(path)) or str(path), int(modified), int(size))
            for path, modified, size in rows
        ]

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        table = self._existing(schema, name)
        self._check_snapshot(table, f"{self._catalog}.{schema}.{name}", snapshot_id)
        rows = self._run(f"DESCRIBE QUERY SELECT * FROM {table} VERSION AS OF {int(snapshot_id)}")
        return {row[0]: CatalogColumn(row[0], row[1]) for row in rows}

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        relation = f"{self._catalog}.{schema}.{name}"
        table = self._existing(schema, name)
        columns = [found.name for found in self._describe(table)[0]]
        if column.lower() not in (found.lower() for found in columns):
            raise no_column(relation, column, columns)
        self._check_snapshot(table, relation, snapshot_id)
        metrics = f"readable_metrics.{quoted(column)}"
        rows = self._run(
            "SELECT file_path, record_count, file_size_in_bytes,"
            f" {metrics}.lower_bound, {metrics}.upper_bound, {metrics}.null_value_count"
            f" FROM {table}.data_files VERSION AS OF {int(snapshot_id)}"
        )
        return [
            DataFile(path, count, size, stored_bound(low), stored_bound(high), nulls)
            for path, count, size, low, high, nulls in rows
        ]

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        table = self._existing(schema, name)
        self._check_snapshot(table, f"{self._catalog}.{schema}.{name}", snapshot_id)
        rows = self._run(
            f"SELECT file_path, file_size_in_bytes FROM {table}.files VERSION AS OF {int(snapshot_id)}"
        )
        return [StoredFile(str(path), int(size)) for path, size in rows]

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        table = self._existing(schema, name)
        self._check_snapshot(table, f"{self._catalog}.{schema}.{name}", snapshot_id)
        described = {row[0] for row in self._run(f"DESCRIBE TABLE {table}.files")}
        # A table without partitions has no such column.
        partition = "partition" if "partition" in described else "NULL"
        metrics = f"readable_metrics.{quoted(column)}"
        bounds = f"{metrics}.lower_bound, {metrics}.upper_bound" if column else "NULL, NULL"
        rows = self._run(
            f"SELECT content = 0, record_count, file_size_in_bytes, {partition}, {bounds}, spec_id"
            f" FROM {table}.files VERSION AS OF {int(snapshot_id)}"
        )
        return [
            PlacedFile(
                is_data=bool(is_data),
                rows=int(count),
                size_bytes=int(size),
                partition=tuple("NULL" if value is None else str(value) for value in (values or {}).values()),
                bounds=None if low is None or high is None else (int(low), int(high)),
                spec_id=int(spec_id),
            )
            for is_data, count, size, values, low, high, spec_id in rows
        ]

    def _existing(self, schema: str, name: str) -> str:
        """The table's name for SQL. Raises ``UnknownRelation``."""
        if not self._has("TABLES", schema, name):
            raise no_table(f"{self._catalog}.{schema}.{name}")
        return quoted(self._catalog, schema, name)

    def _check_snapshot(self, table: str, relation: str, snapshot_id: int) -> None:
        if not self._run(f"SELECT 1 FROM {table}.snapshots WHERE snapshot_id = {int(snapshot_id)}"):
            raise no_snapshot(relation, snapshot_id)

    def _names(self, what: Literal["TABLES", "VIEWS"], schema: str) -> list[str]:
        rows = self._run(f"SHOW {what} IN {quoted(self._catalog, schema)}")
        # Temporary views are listed in every schema, with an empty namespace.
        return [row[1] for row in rows if not row[2]]

    def _has(self, what: Literal["TABLES", "VIEWS"], schema: str, name: str) -> bool:
        return schema in self.list_schemas() and name in self._names(what, schema)

    def _view_properties(self, schema: str, name: str) -> dict[str, str]:
        everything = self._all_view_properties(schema, name)
        return {key: value for key, value in everything.items() if key not in _OF_A_VIEW}

    def _all_view_properties(self, schema: str, name: str) -> dict[str, str]:
        return dict(self._run(f"SHOW TBLPROPERTIES {quoted(self._catalog, schema, name)}"))

    def _describe(self, relation: str) -> tuple[list[_Described], dict[str, str]]:
        """The columns and the details by their label."""
        answer = self._run(f"DESCRIBE TABLE EXTENDED {relation}")
        rows = [_Described(name or "", type_ or "", comment or "") for name, type_, comment in answer]
        end = next(
            (at for at, row in enumerate(rows) if row.name == "" or row.name.startswith("# ")), len(rows)
        )
        heading = next((at for at, row in enumerate(rows) if row.name.startswith("# Detailed ")), len(rows))
        columns = rows[:end]
        if any(" more fields>" in one.type or " more fields," in one.type for one in columns):
            columns = self._untruncated(relation, columns)
        columns = [one._replace(type=requoted(one.type)) for one in columns]
        return columns, {row.name: row.type for row in rows[heading + 1 :]}

    def _untruncated(self, relation: str, columns: list[_Described]) -> list[_Described]:
        """DESCRIBE truncates wide structs (``spark.sql.debug.maxToStringFields``); ``typeof`` does not."""
        types = ", ".join(f"typeof(r.{quoted(one.name)})" for one in columns)
        # The outer join returns a row even for an empty table, and its condition avoids a scan.
        (row,) = self._run(f"SELECT {types} FROM (SELECT 1) LEFT JOIN {relation} r ON false")
        return [one._replace(type=type_) for one, type_ in zip(columns, row, strict=True)]

    def _snapshots(self, table: str, head: int | None) -> tuple[Snapshot, ...]:
        rows = self._run(
            "SELECT snapshot_id, parent_id, unix_millis(committed_at), operation, to_json(summary)"
            f" FROM {table}.snapshots ORDER BY committed_at"
        )
        if not rows:
            return ()
        sequences, guessed, with_ids = self._numbers(table, [row[0] for row in rows])
        return tuple(
            Snapshot(
                snapshot,
                parent,
                sequences[snapshot],
                at,
                operation or "",
                json.loads(summary or "{}"),
                snapshot in guessed,
                snapshot == head and snapshot in with_ids,
            )
            for snapshot, parent, at, operation, summary in rows
        )

    def _numbers(
        self, table: str, snapshots: list[int]
    ) -> tuple[dict[int, int], frozenset[int], frozenset[int]]:
        """Sequence numbers, which ``snapshots`` lacks, from the files that each snapshot added.

        Returns the numbers; the snapshots whose number is only correct in order; and the snapshots whose
        added rows have row ids. A file that was added before the upgrade to version 3 may be reported with
        the ids that it has in later snapshots, which is correct for the newest one.

        A snapshot without added files has its number in the metadata log if it was once the head of main.
        Otherwise it gets the successor of the previous number, which is correct unless snapshots between them
        have expired, and always correct in order.
        """
        has_ids = "every(data_file.content <> 0 OR data_file.first_row_id IS NOT NULL)"
        added = self._run(
            f"SELECT snapshot_id, max(file_sequence_number), {has_ids} FROM {table}.all_entries"
            " WHERE status <> 2 GROUP BY snapshot_id"
        )
        found: dict[int, int] = {snapshot: number for snapshot, number, _ in added}
        if any(snapshot not in found for snapshot in snapshots):
            logged = self._run(
                f"SELECT latest_snapshot_id, min(latest_sequence_number) FROM {table}.metadata_log_entries"
                " WHERE latest_snapshot_id IS NOT NULL GROUP BY latest_snapshot_id"
            )
            found = {**dict(logged), **found}
        guessed = frozenset(snapshot for snapshot in snapshots if snapshot not in found)
        last = 0
        for snapshot in snapshots:
            last = found.setdefault(snapshot, last + 1)
        return found, guessed, frozenset(snapshot for snapshot, _, with_ids in added if with_ids)


def _refuse_hidden(relation: str, properties: Mapping[str, str]) -> None:
    """Refuse a table whose properties Spark hides.

    :raises CatalogUnavailable: Spark hides a property that dbt-arctic needs.
    """
    ours = {key: value for key, value in properties.items() if key.startswith("arctic.")}
    hidden = sorted(key for key, value in ours.items() if value == _HIDDEN)
    if hidden:
        raise CatalogUnavailable(
            f"Spark hides {', '.join(hidden)} of {relation}.",
            where=relation,
            why="A value looks like a secret or an address to spark.redaction.regex or "
            "spark.sql.redaction.options.regex: a key called url or token is enough.",
            fix="name the catalog in catalog_properties, so that its metadata is read directly; or change "
            "these patterns on the server, or the second one in spark_conf of the profile",
        )
