"""dbt sources that are captured from the log of a database: from a declaration to settings and the log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dbt_arctic.adapter.database_sources import address_of, refuse_password
from dbt_arctic.adapter.external_sources import declared_source
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.databases.address import Address, Kind
from dbt_arctic.databases.api import Table, TableName
from dbt_arctic.databases.change_log import ChangeLog
from dbt_arctic.databases.client import parts_of
from dbt_arctic.databases.mariadb import MariaTable
from dbt_arctic.databases.mariadb_log import open_log
from dbt_arctic.databases.postgres import PostgresTable
from dbt_arctic.databases.replication_slot import open_slot
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.sources.capture_preview import CapturedTable, LogContents
from dbt_arctic.sources.capture_settings import (
    CaptureSource,
    FollowedDatabase,
    parse_capture,
    upstream_of,
)
from dbt_arctic.sources.capture_table import capture_name

_KINDS: Mapping[FollowedDatabase, Kind] = {"postgres": "postgresql", "mariadb": "mariadb"}
"""The kind of the URL, by the value of ``from``."""


@dataclass(frozen=True)
class DeclaredCapture:
    """A declared source: its settings, its table in the database, and its log.

    :param together: the tables that are captured together from a log without a slot.
    """

    source: CaptureSource
    table: PostgresTable | MariaTable
    where: str
    together: tuple[TableName, ...] = ()

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
        logs: MutableMapping[Name, LogContents] | None = None,
    ) -> CapturedTable:
        """The table, for looking at what models have not read.

        :param logs: as for ``CapturedTable``.
        """
        name, place, shared = self.name(credentials), self.table.place, {} if logs is None else logs
        return CapturedTable(
            catalog, self.source, name, place, lambda: self.open_log(name), self._describe, shared
        )

    def _describe(self) -> Table:
        with contextlib.closing(self.table.begin()) as transaction:
            return transaction.table

    def open_log(self, name: Name) -> AbstractContextManager[ChangeLog]:
        """Open the log.

        :param name: of the capture table.
        """
        address = self.table.address
        if self.source.kind == "postgres":
            return open_slot(address, self.source.slot, self.source.publication, self.where)
        return open_log(address, self.together, name.dotted, self.where)


def declared_capture(
    declared: Mapping[str, Any], logins: Mapping[str, Mapping[str, str]], nodes: Iterable[Any] = ()
) -> DeclaredCapture:
    """The settings of a declared source.

    :param logins: by name of a connection: ``url``, ``user`` and ``password`` of the profile.
    :param nodes: all sources of the project, of which some are captured together. Only a capture needs them.
    :raises ConfigError: a setting is unknown, missing or wrong, or a secret.
    """
    refuse_password(declared)
    where = declared["where"]
    source = parse_capture(declared["name"], declared["settings"], where)
    address = address_of(declared, logins)
    if address.kind != _KINDS[source.kind]:
        raise ConfigError(
            f"the source {source.name} has from: {source.kind} and the url of another database",
            where=where,
            why=f"the url is that of a {address.kind}",
            fix=f"use from: {next(kind for kind, one in _KINDS.items() if one == address.kind)}",
        )
    name = source.table.table
    if source.kind == "postgres":
        return DeclaredCapture(source, PostgresTable(address, name, where, source.publication), where)
    table = MariaTable(address, name, where, is_followed=True)
    return DeclaredCapture(source, table, where, _together(declared, nodes, address, where))


def _together(
    declared: Mapping[str, Any], nodes: Iterable[Any], address: Address, where: str
) -> tuple[TableName, ...]:
    """The tables that are declared in the same source, which share a capture table."""
    found = set()
    for one in (declared, *filter(None, map(declared_source, nodes))):
        source, _, table = str(one["name"]).partition(".")
        if source == str(declared["name"]).partition(".")[0] and one["settings"]["from"] == "mariadb":
            *schema, name = parts_of(str(one["settings"].get("table") or table), where)
            found.add(TableName(schema[0] if schema else address.database, name))
    return tuple(sorted(found))


__all__ = ["DeclaredCapture", "declared_capture"]
