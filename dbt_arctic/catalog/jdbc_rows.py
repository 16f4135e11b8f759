"""The rows of Iceberg's JDBC catalog: which relations there are, and where their metadata is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Row:
    """One relation: its name and the location of its current metadata file."""

    schema: str
    name: str
    kind: Literal["table", "view"]
    metadata_location: str

    @classmethod
    def of(cls, schema: str, name: str, kind: str | None, location: str | None) -> Row:
        """A row as the database returns it. Rows of tables may have no kind, from before there were views."""
        return cls(schema, name, "view" if kind == "VIEW" else "table", location or "")


class JdbcRows(Protocol):
    """The rows of one catalog in a database.

    :raises CatalogUnavailable: (any method) the database cannot be read.
    """

    def has_views(self) -> bool:
        """Whether the catalog stores views."""
        ...

    def schemas(self) -> list[str]:
        """All namespaces that were created or that contain something, sorted."""
        ...

    def relations(self, schema: str, name: str | None = None) -> list[Row]:
        """The relations of a schema by name, or only the one called ``name``."""
        ...


__all__ = ["JdbcRows", "Row"]
