"""PostgreSQL as a database, through the package psycopg."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_arctic.databases import sql
from dbt_arctic.databases.address import Address
from dbt_arctic.databases.api import (
    Column,
    JdbcRead,
    ListedTable,
    RowQuery,
    SchemaReader,
    Table,
    TableName,
    UnseenTransactions,
)
from dbt_arctic.databases.client import (
    ClientTransaction,
    Connection,
    Failures,
    Run,
    package_missing,
    parts_of,
)
from dbt_arctic.databases.postgres_types import PostgresDialect, postgres_type
from dbt_arctic.databases.postgres_versions import read_versions
from dbt_arctic.errors import ConfigError, UnknownRelation

DRIVER = "org.postgresql.Driver"
_TIMEOUT_S = 10
_DEFAULT_SCHEMA = "public"
_IDS = 2**32 - 1
"""The bits of a transaction's id in the log."""
_FETCHED = "10000"
"""How many rows the driver fetches at a time. Without it, it fetches all rows into memory."""
SESSION = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO'",
    "SET IntervalStyle = 'postgres'",
    "SET bytea_output = 'hex'",
    "SET lc_monetary = 'C'",
    # A statement of the database's owner may wait for this transaction, and this connection for that one.
    "SET lock_timeout = '30s'",
)
"""Of each connection that reads rows. Texts of values depend on all but the last one."""
_BEFORE = (
    *SESSION,
    # The transaction waits while Spark reads.
    "SET idle_in_transaction_session_timeout = 0",
)
_ALL_ROWS = "SET row_security = off"
"""A statement that would leave out rows is then an error."""
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_CLOCK = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')"
_KIND = """
SELECT c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
_HIDES_ROWS = "SELECT row_security_active(%s::oid)"
_FIND = """
SELECT c.oid, c.reltuples, current_database()
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
# Partitions are parts of a table, and tables of extensions have no data of the user.
_LIST = """
SELECT n.nspname, c.relname, c.reltuples
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  AND NOT EXISTS (
    SELECT 1 FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1, 2
"""
# The type of a domain is that of its base.
_COLUMNS = """
WITH RECURSIVE types AS (
  SELECT a.attnum, a.attname, a.attnotnull, a.atttypid AS type, a.atttypmod AS modifier,
    -- PostgreSQL 11 does not have it.
    coalesce(to_jsonb(a) ->> 'attgenerated', '') <> '' AS generated
  FROM pg_catalog.pg_attribute a
  WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT s.attnum, s.attname, s.attnotnull OR t.typnotnull, t.typbasetype,
    CASE WHEN s.modifier = -1 THEN t.typtypmod ELSE s.modifier END, s.generated
  FROM types s JOIN pg_catalog.pg_type t ON t.oid = s.type AND t.typtype = 'd'
)
SELECT s.attname, pg_catalog.format_type(s.type, s.modifier), s.attnotnull, s.generated
FROM types s JOIN pg_catalog.pg_type t ON t.oid = s.type AND t.typtype <> 'd'
ORDER BY s.attnum
"""
_KEY = """
SELECT a.attname
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indisprimary
ORDER BY k.place
"""
# A partition logs old values by its own identity, whatever that of its table is.
_IDENTITY = """
WITH RECURSIVE parts AS (
  SELECT %s::oid AS oid
  UNION ALL
  SELECT i.inhrelid FROM parts p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid
  JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition
)
SELECT n.nspname, c.relname, c.relkind = 'p', c.relreplident = 'f', ARRAY(
  SELECT a.attname::text FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
  WHERE i.indrelid = c.oid AND CASE WHEN c.relreplident = 'i' THEN i.indisreplident
    ELSE c.relreplident = 'd' AND i.indisprimary END
  ORDER BY array_position(i.indkey::int2[], a.attnum))
FROM parts JOIN pg_catalog.pg_class c ON c.oid = parts.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
"""


