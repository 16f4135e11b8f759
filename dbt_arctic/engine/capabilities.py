"""What a catalog can do, tried with a few statements in a schema of its own, which is dropped afterwards.

It knows SQL and a connection, and neither dbt nor a list of catalogs: what a catalog can do is what it did.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.commit_conflicts import refuses_stale_commit
from dbt_arctic.engine.jdbc_driver import needs_catalog_driver
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.translate import translated
from dbt_arctic.errors import ArcticError

SCHEMA_PREFIX = "dbt_arctic_debug_"
CONCURRENT_COMMITS = "concurrent commits"


@dataclass(frozen=True)
class Capability:
    """One thing that was tried.

    :param works: ``None`` if it could not be tried.
    :param detail: what happened; if it does not work, the reason.
    :param instead: if it does not work, what that means and what to use instead.
    """

    name: str
    works: bool | None
    detail: str
    instead: str = ""


@dataclass(frozen=True)
class Capabilities:
    """What was tried, in the order of the attempts.

    :param catalog: Spark's name of the catalog.
    :param iceberg: the version of Iceberg in Spark.
    :param schema: the schema in which it was tried, which was dropped.
    """

    catalog: str
    iceberg: str
    tried: tuple[Capability, ...]
    schema: str

    def __getitem__(self, name: str) -> Capability:
        return next(one for one in self.tried if one.name == name)


INSTEAD = {
    "format v3": "Keyed tables need format version 3. Plain tables work without it. "
    "Use a catalog that stores version 3, such as postgres, rest or hive.",
    "row lineage": "Automatic models compare rows where they would use row ids.",
    "branches": "Incremental models and snapshots write to a branch first. Use another catalog.",
    CONCURRENT_COMMITS: "Two writers would overwrite each other's rows. Do not use this catalog; use "
    "postgres, rest or hive.",
    "views": "Keyed tables have a record instead of a view: ref() and merged() read their merged rows, and "
    "other programs do not find them by name. For models with materialized: view and clones, use "
    "materialized: table, or a catalog with views, such as postgres, rest or hive.",
    "rename": "A table cannot be replaced by a view or a keyed table of the same name. Drop it first.",
    "drop": "Tables stay until an administrator drops them.",
}
"""What it means if a capability is missing, and what to use instead, by its name."""


def probe(connection: Connection, catalog: str) -> Capabilities:
    """Try everything once: about 20 statements over two rows.

    A failed attempt is a result and not an error. The schema and what is in it are dropped in any case.

    :raises ArcticError: the schema or the table cannot be created or read, so nothing else can be tried.
    """
    schema = f"{SCHEMA_PREFIX}{uuid.uuid4().hex[:12]}"
    run = _Run(connection, f"`{catalog}`.`{schema}`")
    run(f"CREATE SCHEMA {run.schema}")
    try:
        tried = list(_tried(run, connection, catalog, schema))
        dropped = _attempt("drop", run.drop_table)
    finally:
        run.clean()
    iceberg = str(run(f"SELECT `{catalog}`.system.iceberg_version()")[0][0])
    return Capabilities(catalog, iceberg, (*tried, dropped), schema)


def _tried(run: _Run, connection: Connection, catalog: str, schema: str) -> Iterator[Capability]:
    yield _attempt("format v3", run.create_v3)
    if not run.is_created:
        run.create_table("2")  # its error is that of the catalog
    run(f"INSERT INTO {run.table} VALUES (1, 42)")
    read = run(f"SELECT answer FROM {run.table}")
    if read != [(42,)]:
        raise ArcticError(
            "The values read differ from the values written.", where=run.table, why=f"Read: {read}"
        )
    yield _attempt("row lineage", run.read_row_ids)
    yield _attempt("branches", lambda: run.publish_branch(catalog, schema))
    yield _commit_conflict(connection, catalog, schema, run)
    yield from _lost_answers(run, catalog)
    yield _attempt("views", run.create_view)
    yield _attempt("rename", run.rename_table)


class _Run:
    """The statements, and how far they have come."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self.schema = schema
        self.name = "probed"
        self.is_created = False
        self.is_dropped = False

    @property
    def table(self) -> str:
        return f"{self.schema}.{self.name}"

    def __call__(self, sql: str) -> list[tuple[object, ...]]:
        with contextlib.closing(self._connection.cursor()) as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def create_v3(self) -> str:
        self.create_table("3")
        found = str(self(f"SHOW TBLPROPERTIES {self.table} ('format-version')")[0][1])
        if found != "3":
            raise _NotDone(f"the catalog stores the table in format version {found}")
        return "a table can be created, written and read"

    def create_table(self, version: str) -> None:
        self(
            f"CREATE TABLE {self.table} (id BIGINT, answer INT) USING iceberg "
            f"TBLPROPERTIES ('format-version' = '{version}')"
        )
        self.is_created = True

    def read_row_ids(self) -> str:
        sql = f"SELECT _row_id, _last_updated_sequence_number FROM {self.table}"
        if None in self(sql)[0]:
            raise _NotDone("rows have no ids")
        return "rows have ids"

    def publish_branch(self, catalog: str, schema: str) -> str:
        self(f"ALTER TABLE {self.table} CREATE BRANCH probe")
        self(f"INSERT INTO {self.table}.branch_probe VALUES (2, 43)")
        self(f"CALL `{catalog}`.system.fast_forward('{schema}.{self.name}', 'main', 'probe')")
        count = self(f"SELECT count(*) FROM {self.table}")[0][0]
        if count != 2:
            raise _NotDone(f"after the branch was published, the number of rows is {count} instead of 2")
        return "a branch can be written and published"

    def create_view(self) -> str:
        view = f"{self.schema}.`probed_view`"
        self(f"CREATE VIEW {view} TBLPROPERTIES ('arctic.probe' = '1') AS SELECT id FROM {self.table}")
        if not self(f"SELECT id FROM {view}"):
            raise _NotDone("a view over a table with rows has none")
        self(f"DROP VIEW {view}")
        return "a view can be created, read and dropped"

    def rename_table(self) -> str:
        self(f"ALTER TABLE {self.table} RENAME TO {self.schema.rpartition('.')[2]}.`renamed`")
        self.name = "renamed"
        self(f"SELECT answer FROM {self.table}")
        return "a table can be renamed"

    def drop_table(self) -> str:
        self(f"DROP TABLE {self.table} PURGE")
        self.is_dropped = True
        return "a table can be dropped with its files"

    def clean(self) -> None:
        """Drop what is left, after a failure too. That failure is what the user has to see."""
        left = [f"DROP TABLE IF EXISTS {self.schema}.{name} PURGE" for name in ("probed", "renamed")]
        for statement in (
            f"DROP VIEW IF EXISTS {self.schema}.`probed_view`",
            *([] if self.is_dropped else left),
        ):
            with contextlib.suppress(ArcticError):
                self(statement)
        with contextlib.suppress(ArcticError):
            self(f"DROP SCHEMA IF EXISTS {self.schema}")


