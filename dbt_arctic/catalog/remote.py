"""Reads any other catalog with pyiceberg: REST, Hive, Glue.

Data that pyiceberg cannot read is read by SQL: the views of all catalogs but REST, and tables with a type
that pyiceberg does not support (``variant``). pyiceberg and the client of the catalog are loaded on the first
request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from dbt_arctic import secret
from dbt_arctic.catalog.api import (
    ArrowTable,
    CatalogColumn,
    DataFile,
    ListedFile,
    Loaded,
    PlacedFile,
    RelationEntry,
    StoredFile,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.by_sql import NO_SCHEMA, SparkSqlCatalog
from dbt_arctic.catalog.damage import no_answer
from dbt_arctic.catalog.files import LruCache, is_in_hadoop
from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.catalog.load_relations import load_each
from dbt_arctic.catalog.metadata import TableMetadata, read_table, read_view
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.catalog.snapshot_files import (
    no_table,
    snapshot_columns,
    snapshot_files,
    snapshot_placed_files,
    snapshot_stored_files,
)
from dbt_arctic.errors import ArcticError, CatalogUnavailable, only_by_spark

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from dbt_arctic.catalog.table_scan import TableFiles

_REQUESTS_AT_ONCE = 8
_OF_HADOOP = ("libjvm", "libhdfs")
"""The libraries that Arrow misses if it cannot read HDFS."""


class _BeyondPyiceberg(Exception):
    """Raised for metadata of a table that pyiceberg cannot parse or reach."""


class RemoteCatalog(OneCatalog):
    """Reads a catalog through pyiceberg. A ``CatalogReader``.

    :param name: Spark's name of the catalog.
    :param properties: pyiceberg's properties, including ``type`` (see ``translate.pyiceberg_properties``).
    :param by_sql: reads the same catalog by SQL.
    :param views_by_sql: pyiceberg cannot read the views of this kind of catalog.
    :raises CatalogUnavailable: (any method) the catalog or one of its files cannot be read.
    """

    needs_spark: ClassVar[bool] = False

    def __init__(
        self, name: str, properties: Mapping[str, Any], by_sql: SparkSqlCatalog, *, views_by_sql: bool
    ) -> None:
        self._name = name
        self._properties = dict(properties)
        secret.remember(self._properties)
        self._by_sql = by_sql
        self._views_by_sql = views_by_sql
        self._lock = threading.Lock()
        # Hive's client has one connection, which concurrent threads would close for each other.
        self._is_one_at_a_time = properties.get("type") == "hive"
        self._alone = threading.RLock() if self._is_one_at_a_time else nullcontext()
        self._opened: Catalog | None = None
        self._tables: LruCache[tuple[str, str, str], TableMetadata] = LruCache(limit=1024)
        self._has_views: bool | None = None

    def has_views(self) -> bool:
        if self._has_views is None:
            self._has_views = self._knows_views() or self._by_sql.has_views()
        return self._has_views

    def _knows_views(self) -> bool:
        """Whether the server looks for views in a schema that does not exist, which needs no Spark."""
        if self._views_by_sql:
            return False
        from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError

        with self._opened_catalog() as catalog:
            try:
                catalog.list_views((NO_SCHEMA,))
            except (NoSuchNamespaceError, ForbiddenError):
                return True
        return False

    def list_schemas(self) -> list[str]:
        with self._opened_catalog() as catalog:
            return sorted(".".join(namespace) for namespace in catalog.list_namespaces())

    def list_names(self, schema: str) -> list[RelationEntry]:
        if self._views_by_sql:
            return self._by_sql.list_names(schema)
        listed = self._listed(schema)
        if listed is None:
            return []
        tables, views = listed
        return [
            *(RelationEntry(schema, name, "table") for name in tables),
            *(RelationEntry(schema, name, "view") for name in views),
        ]

    def _listed(self, schema: str) -> tuple[list[str], list[str]] | None:
        """The names of tables, and of views if pyiceberg supports them.

        ``None`` if the schema does not exist. Some servers answer for it that access is forbidden.
        """
        from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError

        with self._opened_catalog() as catalog:
            try:
                tables = [name[-1] for name in catalog.list_tables((schema,))]
                views = [] if self._views_by_sql else [name[-1] for name in catalog.list_views((schema,))]
            except NoSuchNamespaceError:
                return None
            except ForbiddenError:
                if schema in self.list_schemas():
                    raise
                return None
        return tables, views

    def _is_missing(self, schema: str, name: str) -> bool:
        """Whether a relation to which access is forbidden is none that the server lists."""
        listed = self._listed(schema)
        return listed is None or not any(name in names for names in listed)

    def list_relations(self, schema: str) -> list[RelationEntry]:
        listed = self._listed(schema)
        if listed is None:
            return []
        tables, views = listed
        entries = [RelationEntry(schema, name, "table") for name in tables]
        if self._views_by_sql:
            entries += self._by_sql.list_views(schema)
        for view in self.load_all(schema, [RelationEntry(schema, name, "view") for name in views]):
            if isinstance(view, CatalogUnavailable):
                raise view
            if view is not None:  # else dropped since the list was made
                entries.append(RelationEntry(schema, view.name, "view", view.properties))
        return sorted(entries, key=lambda entry: entry.name)

    def load_table(self, schema: str, name: str) -> TableState | None:
        try:
            return self._state(schema, name)
        except _BeyondPyiceberg:
            return self._by_sql.load_table(schema, name)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        try:
            return self._view(schema, name)
        except _BeyondPyiceberg:
            return self._by_sql.load_view(schema, name)

    def _view(self, schema: str, name: str) -> ViewState | None:
        if self._views_by_sql:
            raise _BeyondPyiceberg
        import pydantic
        from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchViewError

        with self._opened_catalog() as catalog:
            try:
                view = catalog.load_view((schema, name))
            except (NoSuchViewError, NoSuchNamespaceError, NotImplementedError):
                return None  # not implemented by servers without views
            except ForbiddenError:
                if self._is_missing(schema, name):
                    return None
                raise
            except pydantic.ValidationError as error:
                raise _BeyondPyiceberg from error
        return read_view(schema, name, json.loads(view.metadata.model_dump_json()))

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        if self._is_one_at_a_time or len(entries) <= 1:
            return super().load_all(schema, entries)

        def request(entry: RelationEntry) -> Loaded | _BeyondPyiceberg:
            try:
                return (self._state if entry.kind == "table" else self._view)(schema, entry.name)
            except (_BeyondPyiceberg, CatalogUnavailable) as error:
                return error

        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            found = list(pool.map(request, entries))
        # Only this thread may run statements on Spark.
        return [
            load_each(self._by_sql, schema, [entry])[0] if isinstance(state, _BeyondPyiceberg) else state
            for entry, state in zip(entries, found, strict=True)
        ]

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        try:
            table = self._table(schema, name)
        except _BeyondPyiceberg:
            return self._by_sql.columns_at(schema, name, snapshot_id)
        metadata = self._metadata(schema, name, table) if table else None
        return snapshot_columns(self._name, schema, name, metadata, snapshot_id)

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        try:
            table = self._table(schema, name)
        except _BeyondPyiceberg:
            return self._by_sql.data_files(schema, name, snapshot_id, column)
        metadata = self._metadata(schema, name, table) if table else None
        # includes the credentials that the catalog vends for this table
        properties = table.io.properties if table else {}
        return snapshot_files(self._name, schema, name, metadata, snapshot_id, column, properties)

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        try:
            table = self._table(schema, name)
        except _BeyondPyiceberg:
            return self._by_sql.stored_files(schema, name, snapshot_id)
        metadata = self._metadata(schema, name, table) if table else None
        properties = table.io.properties if table else {}
        return snapshot_stored_files(self._name, schema, name, metadata, snapshot_id, properties)

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        try:
            table = self._table(schema, name)
        except _BeyondPyiceberg:
            return self._by_sql.placed_files(schema, name, snapshot_id, column)
        metadata = self._metadata(schema, name, table) if table else None
        properties = table.io.properties if table else {}
        return snapshot_placed_files(self._name, schema, name, metadata, snapshot_id, column, properties)

    def read_rows(
        self, schema: str, name: str, columns: Sequence[str], snapshot_id: int | None = None
    ) -> list[tuple[Any, ...]]:
        try:
            return self._files(schema, name).tuples(columns, snapshot_id)
        except _BeyondPyiceberg:
            return self._by_sql.read_rows(schema, name, columns, snapshot_id)

    def arrow_table(self, schema: str, name: str) -> ArrowTable:
        try:
            return self._files(schema, name)
        except _BeyondPyiceberg as error:
            raise only_by_spark(
                f"{self._name}.{schema}.{name}", "pyiceberg does not support one of its types, or its store"
            ) from error

    def _files(self, schema: str, name: str) -> TableFiles:
        table = self._table(schema, name)
        if table is None:
            raise no_table(f"{self._name}.{schema}.{name}")
        from dbt_arctic.catalog.table_scan import TableFiles

        metadata = self._metadata(schema, name, table)
        return TableFiles(f"{self._name}.{schema}.{name}", metadata, table.io.properties)

    def list_files(self, folder: str) -> list[ListedFile]:
        with self._opened_catalog() as catalog:
            properties = dict(catalog.properties)
        return list_files(folder, properties)

    def _table(self, schema: str, name: str) -> Table | None:
        import pydantic
        from pyiceberg.exceptions import (
            ForbiddenError,
            NoSuchNamespaceError,
            NoSuchTableError,
            ValidationError,
        )

        with self._opened_catalog() as catalog:
            try:
                table = catalog.load_table((schema, name))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except ForbiddenError:
                if self._is_missing(schema, name):
                    return None
                raise
            except (ValidationError, pydantic.ValidationError) as error:
                raise _BeyondPyiceberg from error
            except OSError as error:
                if not any(library in str(error) for library in _OF_HADOOP):
                    raise
                raise _BeyondPyiceberg from error
        if is_in_hadoop(table.location()):
            raise _BeyondPyiceberg
        return table

    def _state(self, schema: str, name: str) -> TableState | None:
        table = self._table(schema, name)
        return self._metadata(schema, name, table).state if table else None

    def _metadata(self, schema: str, name: str, table: Table) -> TableMetadata:
        def read() -> TableMetadata:
            # Not model_dump_json: pyiceberg cannot write format version 3, even to a string.
            return read_table(schema, name, table.metadata.model_dump(mode="json"))

        # A REST server may leave the location out, and nothing else identifies the state of a table.
        location: str | None = table.metadata_location
        return self._tables.get((schema, name, location), read) if location else read()

    @contextmanager
    def _opened_catalog(self) -> Iterator[Catalog]:
        """Open the catalog, and convert all failures (network, login, client) to one kind of error."""
        try:
            with self._alone:
                yield self._open()
        except (ArcticError, _BeyondPyiceberg):
            raise
        except Exception as error:
            address = str(self._properties.get("uri") or self._properties["type"])
            raise no_answer(self._name, address, error) from error

    def _open(self) -> Catalog:
        with self._lock:
            if self._opened is None:
                # Not load_catalog: it would merge an entry of ~/.pyiceberg.yaml with the same name, which
                # Spark does not read.
                from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType

                make: Callable[[str, dict[str, Any]], Catalog]
                make = AVAILABLE_CATALOGS[CatalogType(self._properties["type"])]
                rest = {key: value for key, value in self._properties.items() if key != "type"}
                opened = make(self._name, rest)
                self._opened = opened
            return self._opened