def connect(address: Address, where: str) -> Connection:
    """Connect to a database.

    :param where: what declares it, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise package_missing("psycopg", "postgres", "PostgreSQL", where) from error
    failures = Failures("PostgreSQL", address.shown, where, psycopg.Error)
    options: dict[str, Any] = dict(address.options)
    with failures.explained("reached"):
        connection: Any = psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=address.database,
            user=address.user or None,
            password=address.password or None,
            connect_timeout=_TIMEOUT_S,
            application_name="dbt-arctic",
            client_encoding="utf8",
            autocommit=True,
            **options,
        )

    def run(text: str, values: Sequence[Any] | None = None, /) -> list[Any]:
        cursor = connection.execute(text, values)
        return list(cursor.fetchall()) if cursor.description else []

    return Connection(failures, run, connection.close)


@dataclass(frozen=True)
class PostgresSchemaReader:
    """The tables of a PostgreSQL database, read in a transaction.

    :param where: what declares the database, for errors.
    """

    run: Run
    address: Address
    where: str

    def tables(self) -> list[ListedTable]:
        """The tables that this user may read, by name, without views and partitions."""
        return [
            ListedTable(schema, name, int(rows) if rows >= 0 else None)
            for schema, name, rows in self.run(_LIST)
        ]

    def describe(self, name: TableName) -> Table:
        """The columns and the key of a table, which may be a view."""
        found = self.run(_FIND, name)
        if not found:
            raise UnknownRelation(
                f"there is no table {'.'.join(name)} in the database {self.address.database} "
                f"on {self.address.shown}",
                where=self.where,
                why="it does not exist, or this user may not see it",
                fix="correct table in the source's meta.arctic, as schema.name",
            )
        ((oid, rows, database),) = found
        columns = tuple(
            Column(column, kind, *postgres_type(kind), not is_required, is_generated=is_generated)
            for column, kind, is_required, is_generated in self.run(_COLUMNS, (oid,))
        )
        key = tuple(column for (column,) in self.run(_KEY, (oid,)))
        everything = tuple(column.name for column in columns)
        identities = {
            TableName(schema, part): everything if is_full else tuple(logged)
            for schema, part, is_partitioned, is_full, logged in self.run(_IDENTITY, (oid,))
            if not is_partitioned
        }
        # A table without partitions has no rows, and those of later ones are known then.
        identity = tuple(
            column for column in everything if all(column in logged for logged in identities.values())
        )
        is_whole = set(identities) == {name}
        table = Table(f"postgresql/{database}/{oid}", columns, key, max(int(rows), 0), identity)
        return table if is_whole else table._replace(partitions=identities)


@contextlib.contextmanager
def read_schema(address: Address, where: str) -> Iterator[SchemaReader]:
    """Read the tables of a database in a transaction.

    :param where: what declares the database, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: psycopg is not installed.
    """
    connection = connect(address, where)
    with contextlib.closing(connection), connection.reading((*_BEFORE, _BEGIN)) as run:
        yield PostgresSchemaReader(run, address, where)


@dataclass(frozen=True)
class PostgresTable:
    """A table of PostgreSQL.

    :param name: of the table, with or without its schema.
    :param where: what declares it, for errors.
    :param publication: the publication of a table that is followed by its log.
    """

    address: Address
    name: str
    where: str
    publication: str = ""

    def begin(self) -> ClientTransaction:
        """Begin a transaction that reads the table."""
        connection = connect(self.address, self.where)
        with connection.reading(_BEFORE) as run:
            kinds = run(_KIND, self.place) if self.publication else []
            # The log has the rows of tables that inherit from this one as their own.
            is_alone = bool(kinds) and str(kinds[0][0]) == "r"
            name = f"ONLY {self._quoted}" if is_alone else self._quoted
            if self.publication:
                run(_ALL_ROWS)
            run(_BEGIN)
            if kinds:
                # ALTER TABLE and TRUNCATE write a table again so that transactions from before find no rows.
                # A lock that comes before the transaction's snapshot keeps them away.
                run(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
            table = PostgresSchemaReader(run, self.address, self.where).describe(self.place)
            if self.publication:
                oid = int(table.table_id.rpartition("/")[2])
                self._require_all_rows(run, oid)
                version = read_versions(run, {oid: self.place}, self.publication).get(self.place)
                table = table._replace(version=version, is_alone=is_alone)

        def others() -> UnseenTransactions:
            ((beginning,),) = run(f"SELECT txid_snapshot_xmax(txid_current_snapshot()) & {_IDS}")
            found = run(f"SELECT x & {_IDS} FROM txid_snapshot_xip(txid_current_snapshot()) x")
            return UnseenTransactions([int(one) for (one,) in found], int(beginning))

        def export() -> str:
            (is_standby,) = run("SELECT pg_is_in_recovery()")[0]
            return "" if is_standby else str(run("SELECT pg_export_snapshot()")[0][0])

        return ClientTransaction(PostgresDialect(), connection, table, name, export, others, _CLOCK)

    def _require_all_rows(self, run: Run, oid: int) -> None:
        if run(_HIDES_ROWS, (oid,)) == [(True,)]:
            user = PostgresDialect().quote(self.address.user)
            raise ConfigError(
                f"row-level security hides rows of the table {self.place.dotted} from the user "
                f"{self.address.user}",
                where=self.where,
                why="the log has the changes of all rows, so the first run must read them all",
                fix=f"run this in the database: ALTER ROLE {user} BYPASSRLS; or read the table as its owner",
            )

    def read(self, query: RowQuery) -> JdbcRead:
        """How Spark reads rows of the table, in the transaction's snapshot if the query has one."""
        options = {
            "url": self.address.jdbc_url("postgresql", ApplicationName="dbt-arctic"),
            "driver": DRIVER,
            "dbtable": sql.rows(
                PostgresDialect(), query, f"ONLY {self._quoted}" if query.is_alone else self._quoted
            ),
            "fetchsize": _FETCHED,
            # The database could compare in another way than Spark does.
            "pushDownPredicate": "false",
            "user": self.address.user,
            "password": self.address.password,
        }
        statements = [*SESSION, *([_ALL_ROWS] if self.publication else [])]
        if query.snapshot:
            name = query.snapshot.replace("'", "''")
            # Before any other statement of the transaction.
            statements[:0] = [
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
                f"SET TRANSACTION SNAPSHOT '{name}'",
            ]
        options["sessionInitStatement"] = "; ".join(statements)
        return JdbcRead({key: value for key, value in options.items() if value}, sql.predicates(query.ranges))

    @property
    def place(self) -> TableName:
        """The schema and the name of the table."""
        *schema, name = parts_of(self.name, self.where)
        return TableName(schema[0] if schema else _DEFAULT_SCHEMA, name)

    @property
    def _quoted(self) -> str:
        return ".".join(map(PostgresDialect().quote, self.place))


__all__ = ["DRIVER", "SESSION", "PostgresSchemaReader", "PostgresTable", "connect", "read_schema"]
