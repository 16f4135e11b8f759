"""Any other catalog, read by pyiceberg: REST, Hive, Glue, JDBC databases. Views that pyiceberg
cannot read are asked of ``views``, which reads them by SQL.

pyiceberg and the catalog's client are loaded at the first question.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from dbt_arctic.catalog.api import DataFile, RelationEntry, TableState, ViewState
from dbt_arctic.catalog.files import Kept
from dbt_arctic.catalog.metadata import TableMetadata, read_table, read_view
from dbt_arctic.catalog.snapshot_files import snapshot_files
from dbt_arctic.errors import CatalogUnavailable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_REQUESTS_AT_ONCE = 8


class ViewReader(Protocol):
    """The views of a catalog, for one whose views pyiceberg cannot read."""

    def list_views(self, schema: str) -> list[RelationEntry]: ...

    def load_view(self, schema: str, name: str) -> ViewState | None: ...


class RemoteCatalog:
    """Reads a catalog through pyiceberg. A ``CatalogReader``.

    :param name: Spark's name of the catalog.
    :param properties: pyiceberg's, ``type`` included (``translate.pyiceberg_properties`` makes them).
    :param views: who reads its views; ``None`` where pyiceberg does (REST).
    :raises CatalogUnavailable: (any method) the catalog or a file of it cannot be reached or read.
    """

    def __init__(self, name: str, properties: Mapping[str, Any], views: ViewReader | None = None) -> None:
        self._name = name
        self._properties = dict(properties)
        self._views = views
        self._lock = threading.Lock()
        self._opened: Catalog | None = None
        self._tables: Kept[tuple[str, str, str], TableMetadata] = Kept(limit=1024)

    def list_schemas(self) -> list[str]:
        with self._asking() as catalog:
            return sorted(".".join(namespace) for namespace in catalog.list_namespaces())

    def list_relations(self, schema: str) -> list[RelationEntry]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._asking() as catalog:
            try:
                tables = [name[-1] for name in catalog.list_tables((schema,))]
                own_views = [name[-1] for name in catalog.list_views((schema,))] if not self._views else []
            except NoSuchNamespaceError:
                return []
        entries = [RelationEntry(schema, name, "table") for name in tables]
        if self._views:
            entries += self._views.list_views(schema)
        else:
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
                loaded = pool.map(lambda name: self.load_view(schema, name), own_views)
            # None: dropped since the list was made.
            entries += [RelationEntry(schema, v.name, "view", v.properties) for v in loaded if v]
        return sorted(entries, key=lambda entry: entry.name)

    def load_table(self, schema: str, name: str) -> TableState | None:
        table = self._table(schema, name)
        return self._metadata(schema, name, table).state if table else None

    def load_view(self, schema: str, name: str) -> ViewState | None:
        if self._views:
            return self._views.load_view(schema, name)
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchViewError

        with self._asking() as catalog:
            try:
                view = catalog.load_view((schema, name))
            except (NoSuchViewError, NoSuchNamespaceError):
                return None
        return read_view(schema, name, json.loads(view.metadata.model_dump_json()))

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        table = self._table(schema, name)
        metadata = self._metadata(schema, name, table) if table else None
        properties = table.io.properties if table else {}  # with the credentials lent for this table
        return snapshot_files(self._name, schema, name, metadata, snapshot_id, column, properties)

    def _table(self, schema: str, name: str) -> Table | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with self._asking() as catalog:
            try:
                return catalog.load_table((schema, name))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def _metadata(self, schema: str, name: str, table: Table) -> TableMetadata:
        def read() -> TableMetadata:
            return read_table(schema, name, json.loads(table.metadata.model_dump_json()))

        return self._tables.get((schema, name, table.metadata_location), read)

    @contextmanager
    def _asking(self) -> Iterator[Catalog]:
        """The catalog, with everything that goes wrong (network, login, client) as one kind of error."""
        try:
            yield self._open()
        except Exception as error:
            uri = str(self._properties.get("uri", ""))
            raise CatalogUnavailable(
                f"The catalog `{self._name}` did not answer.",
                where=uri.rpartition("@")[2] or str(self._properties["type"]),  # without a password
                why=f"{type(error).__name__}: {error}",
                fix="Check the catalog's address and credentials in the profile, and that it is up.",
            ) from error

    def _open(self) -> Catalog:
        with self._lock:
            if self._opened is None:
                # Not load_catalog: it would mix in a ~/.pyiceberg.yaml entry of the same name, which
                # Spark does not see.
                from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType

                make: Callable[[str, dict[str, Any]], Catalog]
                make = AVAILABLE_CATALOGS[CatalogType(self._properties["type"])]
                rest = {key: value for key, value in self._properties.items() if key != "type"}
                self._opened = make(self._name, rest)
            return self._opened
