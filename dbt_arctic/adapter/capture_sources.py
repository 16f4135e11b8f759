"""dbt sources captured from the log of a PostgreSQL database: from a declaration to settings and a slot."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dbt_arctic.adapter.database_sources import address_of, refuse_password
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.databases.api import Table
from dbt_arctic.databases.postgres import PostgresTable
from dbt_arctic.databases.replication_slot import PostgresSlot, open_slot
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.sources.capture_preview import CapturedTable, SlotContents
from dbt_arctic.sources.capture_settings import CaptureSource, parse_capture, upstream_of
from dbt_arctic.sources.capture_table import capture_name


@dataclass(frozen=True)
class DeclaredCapture:
    """A declared source: its settings, its table in the database, and its slot."""

    source: CaptureSource
    table: PostgresTable
    where: str

    @property
    def upstream(self) -> Name:
        """The name of the source among what a model has consumed."""
        return upstream_of(self.source)

    def name(self, credentials: Any) -> Name:
        """The name of the capture table, which is in the schema of the target."""
        return capture_name(Name(credentials.database, credentials.schema, "any"), self.source.name)

    def captured(
        self,
        catalog: CatalogReader,
        credentials: Any,
        slots: MutableMapping[Name, SlotContents] | None = None,
    ) -> CapturedTable:
        """The table, for looking at what models have not read.

        :param slots: as for ``CapturedTable``.
        """
        name, place, shared = self.name(credentials), self.table.place, {} if slots is None else slots
        return CapturedTable(catalog, self.source, name, place, self.open_slot, self._describe, shared)

    def _describe(self) -> Table:
        with contextlib.closing(self.table.begin()) as transaction:
            return transaction.table

    def open_slot(self) -> AbstractContextManager[PostgresSlot]:
        """Open the slot."""
        return open_slot(self.table.address, self.source.slot, self.source.publication, self.where)


def declared_capture(declared: Mapping[str, Any], logins: Mapping[str, Mapping[str, str]]) -> DeclaredCapture:
    """The settings of a declared source.

    :param logins: by name of a connection: ``url``, ``user`` and ``password`` of the profile.
    :raises ConfigError: a setting is unknown, missing or wrong, or a secret.
    """
    refuse_password(declared)
    where = declared["where"]
    source = parse_capture(declared["name"], declared["settings"], where)
    address = address_of(declared, logins)
    if address.kind != "postgresql":
        raise ConfigError(
            f"the source {source.name} has from: postgres and the url of another database",
            where=where,
            why="the changes of other databases are read from the topics or files of a tool such as Debezium",
            fix="use from: kafka or from: files with a format of change events, or from: jdbc",
        )
    table = PostgresTable(address, source.table.table, where, source.publication)
    return DeclaredCapture(source, table, where)


__all__ = ["DeclaredCapture", "declared_capture"]
