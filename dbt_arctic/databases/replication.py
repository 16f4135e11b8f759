"""A replication slot of PostgreSQL: which changes it holds, and how far they were taken.

A slot keeps the write-ahead log from a position on. Reading does not move this position, so changes are
there until ``advance`` confirms that they are stored elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_arctic.databases.address import Address
from dbt_arctic.databases.api import ChangeBatch, SlotState, TableName
from dbt_arctic.databases.client import Run, parts_of
from dbt_arctic.databases.logged_changes import logged_changes
from dbt_arctic.databases.pgoutput import Decoder
from dbt_arctic.databases.postgres import connect
from dbt_arctic.databases.postgres_values import ValueType
from dbt_arctic.errors import ConfigError, VersionUnavailable

_SESSION = (
    # Values are sent in the formats of the session.
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO'",
    "SET bytea_output = 'hex'",
    "SET lc_monetary = 'C'",
    "SET extra_float_digits = 1",
    # Another run that takes changes of the same slot is waited for.
    "SET lock_timeout = '10min'",
)
_ORIGIN = "'0/0'::pg_lsn"
_STATE = f"""
SELECT s.plugin, s.slot_type, s.wal_status, s.confirmed_flush_lsn - {_ORIGIN},
  pg_current_wal_flush_lsn() - {_ORIGIN}, pg_current_wal_flush_lsn() - s.restart_lsn,
  (SELECT system_identifier FROM pg_control_system()), current_database()
FROM pg_catalog.pg_replication_slots s
WHERE s.slot_name = %s AND s.database = current_database()
"""
_PEEK = f"""
SELECT lsn - {_ORIGIN}, data
FROM pg_logical_slot_peek_binary_changes(
  %s, {_ORIGIN} + %s::numeric, %s, 'proto_version', '1', 'publication_names', %s)
"""
_TYPES = """
SELECT t.oid, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, t.typcategory, t.typelem
FROM pg_catalog.pg_type t
"""
_PUBLISHED = "SELECT schemaname, tablename FROM pg_catalog.pg_publication_tables WHERE pubname = %s"
_PUBLICATION = "SELECT 1 FROM pg_catalog.pg_publication WHERE pubname = %s"


@dataclass(frozen=True)
class PostgresSlot:
    """A slot, through a connection.

    :param publication: it says which changes the slot sends.
    :param where: what declares the slot, for errors.
    """

    run: Run
    name: str
    publication: str
    where: str

    def state(self) -> SlotState:
        """The slot as it is now.

        :raises ConfigError: there is no such slot, or it has another output plugin.
        :raises VersionUnavailable: the server has removed the log that the slot needs.
        """
        found = self.run(_STATE, (self.name,))
        if not found or found[0][0] != "pgoutput" or found[0][1] != "logical":
            what = f"there is no replication slot {self.name} in the database"
            plugin = f"the replication slot {self.name} does not have the output plugin pgoutput"
            raise ConfigError(
                plugin if found else what,
                where=self.where,
                why="a slot keeps the changes of the database until they were read",
                fix=f"create it in the database, once, after the publication: {self.creation}",
            )
        ((_, _, status, confirmed, current, kept, system, database),) = found
        if status == "lost" or confirmed is None:
            raise VersionUnavailable(
                f"the replication slot {self.name} has lost changes",
                where=self.where,
                why="the server has removed a part of the log that was not read "
                "(max_slot_wal_keep_size), or the slot was invalidated",
                fix=f"drop the slot, create it again ({self.creation}), and build the models of the source "
                "again: dbt run --full-refresh",
            )
        return SlotState(f"{system}/{database}/{self.name}", int(confirmed), int(current), int(kept or 0))

    @property
    def creation(self) -> str:
        """SQL that creates the slot."""
        return _creation(self.name)

    def published(self) -> frozenset[TableName]:
        """The tables whose changes the slot sends."""
        return frozenset(TableName(*row) for row in self.run(_PUBLISHED, (self.publication,)))

    def not_published(self, table: TableName) -> ConfigError:
        """The error if the slot does not send the changes of a table."""
        name, publication = ".".join(map(_quoted, table)), _quoted(self.publication)
        if self.run(_PUBLICATION, (self.publication,)):
            what = f"the table {table.dotted} is not in the publication {self.publication}"
            statement = f"ALTER PUBLICATION {publication} ADD TABLE {name}"
        else:
            what = f"there is no publication {self.publication} in the database"
            statement = f"CREATE PUBLICATION {publication} FOR TABLE {name}"
        return ConfigError(
            what,
            where=self.where,
            why="a replication slot sends only the changes of published tables",
            fix=f"run this in the database as the owner of the table: {statement}",
        )

    def changes(self, until: int, limit: int) -> ChangeBatch:
        """The changes that were not confirmed, in the order of the commits.

        :param until: of all transactions that committed before this position.
        :param limit: no further transaction after so many messages. Each transaction has two, in addition to
            one for each change.
        """
        decoder = Decoder()
        rows = self.run(_PEEK, (self.name, until, limit, _quoted(self.publication)))
        messages = ((int(position), decoder.decode(bytes(data))) for position, data in rows)
        changes = list(logged_changes(messages, self._value_types() if rows else {}))
        return ChangeBatch(changes, len(rows) < limit)

    def _value_types(self) -> Mapping[int, ValueType]:
        """The types of the database by oid."""
        rows = self.run(_TYPES)
        elements = {int(oid): int(element) for oid, _, category, element in rows if category == "A"}
        return {int(oid): ValueType(int(base), elements.get(int(base), 0)) for oid, base, _, _ in rows}

    def advance(self, position: int) -> None:
        """Confirm that all changes up to a position are stored. The server may forget them."""
        self.run(f"SELECT pg_replication_slot_advance(%s, {_ORIGIN} + %s::numeric)", (self.name, position))

    def lock(self) -> None:
        """Wait until no other connection has locked the slot, and lock it as long as this one is open."""
        self.run("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"dbt-arctic {self.name}",))


@contextlib.contextmanager
def open_slot(address: Address, name: str, publication: str, where: str) -> Iterator[PostgresSlot]:
    """Open a slot of a database.

    :param where: what declares it, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: psycopg is not installed.
    """
    connection = connect(address, where)

    def run(text: str, values: Sequence[Any] | None = None, /) -> list[Any]:
        with connection.failures.explained("read"):
            return connection.run(text, values)

    with contextlib.closing(connection):
        for statement in _SESSION:
            run(statement)
        yield PostgresSlot(run, name, publication, where)


def capture_statements(slot: str, tables: Sequence[str]) -> list[str]:
    """SQL with which the owner of tables lets their changes be captured: a publication, and then the slot.

    :param tables: as the setting ``table`` has them.
    """
    names = [".".join(map(_quoted, parts_of(table, "publication"))) for table in tables]
    return [f"CREATE PUBLICATION {_quoted(slot)} FOR TABLE {', '.join(names)}", _creation(slot)]


def _creation(slot: str) -> str:
    name = slot.replace("'", "''")
    return f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


__all__ = ["PostgresSlot", "capture_statements", "open_slot"]
