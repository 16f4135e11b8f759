"""A replication slot of PostgreSQL: which changes it holds, and how far they were taken.

A slot keeps the write-ahead log from a position on. Reading does not move this position, so changes are
there until ``advance`` confirms that they are stored elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dbt_arctic.databases.address import Address
from dbt_arctic.databases.api import TableName, TableVersion
from dbt_arctic.databases.change_log import ChangeBatch, LogState
from dbt_arctic.databases.client import Run, parts_of
from dbt_arctic.databases.logged_changes import logged_changes
from dbt_arctic.databases.pgoutput import Decoder
from dbt_arctic.databases.postgres import SESSION, connect
from dbt_arctic.databases.postgres_types import PostgresDialect
from dbt_arctic.databases.postgres_values import ValueType
from dbt_arctic.databases.postgres_versions import read_versions
from dbt_arctic.errors import ArcticError, ConcurrentRun, ConfigError, VersionUnavailable

_IN_USE, _LOCKED, _NOT_ALLOWED, _UNDEFINED = "55006", "55P03", "42501", "42704"
_LOCK = "hashtextextended('dbt-arctic ' || %s, 0)"
_SESSION = (
    *SESSION,
    "SET extra_float_digits = 3",  # before PostgreSQL 12, fewer leave out digits
    # Another run that takes changes of the same slot is waited for.
    "SET lock_timeout = '10min'",
)
_quoted = PostgresDialect().quote
_ORIGIN = "'0/0'::pg_lsn"
# PostgreSQL 11 has no columns wal_status and two_phase. Positions after a failover are those of another
# timeline.
_STATE = f"""
SELECT s.plugin, s.slot_type, to_jsonb(s) ->> 'two_phase', to_jsonb(s) ->> 'wal_status',
  s.confirmed_flush_lsn - {_ORIGIN},
  pg_current_wal_flush_lsn() - {_ORIGIN}, pg_current_wal_flush_lsn() - s.restart_lsn,
  (SELECT system_identifier FROM pg_control_system()) || '.'
  || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8), current_database()
FROM pg_catalog.pg_replication_slots s
WHERE s.slot_name = %s AND s.database = current_database()
"""
_PEEK = f"""
SELECT lsn - {_ORIGIN}, data
FROM pg_logical_slot_peek_binary_changes(
  %s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s)
"""
_TYPES = """
SELECT t.oid, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE 0 END,
  CASE WHEN t.typcategory = 'A' AND t.typtype <> 'd' THEN t.typelem ELSE 0 END, t.typdelim
FROM pg_catalog.pg_type t
"""
_COMPLETE = "p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate"
_FILTERED = "coalesce(to_jsonb(t) ->> 'rowfilter', '') <> ''"
_PUBLISHED = f"""
SELECT t.schemaname, t.tablename
FROM pg_catalog.pg_publication_tables t JOIN pg_catalog.pg_publication p ON p.pubname = t.pubname
WHERE p.pubname = %s AND {_COMPLETE} AND NOT {_FILTERED}
"""
_OIDS = """
SELECT t.schemaname, t.tablename, c.oid
FROM pg_catalog.pg_publication_tables t
JOIN pg_catalog.pg_namespace n ON n.nspname = t.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE t.pubname = %s
"""
_PUBLICATION = f"SELECT {_COMPLETE} FROM pg_catalog.pg_publication p WHERE p.pubname = %s"
_IN_PUBLICATION = f"""
SELECT {_FILTERED} FROM pg_catalog.pg_publication_tables t
WHERE t.pubname = %s AND t.schemaname = %s AND t.tablename = %s
"""
_IS_PARTITIONED = """
SELECT c.relkind = 'p' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""


_NAMES = """
SELECT c.oid, n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%s::oid[])
"""


