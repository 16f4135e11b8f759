"""A target as the ``dbt-arctic`` commands use it.

Reads the catalog directly, and starts Spark on the first statement.

No project is parsed, so macros of a project (``keyed_statement``) are not used.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dbt_arctic.adapter.artifacts import read_artifact
from dbt_arctic.adapter.catalog_names import catalog_of, is_schema_of
from dbt_arctic.adapter.engines import choose_catalog, choose_engine
from dbt_arctic.adapter.profile_methods import SERVERS
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.readers import readers
from dbt_arctic.adapter.show import table_value
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.files import local_path
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.compaction.retention import longest_history
from dbt_arctic.compaction.settings import CompactionSettings, parse_settings
from dbt_arctic.data_type import parse_type
from dbt_arctic.engine import warehouse
from dbt_arctic.engine.api import ColumnInfo, Connection, Cursor, Engine
from dbt_arctic.engine.settings import each_catalog
from dbt_arctic.errors import ConfigError, UnknownRelation
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import OPERATIONS
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.file_checks import Missing
from dbt_arctic.store.context import Context
from dbt_arctic.store.other_catalogs import has_other_name, require_same_name
from dbt_arctic.store.state import keyed_from_view
from dbt_arctic.store.without_views import reading_records, with_records


class TargetSession:
    """The access of a command to a target. ``catalog`` reads metadata; ``context`` runs statements.

    :param command: its name, which commits record as ``arctic.run``.
    """

    def __init__(self, target: Target, command: str) -> None:
        self._target = target
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        root = str(target.project_root)
        self.catalog: CatalogReader = choose_catalog(target.credentials, root, self._rows)
        context = Context(
            catalog=self.catalog,
            run=self._run,
            query_schema=self._schema,
            query=self._rows,
            run_id=f"{uuid.uuid4()}:dbt-arctic {command}",
        )
        self._has_records = isinstance(self.catalog, WithRecords)
        self.context = reading_records(context) if self._has_records else context

    @property
    def reader(self) -> CatalogReader:
        """The reader of the target's catalog."""
        return self.catalog.of(self.name("any"))

    @property
    def own_schema(self) -> Name:
        """Any name in the schema of the target, in which the operations table is."""
        return Name(self._target.credentials.database, self._target.credentials.schema, "any")

    def name(self, text: str) -> Name:
        """Parse a table name: ``orders``, ``schema.orders`` or ``catalog.schema.orders``."""
        credentials, names = self._target.credentials, self._target.credentials.catalog_names
        parts = text.split(".")
        if len(parts) > 3 or not all(parts):
            raise ConfigError(f"{text!r} is not a valid table name", fix="write orders, or schema.orders")
        if len(parts) == 3 and parts[0] not in names:
            there = (
                f"the catalog {names[0]}" if len(names) == 1 else f"one of the catalogs {', '.join(names)}"
            )
            raise ConfigError(
                f"{text!r} is not in {there}",
                where=f"profiles.yml, target {self._target.name}",
                fix="choose another target: --target NAME; or add the catalog in profiles.yml under catalogs",
            )
        catalog = parts[0] if len(parts) == 3 else self._target.catalog
        schema = parts[-2] if len(parts) > 1 else credentials.schema
        return Name(catalog, schema, parts[-1])

    def is_of_others(self, name: Name) -> bool:
        """Whether a keyed table is in another catalog, for which its own client has another name."""
        if self.catalog.of(name) is self.catalog:
            return False
        view = self.catalog.of(name).load_view(name.schema, name.identifier)
        table = None if view is None else keyed_from_view(name, view)
        return table is not None and has_other_name(self.catalog, table, view)

    def to_write(self, text: str) -> Name:
        """Parse the name of a table that the command writes to.

        :raises ConfigError: it is a keyed table that its own client calls otherwise.
        """
        name = self.name(text)
        require_same_name(self.catalog, name, name.dotted)
        return name

    def schemas(self, chosen: Sequence[str] = (), everything: bool = False) -> list[str]:
        """The schemas of a command: those of the target, or the given ones.

        The schemas of the target are its own, and those that dbt derives from it by default for models with a
        custom schema, if the manifest of the project has them.

        :raises UnknownRelation: a schema does not exist.
        """
        existing = self.reader.list_schemas()
        missing = [schema for schema in chosen if schema not in existing]
        if missing:
            raise UnknownRelation(
                f"there is no schema {missing[0]}",
                where=self._target.catalog,
                why=f"there are: {', '.join(existing) or 'none'}",
                fix="correct the name after --schema",
            )
        if chosen:
            return list(chosen)
        if everything:
            return existing
        own = self._target.credentials.schema
        named = {own, *(model.schema for model in self.models if model.catalog == self._target.catalog)}
        return [schema for schema in existing if schema in named and is_schema_of(schema, own)]

    def other_schemas(self, chosen: Sequence[str]) -> list[str]:
        """Other schemas in which the project has tables, as chosen by its ``generate_schema_name``."""
        own = self._target.credentials.schema
        here = [model for model in self.models if model.catalog == self._target.catalog]
        named = {model.schema for model in here}
        by_default = {model.schema for model in here if not self.models[model].get("schema")}
        if by_default and not any(is_schema_of(schema, own) for schema in by_default):
            return []  # the last dbt command used another target
        return [schema for schema in self.reader.list_schemas() if schema in named and schema not in chosen]

    def other_catalogs(self) -> list[str]:
        """Other catalogs of the profile in which the project has tables, unless one was chosen."""
        if self._target.other_catalog is not None:
            return []
        named = {model.catalog for model in self.models}
        return [
            name
            for name in self._target.credentials.catalog_names
            if name in named and name != self._target.catalog
        ]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.context.query(sql)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.read(sql)[1]

    def read(self, sql: str, *, as_cells: bool = False) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The column names and rows of a query.

        :param as_cells: whether values are in the form of ``table_value``.
        """
        with closing(self._cursor()) as cursor:
            cursor.execute(sql)
            columns = [str(column[0]) for column in cursor.description or []]
            rows = cursor.fetchall()
            if as_cells:
                types = [parse_type(column[1]) for column in cursor.description or []]
                rows = [tuple(map(table_value, row, types)) for row in rows]
            return columns, rows

    @contextmanager
    def query_after(self, statements: Sequence[str]) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
        """Run queries in a session after some statements, whose effects are discarded afterwards."""
        if not statements:
            yield self.query
            return
        self._connected()
        assert self._engine is not None
        with closing(self._engine.connect()) as connection:

            def run(sql: str) -> list[tuple[Any, ...]]:
                with closing(connection.cursor()) as cursor:
                    cursor.execute(with_records(self.catalog, sql) if self._has_records else sql)
                    return cursor.fetchall()

            for statement in statements:
                run(statement)
            yield run

    @property
    def spark(self) -> Any:
        """The pyspark session of the statements."""
        return self._connected().session

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        if self._engine is not None:
            self._engine.close()

    @cached_property
    def models(self) -> Mapping[Name, Mapping[str, Any]]:
        """The config of the project's models and seeds by name, from the manifest of the last dbt command."""
        return {
            self._name_of(node): node.get("config") or {} for node in self._manifest.get("nodes", {}).values()
        }

    def readers_of(self, name: Name) -> list[str]:
        """The models and snapshots that read a model or source, by dotted name.

        They read it themselves or through ephemeral models. They are those of the manifest of the last dbt
        command.
        """
        nodes, sources = self._manifest.get("nodes", {}), self._manifest.get("sources", {})
        ids = {key for key, node in {**nodes, **sources}.items() if self._name_of(node) == name}
        return sorted({self._name_of(nodes[key]).dotted for key in readers(nodes, ids)})

    def _name_of(self, node: Mapping[str, Any]) -> Name:
        identifier = node.get("identifier") or node.get("alias") or node.get("name")
        catalog = catalog_of(node.get("database"), self._target.credentials.catalog_names)
        return Name(catalog, str(node.get("schema")), str(identifier))

    @property
    def target_folder(self) -> Path:
        """The folder of dbt's artifacts."""
        return self._target.artifacts

    @property
    def project(self) -> str:
        """The name of the project, from the manifest of the last dbt command, otherwise from its folder."""
        return str(self._manifest.get("metadata", {}).get("project_name") or self._target.project_root.name)

    @cached_property
    def _manifest(self) -> Mapping[str, Any]:
        return read_artifact(self.target_folder / "manifest.json") or {}

    def compaction_of(self, name: Name, is_keyed: bool) -> CompactionSettings:
        """The compaction settings of a table in the project, or the defaults.

        A plain table that does not belong to the project is not compacted, nor is a keyed one that its own
        client calls otherwise.
        """
        ours = not self.is_of_others(name) if is_keyed else name in self.models
        ours = ours or name.identifier == OPERATIONS
        configured = self.models.get(name, {})
        settings = parse_settings(name.identifier, configured.get("compaction"), configured.get("buckets"))
        return settings if ours else replace(settings, trigger=None)

    @property
    def operations_kept_s(self) -> int:
        """How long compaction operations stay in the operations table, in seconds."""
        return longest_history(
            (name.identifier, config.get("compaction")) for name, config in self.models.items()
        )

    def _run(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        if table is not None:
            require_same_name(self.catalog, table.name, table.name.dotted)
        cursor = self._cursor()
        try:
            cursor.execute(sql)
            return cursor.known_rows
        finally:
            cursor.close()

    def _schema(self, sql: str) -> list[ColumnInfo]:
        return self._connected().query_schema(sql)

    def _cursor(self) -> Cursor:
        return self._connected().cursor()

    def _connected(self) -> Connection:
        if self._connection is None:
            root = str(self._target.project_root)
            self._engine = choose_engine(self._target.credentials, root).engine
            self._connection = self._engine.connect()
        return self._connection


@contextmanager
def target_session(target: Target, command: str) -> Iterator[TargetSession]:
    """Open a target for one command, and close it afterwards."""
    session = TargetSession(target, command)
    try:
        yield session
    finally:
        session.close()


class CatalogFile(NamedTuple):
    """The file of the embedded catalog, and its permissions as ``stat`` returns them."""

    path: str
    mode: int


def catalog_file(target: Target) -> CatalogFile | None:
    """The file of the embedded catalog; ``None`` if there is none."""
    if target.credentials.method in SERVERS:
        return None  # the server defines the catalog
    defined = each_catalog(target.credentials.spark_settings(str(target.project_root)))
    settings = next((one for one in defined if one.catalog == target.catalog), None)
    path = None if settings is None else warehouse.catalog_file(settings)
    if path is None or not path.exists():
        return None
    return CatalogFile(str(path), path.stat().st_mode)


def size_of(location: str) -> int | Missing | None:
    """The size of a file in bytes; ``None`` if it is remote or not readable."""
    path = local_path(location)
    if path is None:
        return None
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return Missing.FILE
    except PermissionError:
        return None
