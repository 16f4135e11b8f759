"""What other programs do between and during the runs of a case: ``adopt``, ``plan``, an upsert, Ctrl-C."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.warehouse import catalog_file, prepare_warehouse
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.layout import partition_field
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.adopt import adopt_table, plan_adoption
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.context import Context
from tests.dbt.random.columns import Row, Table, key_of, listed
from tests.dbt.random.oracle import carried_over, has_other_key_types, rebuilds
from tests.dbt.random.project import Batch, Column, Model, Round
from tests.dbt.random.stored_values import NotExact, TooLarge, keep, stored_type

WRITES_A_KEY = ("unique_key", "buckets", "partition_by", "sequence_by")
"""Settings of the process that upserts during a full refresh."""


@dataclass(frozen=True)
class LateUpsert:
    """An upsert of another process into a table that is refreshed in full.

    :param early: whether it lands right before the first commit to the new change table, after which the
        build looks for rows to carry over; otherwise right before the new table is shown.
    """

    model: Model
    batch: Batch
    early: bool

    @property
    def right_before(self) -> str:
        """The statement before which it lands, as a regular expression."""
        name = self.model.name
        return (
            rf"INSERT INTO \S+\.`?{name}__change_\d+`?"
            if self.early
            else rf"CREATE OR REPLACE VIEW \S+\.`?{name}`? \("
        )


@dataclass
class OtherPrograms:
    """Other programs, with a session of their own.

    :ivar late: by model, an upsert that lands during its full refresh.
    """

    connection: SessionConnection
    catalog: EmbeddedCatalog
    schema: str
    late: dict[str, LateUpsert] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        def run(step: str, sql: str, table: object = None) -> int | None:
            with closing(self.connection.cursor()) as cursor:
                cursor.execute(sql)
                return cursor.known_rows

        def query(sql: str) -> list[tuple[object, ...]]:
            with closing(self.connection.cursor()) as cursor:
                cursor.execute(sql)
                return cursor.fetchall()

        return Context(self.catalog, run, self.connection.query_schema, query, run_id="another program")

    def adopt(self, model: Model, table: Table) -> str:
        """``dbt-arctic adopt`` of a model's table. Returns what is wrong; empty if nothing is."""
        code = "" if is_unique(model, table) else "AR-304" if _repeats(model, table) else "AR-303"
        name = Name("lake", self.schema, model.name)
        try:
            adopt_table(self.context, plan_adoption(self.context, name, model.keys))
        except ArcticError as error:
            return "" if error.code == code else f"adopt is refused: {error}"
        return f"adopt is to be refused with {code}" if code else ""

    def evolve(self, model: Model) -> None:
        """Leave all files of a partitioned table with another partitioning than its current one."""
        name, table = Name("lake", self.schema, model.name), self.catalog.load_table(self.schema, model.name)
        # Iceberg looks columns up case-sensitively, so they are spelled as in the table.
        fields = [] if table is None else [partition_field(one) for one in table.partitioning or ()]
        for field_ in fields:
            self.context.run("drop", f"ALTER TABLE {name.sql} DROP PARTITION FIELD {field_}")
        call = f"CALL lake.system.rewrite_data_files({name.procedure_argument()}"
        self.context.run("rewrite", f"{call}, options => map('rewrite-all', 'true'))")
        for field_ in fields:
            self.context.run("add", f"ALTER TABLE {name.sql} ADD PARTITION FIELD {field_}")

    def before(self, sql: str) -> None:
        """Upsert if the statement is the one that a late upsert waits for."""
        for name, late in list(self.late.items()):
            if re.search(late.right_before, sql):
                del self.late[name]
                given = {one: value for one, value in late.model.config.items() if one in WRITES_A_KEY}
                config = parse_config(name, given)
                upsert(self.context, Name("lake", self.schema, name), config, late.batch.sql)


@dataclass
class Interrupt:
    """Ctrl-C at a statement of a model."""

    model: str
    at: int
    count: int = 0

    def is_at(self, sql: str) -> bool:
        if re.search(rf"\b{self.model}(__|\b)", sql) is None:
            return False
        self.count += 1
        return self.count == self.at + 1


def is_unique(model: Model, table: Table) -> bool:
    """Whether each row has a key of its own, without NULL."""
    return not _repeats(model, table) and all(None not in key_of(model, table, row) for row in table.rows)


def _repeats(model: Model, table: Table) -> bool:
    keys = Counter(key_of(model, table, row) for row in table.rows)
    return any(count > 1 for count in keys.values())


def is_adoptable(model: Model, table: Table | None) -> bool:
    return table is not None and table.form == "plain" and bool(model.keys)


def can_evolve(model: Model, table: Table | None) -> bool:
    fields = frozenset(listed(model.config.get("partition_by")))
    return table is not None and table.form == "plain" and bool(table.rows) and table.partitions == fields


def late_row(model: Model, before: Table | None, round_: Round) -> Row | None:
    """The row that another process upserts during a full refresh: the first one of the table, with another
    value; ``None`` where there is none, or the upsert would ask for other partitions.
    """
    if before is None or before.form != "keyed" or not before.rows or not rebuilds(model, round_):
        return None
    if before.partitions != frozenset(listed(model.config.get("partition_by"))):
        return None
    row, type_ = before.rows[0], before.types.get("part", "")
    with suppress(NotExact):
        return {**row, "part": keep(7, "int", type_)} if type_ else row
    return row


def lands_early(model: Model, before: Table, row: Row, round_: Round) -> bool:
    """Whether the row lands before the build looks for rows to carry over.

    Where the new table may not hold the row, nothing is then replaced.
    """
    batch = round_.batches[model.name]
    now = {one.name: stored_type(one.type) for one in batch.columns if one.name != "_action"}
    try:
        carried_over(model, before, row, now)
    except (NotExact, TooLarge):
        return True
    return has_other_key_types(model, before, now)


def batch_of(row: Row, table: Table) -> Batch:
    columns = tuple(Column(name, type_) for name, type_ in table.types.items())
    return Batch(columns, (tuple(row[one.name] for one in columns),))


def wrong_plan(folder: Path) -> str:
    """What is wrong with ``dbt-arctic plan``; empty if nothing is."""
    done = CliRunner().invoke(main, ["plan", "--project-dir", str(folder), "--profiles-dir", str(folder)])
    return "" if done.exit_code == 0 else f"dbt-arctic plan ended with {done.exit_code}: {done.output}"


def wrong_catalog(warehouse: Path) -> str:
    """What is wrong with the catalog of a new warehouse that several sessions open at once."""
    settings = SparkSettings("lake", str(warehouse))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: prepare_warehouse(settings), range(8)))
    file = catalog_file(settings)
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")}
    # Iceberg would add it on first use, where one of two sessions fails.
    return "" if "iceberg_type" in columns else "the catalog has no column iceberg_type"