class _NotPublished(NamedTuple):
    """What is wrong with a publication, and SQL that corrects it."""

    what: str
    statement: str


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

    def state(self) -> LogState:
        """The slot as it is now.

        :raises ConfigError: there is no such slot, or it has another output plugin, or ``two_phase``.
        :raises VersionUnavailable: the server has removed the log that the slot needs.
        """
        found = self.run(_STATE, (self.name,))
        if not found or found[0][0] != "pgoutput" or found[0][1] != "logical":
            what = f"there is no replication slot {self.name} in the database"
            plugin = f"the replication slot {self.name} does not have the output plugin pgoutput"
            raise ConfigError(
                plugin if found else what,
                where=self.where,
                why="a slot keeps the changes of the database until they are read",
                fix=f"create it in the database, once, after the publication: {self.creation}",
            )
        ((_, _, two_phase, status, confirmed, current, kept, system, database),) = found
        if two_phase == "true":
            raise ConfigError(
                f"the replication slot {self.name} was created with two_phase",
                where=self.where,
                why="it sends the changes of a prepared transaction before they are committed",
                fix=f"{_again(self.name)}, and build the models of the source again: dbt run --full-refresh",
            )
        if status == "lost" or confirmed is None:
            raise VersionUnavailable(
                f"the replication slot {self.name} has lost changes",
                where=self.where,
                why="the server has removed a part of the log that was not read "
                "(max_slot_wal_keep_size), or the slot was invalidated",
                fix=f"{_again(self.name)}, and build the models of the source again: dbt run --full-refresh",
            )
        identity, position = f"{system}/{database}/{self.name}", int(confirmed)
        return LogState(identity, position, int(current), position, int(kept or 0))

    def shown(self, position: int) -> str:
        """A position as PostgreSQL writes it."""
        return _position(position)

    def why_removed(self, end: int, oldest: int) -> str:
        """Why the slot begins after a position, as a part of an error."""
        return (
            f"the slot was moved from {end} to {oldest} by another reader, or it was dropped and created "
            "again. Each target needs a slot of its own"
        )

    def mark(self, position: int) -> str:
        """Empty: the identity of the slot says which log it is."""
        return ""

    @property
    def creation(self) -> str:
        """SQL that creates the slot."""
        return _creation(self.name)

    def wait_for_prepared(self) -> None:
        """Nothing: the slot sends the rows of a prepared transaction when it commits."""

    def write_visible(self) -> None:
        """Let the log have each change on disk that a transaction can see, also of asynchronous commits.

        A commit that is waited for writes all before it. It needs something to commit.
        """
        self.run("SET synchronous_commit = local")
        self.run("SELECT pg_logical_emit_message(true, 'dbt-arctic', '')")

    def followed(self) -> frozenset[TableName]:
        """The tables of which the slot sends all changes."""
        return frozenset(TableName(*row) for row in self.run(_PUBLISHED, (self.publication,)))

    def versions(self) -> Mapping[TableName, TableVersion]:
        """The columns of the published tables as they are now."""
        tables = {int(oid): TableName(*name) for *name, oid in self.run(_OIDS, (self.publication,))}
        return read_versions(self.run, tables, self.publication)

    def not_followed(self, table: TableName) -> ConfigError:
        """The error if the slot does not send all changes of a table."""
        missing = self._missing(table)
        return ConfigError(
            missing.what,
            where=self.where,
            why="a replication slot sends only what is published",
            fix=f"run this in the database as the owner of the table: {missing.statement}",
        )

    def _missing(self, table: TableName) -> _NotPublished:
        name, publication = ".".join(map(_quoted, table)), _quoted(self.publication)
        found = self.run(_PUBLICATION, (self.publication,))
        if not found:
            return _NotPublished(
                f"there is no publication {self.publication} in the database",
                f"CREATE PUBLICATION {publication} FOR TABLE {name}",
            )
        if not found[0][0]:
            return _NotPublished(
                f"the publication {self.publication} leaves out kinds of changes",
                f"ALTER PUBLICATION {publication} SET (publish = 'insert, update, delete, truncate')",
            )
        member = self.run(_IN_PUBLICATION, (self.publication, *table))
        if member and member[0][0]:
            return _NotPublished(
                f"the publication {self.publication} leaves out rows of the table {table.dotted}",
                f"ALTER PUBLICATION {publication} DROP TABLE {name}; "
                f"ALTER PUBLICATION {publication} ADD TABLE {name}",
            )
        if (True,) in self.run(_IS_PARTITIONED, table):
            return _NotPublished(
                f"the publication {self.publication} has the partitions of {table.dotted}, and not the table",
                f"ALTER PUBLICATION {publication} SET (publish_via_partition_root = true), and ADD TABLE "
                f"{name} if the table is not in it",
            )
        return _NotPublished(
            f"the table {table.dotted} is not in the publication {self.publication}",
            f"ALTER PUBLICATION {publication} ADD TABLE {name}",
        )

    def changes(self, since: int, until: int, limit: int) -> ChangeBatch:
        """The changes that were not confirmed, in the order of the commits.

        :param since: has no effect. The slot knows where it begins, which is not later.
        :param until: of all transactions that committed before this position.
        :param limit: no further transaction after so many messages. Each transaction has two, in addition to
            one for each change.
        :raises ConfigError: the texts of the database are not in UTF-8.
        """
        decoder = Decoder()
        rows = self.run(_PEEK, (self.name, _position(until), limit, _quoted(self.publication)))
        try:
            messages = [(int(position), decoder.decode(bytes(data))) for position, data in rows]
        except UnicodeDecodeError as error:
            raise ConfigError(
                "a value in the log of the database is not valid UTF-8",
                where=self.where,
                why=f"{error}; the database has the encoding SQL_ASCII",
                fix="leave the table out of the publication, or create the database again with an encoding",
            ) from error
        types, names = (self._value_types(), self._names(list(decoder.tables))) if rows else ({}, {})
        changes, end = logged_changes(messages, types, names)
        is_all = len(rows) < limit
        return ChangeBatch(changes, max(end, until) if is_all else end, is_all)

    def _names(self, tables: list[int]) -> Mapping[int, str]:
        """What tables are called now, by oid. A table may have had another name in between."""
        return {int(oid): f"{schema}.{name}" for oid, schema, name in self.run(_NAMES, (tables,))}

    def _value_types(self) -> Mapping[int, ValueType]:
        """The types of the database by oid."""
        rows = self.run(_TYPES)
        below = {int(oid): int(base) for oid, base, *_ in rows}
        elements = {int(oid): (int(element), str(delimiter)) for oid, _, element, delimiter in rows}

        def base_of(oid: int) -> int:
            while below.get(oid):
                oid = below[oid]
            return oid

        bases = {oid: base_of(oid) for oid in below}
        found = {}
        for oid, base in bases.items():
            element, delimiter = elements.get(base, (0, ","))
            # Arrays whose elements are arrays, through a domain, are read as text from the table as well.
            item = base_of(element)
            found[oid] = ValueType(base, 0 if elements.get(item, (0,))[0] else item, delimiter)
        return found

    def advance(self, position: int) -> None:
        """Confirm that all changes up to a position are stored. The server may forget them."""
        self.run("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self.name, _position(position)))

    def lock(self) -> None:
        """Wait until no other connection has locked the slot, and lock it as long as this one is open.

        :raises ConcurrentRun: another connection has kept it locked for long.
        """
        self.run(f"SELECT pg_advisory_lock({_LOCK})", (self.name,))

    def try_lock(self) -> bool:
        """Lock the slot like ``lock``, unless another connection has."""
        return bool(self.run(f"SELECT pg_try_advisory_lock({_LOCK})", (self.name,))[0][0])


@contextlib.contextmanager
def open_slot(address: Address, name: str, publication: str, where: str) -> Iterator[PostgresSlot]:
    """Open a slot of a database.

    :param where: what declares it, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: psycopg is not installed.
    """
    connection = connect(address, where)
    run = connection.run_explained(lambda error: _explained(error, name, address.user, where))
    with contextlib.closing(connection):
        for statement in _SESSION:
            run(statement)
        yield PostgresSlot(run, name, publication, where)


def _explained(error: Exception, slot: str, user: str, where: str) -> ArcticError | None:
    """The error of a statement on a slot; ``None`` if it has nothing to do with slots."""
    code, why = getattr(error, "sqlstate", None), " ".join(str(error).split())
    if code in (_IN_USE, _LOCKED):
        return ConcurrentRun(
            f"the replication slot {slot} is being read",
            where=where,
            why=f"another run or program reads its changes: {why}",
            fix="run again when it has ended; nothing was written. Each target needs a slot of its own",
        )
    if code == _NOT_ALLOWED:
        return ConfigError(
            f"the user {user} may not read the replication slot {slot}",
            where=where,
            why=why,
            fix=f"run this in the database: ALTER ROLE {_quoted(user)} REPLICATION",
        )
    if code == _UNDEFINED:  # a slot reads the catalog as it was at the time of each change
        return VersionUnavailable(
            f"the replication slot {slot} has changes from a time when its publication did not exist",
            where=where,
            why=f"the publication was created after the slot, or created again: {why}",
            fix=f"{_again(slot)}, and build the models of the source again: dbt run --full-refresh",
        )
    return None


def _position(number: int) -> str:
    """A position as PostgreSQL writes it.

    >>> _position(2**32 + 255)
    '1/FF'
    """
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def capture_statements(slot: str, tables: Sequence[str]) -> list[str]:
    """SQL with which the owner of tables lets their changes be captured: a publication, and then the slot.

    :param tables: as the setting ``table`` has them.
    """
    names = [".".join(map(_quoted, parts_of(table, "publication"))) for table in tables]
    return [f"CREATE PUBLICATION {_quoted(slot)} FOR TABLE {', '.join(names)}", _creation(slot)]


def _again(slot: str) -> str:
    name = slot.replace("'", "''")
    return f"run this in the database: SELECT pg_drop_replication_slot('{name}'); {_creation(slot)}"


def _creation(slot: str) -> str:
    name = slot.replace("'", "''")
    return f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"


__all__ = ["PostgresSlot", "capture_statements", "open_slot"]