class _NotDone(Exception):
    """A statement succeeded without the effect that it should have."""


def _attempt(name: str, attempt: Callable[[], str]) -> Capability:
    try:
        return Capability(name, True, attempt())
    except _NotDone as error:
        reason = str(error)
    except ArcticError as error:
        reason = (error.why or error.what).partition("\n")[0]
    return Capability(name, False, reason, INSTEAD[name])


def _lost_answers(run: _Run, catalog: str) -> Iterator[Capability]:
    """Nothing, unless the catalog is in a database and a Spark of others opens it without our driver."""
    found = run(f"SET `spark.sql.catalog.{catalog}.uri`")
    if found and needs_catalog_driver(str(found[0][1])):
        yield Capability(
            "lost answers",
            False,
            "Spark opens the catalog's database with a driver that repeats commits",
            "If the answer to a commit is lost, Iceberg may undo commits of others or damage the table. Put "
            "engine/catalog_driver.jar of the Python package dbt_arctic on the class path of this Spark, and "
            "let the catalog's uri begin with jdbc:arctic: instead of jdbc:",
        )


def _commit_conflict(connection: Connection, catalog: str, schema: str, run: _Run) -> Capability:
    if not isinstance(connection, SessionConnection):
        reason = "only a Spark in dbt's own process can commit on an old version"
        return Capability(CONCURRENT_COMMITS, None, reason)

    def commit() -> str:
        with translated(f"two commits on one version of {run.table}", connection.process):
            refused = refuses_stale_commit(connection.session, catalog, schema, run.name)
        if not refused:
            raise _NotDone("the catalog accepted two commits on the same version of a table")
        return "a commit on an old version is refused"

    return _attempt(CONCURRENT_COMMITS, commit)
