"""The rows of Iceberg's JDBC catalog: which relations there are, and where their metadata is.

Depends on the two tables of that catalog, of schema versions V0 and V1, which are only read. Spark creates
them when it opens the catalog for the first time. Until then, the catalog is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

TABLES = "iceberg_tables"
NAMESPACES = "iceberg_namespace_properties"
KIND = "iceberg_type"
"""The column of ``TABLES`` that schema version V0 lacks. Rows from that time have NULL in it."""


@dataclass(frozen=True)
class Row:
    """One relation: its name and the location of its current metadata file."""

    schema: str
    name: str
    kind: Literal["table", "view"]
    metadata_location: str


class Database(Protocol):
    """An open connection to the database."""

    def columns(self, table: str) -> Collection[str]:
        """The names of a table's columns; none if the table does not exist."""
        ...

    def rows(self, sql: str, values: dict[str, str]) -> list[tuple[Any, ...]]:
        """The rows of a query with parameters, each written as ``:name``."""
        ...


class JdbcRows(ABC):
    """The rows of the catalog ``name`` in a database.

    :raises CatalogUnavailable: (any method) the database cannot be read.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @abstractmethod
    def _database(self) -> AbstractContextManager[Database]:
        """A connection for one request."""

    @abstractmethod
    def has_views(self) -> bool:
        """Whether the catalog stores views."""

    def schemas(self) -> list[str]:
        """All namespaces that were created or that contain something, sorted."""
        found: set[str] = set()
        with self._database() as database:
            for table, column in ((NAMESPACES, "namespace"), (TABLES, "table_namespace")):
                if database.columns(table):
                    query = f"SELECT DISTINCT {column} FROM {table} WHERE catalog_name = :catalog"
                    found.update(str(row[0]) for row in database.rows(query, {"catalog": self._name}))
        return sorted(found)

    def relations(self, schema: str, name: str | None = None) -> list[Row]:
        """The relations of a schema by name, or only the one called ``name``."""
        values = {"catalog": self._name, "schema": schema}
        with self._database() as database:
            columns = database.columns(TABLES)
            if not columns:
                return []
            query = (
                f"SELECT table_name, {KIND if KIND in columns else 'NULL'}, metadata_location FROM {TABLES}"
                " WHERE catalog_name = :catalog AND table_namespace = :schema"
            )
            if name is not None:
                query += " AND table_name = :name"
                values["name"] = name
            rows = database.rows(query, values)
        found = [Row(schema, n, "view" if k == "VIEW" else "table", at or "") for n, k, at in rows]
        return sorted(found, key=lambda row: row.name)


__all__ = ["KIND", "TABLES", "Database", "JdbcRows", "Row"]
