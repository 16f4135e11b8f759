"""Automatic models over tables and views of other hands: whatever these do, a refresh is right."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter.relation_diff import current_relation
from dbt_arctic.auto import select_list_subqueries
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.engine.temporary_settings import tuned
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.row_diff import count_differing
from dbt_arctic.maintenance.adopt import adopt_table, plan_adoption
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.timeline import history
from dbt_arctic.maintenance.versions import rows_at
from tests.extent import extent
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

V3 = "USING iceberg TBLPROPERTIES ('format-version' = '3')"


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(4)])
    return made


class NamedModel(Model):
    """A model with a name of its own."""

    def __init__(self, orders: Orders, key: str, sql: str, name: str = "model") -> None:
        super().__init__(orders, key, sql)
        self.name = self.name.sibling(name)

    def follows(self) -> str:
        choice = self.refresh()
        assert list(map(repr, self.rows())) == list(map(repr, self.rows(self.sql)))
        return choice


def run(orders: Orders, *statements: str) -> None:
    for statement in statements:
        orders.session.query(statement)


def test_fields_of_a_struct_are_followed_by_their_numbers(unbuilt: Orders) -> None:
    table = unbuilt.name.sibling("nested")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, s STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<a: INT>>, "
        f"m MAP<STRING, STRUCT<a: INT>>) {V3}",
        f"INSERT INTO {table.sql} SELECT id, named_struct('a', int(id), 'b', int(10 * id)), "
        "array(named_struct('a', int(id))), map('k', named_struct('a', int(id))) FROM range(1, 3)",
        f"INSERT INTO {table.sql} VALUES (9, NULL, NULL, NULL)",
    )
    field = NamedModel(unbuilt, "id", f"SELECT id, s.a AS a FROM {table.sql}", "field")
    whole = NamedModel(unbuilt, "id", f"SELECT id, s, l, m FROM {table.sql}", "whole")
    for model in (field, whole):
        assert model.follows() == "FULL (build)"
    swap = [("a", "tmp"), ("b", "a"), ("tmp", "b")]
    run(unbuilt, *(f"ALTER TABLE {table.sql} RENAME COLUMN s.{old} TO {new}" for old, new in swap))
    assert field.follows() == "FULL (changed-sql)"
    run(
        unbuilt,
        f"ALTER TABLE {table.sql} ADD COLUMN s.c INT",
        f"ALTER TABLE {table.sql} ADD COLUMN l.element.c STRING",
        f"ALTER TABLE {table.sql} ALTER COLUMN m.value.a TYPE BIGINT",
    )
    assert whole.follows() == "FULL (changed-columns)"
    added = NamedModel(
        unbuilt, "id", f"SELECT id, s.c AS c, l[0].c AS d, typeof(m) AS t FROM {table.sql}", "added"
    )
    assert added.follows() == "FULL (build)"
    run(
        unbuilt,
        f"INSERT INTO {table.sql} VALUES (3, named_struct('b', 3, 'a', 30, 'c', 300), "
        "array(named_struct('a', 3, 'c', 'x')), map('k', named_struct('a', 3L)))",
    )
    assert field.follows() == "FULL (changed-sql)", "what is in s has changed, too"
    assert {model.follows() for model in (whole, added)} == {"INCREMENTAL (1 key)"}
    run(unbuilt, f"UPDATE {table.sql} SET s = named_struct('b', 4, 'a', 40, 'c', 400) WHERE id = 1")
    assert {model.follows() for model in extent((whole,), (field, whole, added))} == {"INCREMENTAL (1 key)"}


def test_a_field_that_was_made_wider_is_wide_in_old_rows_too(unbuilt: Orders) -> None:
    table = unbuilt.name.sibling("nested")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, s STRUCT<a: INT, f: FLOAT>, l ARRAY<INT>) {V3}",
        f"INSERT INTO {table.sql} VALUES (1, named_struct('a', 100000, 'f', 0.1F), array(7))",
    )
    values = "s.a * s.a AS a, s.f * s.f AS f, hash(l) AS l"
    model = NamedModel(
        unbuilt, "id", f"SELECT id, try_multiply(s.a, 2) AS two, s.f * s.f AS f FROM {table.sql}"
    )
    model.follows()
    run(
        unbuilt,
        f"ALTER TABLE {table.sql} ALTER COLUMN s.a TYPE BIGINT",
        f"ALTER TABLE {table.sql} ALTER COLUMN s.f TYPE DOUBLE",
        f"ALTER TABLE {table.sql} ALTER COLUMN l.element TYPE BIGINT",
    )
    assert (
        NamedModel(unbuilt, "id", f"SELECT id, {values} FROM {table.sql}", "wide").follows() == "FULL (build)"
    )
    assert model.follows().startswith("FULL (changed-")
    run(unbuilt, f"INSERT INTO {table.sql} VALUES (2, named_struct('a', 2, 'f', 0.3), array(8))")
    assert model.follows() == "INCREMENTAL (1 key)"


def add_columns_with_defaults(orders: Orders, table: Name) -> None:
    """As another engine does: with Iceberg's library, because Spark has no statement for it."""
    spark = orders.session.connection.session
    java = spark.sparkContext._jvm
    types, lit = java.org.apache.iceberg.types.Types, java.org.apache.iceberg.expressions.Expressions.lit
    update = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, table.dotted
    ).updateSchema()
    for name, type_, value in (
        ("b", types.BooleanType.get(), lit(True)),
        ("n", types.LongType.get(), lit(java.java.lang.Long(2**53 + 1))),
        ("x", types.DoubleType.get(), lit(java.java.lang.Double(0.1))),
        ("p", types.DecimalType.of(10, 2), lit("1.50")),
        ("t", types.StringType.get(), lit("it's \\ \"")),
        ("o", types.DateType.get(), lit("2026-01-31")),
        ("u", types.TimestampType.withoutZone(), lit("2026-01-31T12:00:00.123456")),
        ("z", types.TimestampType.withZone(), lit("2026-01-31T12:00:00.5+02:00")),
        ("y", types.BinaryType.get(), lit(java.java.nio.ByteBuffer.wrap(bytearray(b"\x0a\xff")))),
    ):
        update = update.addColumn(name, type_, "", value.to(type_))
    update.addColumn("s", "c", types.IntegerType.get(), "", lit(7)).commit()


def test_a_column_that_was_added_with_a_default_has_it_in_older_rows(unbuilt: Orders) -> None:
    session, table = unbuilt.session, unbuilt.name.sibling("defaults")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, s STRUCT<a: INT>) {V3}",
        f"INSERT INTO {table.sql} VALUES (1, named_struct('a', 1)), (2, NULL)",
    )
    first = session.catalog.load_table(table.schema, table.identifier).current_snapshot_id
    add_columns_with_defaults(unbuilt, table)
    whole = f"SELECT * FROM {table.sql} ORDER BY id"

    def state() -> list[Any]:
        relation = current_relation(session.catalog, table)
        assert relation is not None
        return session.query(f"{relation.sql} ORDER BY id")

    rows = session.query(whole)
    assert state() == rows, "as Spark reads the table, although its snapshot has none of the columns"
    model = NamedModel(unbuilt, "id", f"SELECT * FROM {table.sql}")
    assert model.follows() == "FULL (build)"
    run(unbuilt, f"INSERT INTO {table.sql} (id, s) VALUES (3, named_struct('a', 3, 'c', 4))")
    assert state() == session.query(whole)
    assert model.follows() == "INCREMENTAL (1 key)", "the other rows have had these values before"
    # The table may become the base of a keyed one, and its older snapshots versions of it.
    adopt_table(session.context, plan_adoption(session.context, table, ("id",)))
    oldest = history(session.catalog, table)[-1].version
    assert oldest is not None
    assert oldest.base_snapshot == first
    assert session.query(f"{rows_at(session.catalog, table, oldest.token, 'test')} ORDER BY id") == rows


def test_a_view_has_the_types_that_it_was_made_with(unbuilt: Orders) -> None:
    table, view = unbuilt.name.sibling("loaded"), unbuilt.name.sibling("shown")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, g INT, x STRING) {V3}",
        f"INSERT INTO {table.sql} VALUES (1, 1, '9'), (2, 1, '10')",
        f"CREATE VIEW {view.sql} AS SELECT id, g, x, concat('v', x) AS y FROM {table.sql}",
    )
    model = NamedModel(unbuilt, "g", f"SELECT g, max(x) AS x, max(y) AS y FROM {view.sql} GROUP BY g")
    model.follows()
    numbers, shown = table.sibling("numbers"), view.sibling("shown_numbers")
    run(
        unbuilt,
        f"CREATE TABLE {numbers.sql} (id BIGINT, d DECIMAL(14, 2), f DOUBLE) {V3}",
        f"CREATE VIEW {shown.sql} AS SELECT id, d * 2.0 AS x, f + f AS y FROM {numbers.sql}",
        f"CREATE OR REPLACE TABLE {numbers.sql} (id BIGINT, d DECIMAL(12, 2), f FLOAT) {V3}",
        f"INSERT INTO {numbers.sql} VALUES (1, 1.10, 0.1), (2, 7.30, 0.2)",
    )
    values = "CAST(1.5 / x AS STRING) AS q, CAST(y AS STRING) AS y"
    computed = NamedModel(unbuilt, "id", f"SELECT id, {values} FROM {shown.sql}", "computed")
    computed.follows()
    run(unbuilt, f"INSERT INTO {numbers.sql} VALUES (3, 9.90, 0.3), (4, 11.30, 0.7)")
    assert computed.follows() == "INCREMENTAL (2 keys)"
    # Loaded again by a tool that takes the texts for numbers.
    again = "SELECT 1L AS id, 1 AS g, 9 AS x UNION ALL SELECT 2L, 1, 10"
    run(unbuilt, f"CREATE OR REPLACE TABLE {table.sql} {V3} AS {again}")
    assert model.follows().startswith("FULL")
    run(unbuilt, f"INSERT INTO {table.sql} VALUES (3, 2, 9), (4, 2, 100)")
    assert model.follows() == "INCREMENTAL (1 key)"


def test_a_view_reads_what_it_was_made_over(unbuilt: Orders, tmp_path: Path) -> None:
    """By a name without a catalog, a view of another catalog's tables names these."""
    schema, view = unbuilt.name.schema, unbuilt.name.sibling("shown")
    run(
        unbuilt,
        "CREATE SCHEMA IF NOT EXISTS lake.default",
        "CREATE OR REPLACE TABLE lake.default.things USING iceberg AS SELECT 1L AS id, 'lake' AS whose",
        "CREATE OR REPLACE TEMPORARY VIEW nothing AS SELECT 1",
    )
    try:
        run(
            unbuilt,
            "USE spark_catalog.default",
            f"CREATE TABLE spark_catalog.default.things USING parquet LOCATION '{tmp_path}/things' "
            "AS SELECT 1L AS id, 'spark_catalog' AS whose",
            f"CREATE VIEW {view.sql} AS SELECT id, whose FROM things",
        )
        run(unbuilt, f"USE lake.`{schema}`")
        assert NamedModel(unbuilt, "id", f"SELECT id, whose FROM {view.sql}").follows() == "FULL (build)"
    finally:
        run(unbuilt, f"USE lake.`{schema}`", "DROP TABLE IF EXISTS spark_catalog.default.things")
        run(unbuilt, "DROP TABLE lake.default.things")


def test_two_tables_whose_names_differ_in_capitals(unbuilt: Orders) -> None:
    big, small = unbuilt.name.sibling("Things"), unbuilt.name.sibling("things")
    for table, value in ((big, "Big"), (small, "small")):
        run(unbuilt, f"CREATE TABLE {table.sql} USING iceberg AS SELECT 1L AS id, '{value}' AS w")
    join = f"FROM {big.sql} AS a JOIN {small.sql} AS b ON a.id = b.id"
    model = NamedModel(unbuilt, "id", f"SELECT a.id, a.w AS one, b.w AS two {join}")
    assert model.follows() == "FULL (build)"
    reason = model.plan().reason
    assert reason is not None
    assert reason.code == "unknown-relation"
    assert "only in upper and lower case" in reason.what


def test_a_zero_that_gets_a_sign_is_another_value(unbuilt: Orders) -> None:
    table = unbuilt.name.sibling("zeros")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, x DOUBLE, y FLOAT, z ARRAY<DOUBLE>, m MAP<STRING, INT>) {V3}",
        f"INSERT INTO {table.sql} VALUES (1, 0.0D, 0.0F, array(0.0D), map('a', 1, 'b', 2)), "
        "(2, 1.0D, NULL, array(0.0D, NULL), NULL), (3, double('NaN'), -0.0F, NULL, map('a', 1, 'b', 2))",
    )
    model = NamedModel(unbuilt, "id", f"SELECT id, x, y, z, m FROM {table.sql}")
    model.follows()
    run(unbuilt, f"UPDATE {table.sql} SET x = -0.0D, y = -0.0F WHERE id = 1")
    columns = [("id", "bigint"), ("x", "double"), ("y", "float")]
    stored = f"SELECT * FROM {model.name.sql}"
    assert unbuilt.session.query(count_differing(stored, model.sql, columns))[0][0] == 2
    assert model.follows() == "INCREMENTAL (1 key)"
    assert unbuilt.session.query(count_differing(stored, model.sql, columns))[0][0] == 0
    run(unbuilt, f"UPDATE {table.sql} SET y = y WHERE id > 1")
    assert model.follows() == "INCREMENTAL (0 keys)"

    # The same inside of a value, and the order of a map's entries: a query can see both.
    run(unbuilt, f"UPDATE {table.sql} SET z = array(-0.0D, NULL), m = map('b', 2, 'a', 1) WHERE id > 1")
    assert model.follows() == "INCREMENTAL (2 keys)"
    seen = "SELECT id, CAST(z AS STRING), map_keys(m) FROM "
    assert sorted(unbuilt.session.query(f"{seen}{model.name.sql}")) == sorted(
        unbuilt.session.query(f"{seen}{table.sql}")
    )
    run(unbuilt, f"UPDATE {table.sql} SET y = y WHERE id > 1")
    assert model.follows() == "INCREMENTAL (0 keys)"


def test_rows_of_files_of_another_table_are_not_lost(unbuilt: Orders, tmp_path: Path) -> None:
    """Such a file brings the numbers that its rows had where they come from."""
    source, table = unbuilt.name.sibling("source"), unbuilt.name.sibling("moved")
    for name, commits in ((source, 1), (table, 2)):
        run(unbuilt, f"CREATE TABLE {name.sql} (id BIGINT, x INT) {V3}")
        first = 100 if name == source else 0  # so that no key is in both
        for commit in range(commits):
            run(unbuilt, f"INSERT INTO {name.sql} VALUES ({first + commit}, {commit})")
    rewritten = f"table => '{source.schema}.{source.identifier}', options => map('rewrite-all', 'true')"
    run(unbuilt, f"CALL lake.system.rewrite_data_files({rewritten})")
    model = NamedModel(unbuilt, "id", f"SELECT id, x FROM {table.sql}")
    model.follows()
    moved = tmp_path / "moved"
    moved.mkdir()
    for (path,) in unbuilt.session.query(f"SELECT file_path FROM {source.sql}.files"):
        shutil.copy(path.removeprefix("file:"), moved)
    run(
        unbuilt,
        f"CALL lake.system.add_files(table => '{table.schema}.{table.identifier}', "
        f"source_table => '`parquet`.`{moved}`')",
    )
    assert model.follows().startswith("INCREMENTAL")
    assert len(model.rows()) == len(unbuilt.session.query(f"SELECT * FROM {table.sql}"))
    run(unbuilt, f"INSERT INTO {table.sql} VALUES (7, 7)")
    model.follows()


def test_a_key_that_is_erased_upstream_is_gone_after_the_next_refresh(orders: Orders) -> None:
    """Also where the model has read on while the erasure was under way."""
    model = NamedModel(orders, "id", f"SELECT id, amount * 2 AS twice FROM {orders.name.sql}")
    model.follows()
    context = orders.session.context
    seen = []

    def beside(step: str) -> None:
        if step == "expire" and not seen:
            seen.append(step)
            orders.upsert([{"id": 8, "amount": 8}])
            model.refresh()

    orders.session.statements.before = beside
    erase_keys(context, plan_by_values(context, orders.name, [("id", "1")]), force=True)
    orders.session.statements.before = None
    assert seen
    assert model.follows().startswith(("FULL", "SKIP"))
    assert 1 not in {key for key, _ in model.rows()}


def test_a_text_with_a_collation_is_compared_as_it_is_stored(unbuilt: Orders) -> None:
    table = unbuilt.name.sibling("collated")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, x STRING) {V3}",
        f"INSERT INTO {table.sql} VALUES (1, 'A'), (2, 'b')",
    )
    model = NamedModel(unbuilt, "id", f"SELECT id, x COLLATE UTF8_LCASE AS k FROM {table.sql}")
    model.follows()
    run(unbuilt, f"UPDATE {table.sql} SET x = 'a' WHERE id = 1")
    assert model.follows() == "FULL (unsupported)"


def test_columns_may_be_called_as_ours_were(unbuilt: Orders) -> None:
    table = unbuilt.name.sibling("copies")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, _copy INT, _here INT, m MAP<STRING, INT>) {V3}",
        f"INSERT INTO {table.sql} VALUES (1, 1, 1, map('a', 1)), (2, 2, 2, NULL)",
    )
    model = NamedModel(unbuilt, "id", f"SELECT id, _copy AS c, _here AS h FROM {table.sql}")
    model.follows()
    run(unbuilt, f"UPDATE {table.sql} SET _copy = 7 WHERE id = 1")
    assert model.follows() == "INCREMENTAL (1 key)"


def test_a_state_of_other_types_is_built_anew_and_says_why(unbuilt: Orders) -> None:
    table = unbuilt.name.sibling("wider")
    run(
        unbuilt,
        f"CREATE TABLE {table.sql} (id BIGINT, amount DECIMAL(10, 2)) {V3}",
        f"INSERT INTO {table.sql} SELECT id, id FROM range(9)",
    )
    model = NamedModel(
        unbuilt,
        "part",
        f"SELECT id % 3 AS part, count(*) AS n FROM {table.sql} GROUP BY 1 HAVING sum(amount) > 1",
    )
    model.follows()
    assert model.state is not None
    run(unbuilt, f"ALTER TABLE {table.sql} ALTER COLUMN amount TYPE DECIMAL(14, 2)")
    reason = model.plan().reason
    assert reason is not None
    assert reason.code == "changed-sql"
    strict = replace(model.config, auto="strict")
    plain, model.config = model.config, strict
    with pytest.raises(ConfigError, match="changed-sql"):
        model.refresh()
    model.config = plain
    assert model.follows().startswith("FULL")
    run(unbuilt, f"INSERT INTO {table.sql} VALUES (10, 7)")
    assert model.follows().startswith("INCREMENTAL")


@pytest.mark.modelled
def test_columns_may_be_called_as_those_that_sums_are_added_by(orders: Orders) -> None:
    counts = "count(*) AS _rows, count(*) AS n, count(amount) AS _added_n"
    shown = f"{counts}, max(amount) AS hi, min(amount) AS _stored_hi"
    model = NamedModel(orders, "part", f"SELECT id % 2 AS part, {shown} FROM {orders.name.sql} GROUP BY 1")
    model.follows()
    orders.upsert([{"id": 1, "amount": 70}, {"id": 9, "amount": 9}])
    assert model.follows() == "INCREMENTAL (sums)"


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("amount < cut", "setting"),
        ("amount < lake.limits.cut()", "unknown-function"),
        ("current_user() <> 'x'", "session"),
    ],
)
def test_what_the_session_decides_is_never_skipped(orders: Orders, condition: str, code: str) -> None:
    sql = f"SELECT id, amount FROM {orders.name.sql} WHERE {condition}"
    model, context = NamedModel(orders, "id", sql), orders.session.context
    settings = "statement 0=declare or replace variable cut int default 5"
    terms = RefreshParameters(settings if condition.endswith(" cut") else "")

    def plan() -> RefreshPlan:
        return plan_refresh(context.catalog, model.name, model.config, sql, None, terms=terms)

    full = plan()
    full = replace(full, header=replace(full.header, sql=f"SELECT id, amount FROM {orders.name.sql}"))
    run_refresh(context, model.name, model.config, full, owner="model.test")
    found = plan()
    assert found.action == "full"
    assert found.reason is not None
    assert found.reason.code == code


@pytest.mark.long  # over one: test_auto_inside.py
def test_a_subquery_in_a_select_list_over_two_states(orders: Orders) -> None:
    """On which Spark fails, where it moves the list below the UNION of both states."""
    history, rules = orders.name.sibling("history"), "spark.sql.optimizer.excludedRules"
    session = orders.session
    session.context = replace(session.context, tuned=partial(tuned, session.connection))
    run(
        orders,
        f"CREATE TABLE {history.sql} (k BIGINT, val INT) {V3}",
        f"INSERT INTO {history.sql} VALUES (1, 1), (1, 2), (2, 3)",
        f"SET {rules} = org.apache.spark.sql.catalyst.optimizer.LimitPushDown",
    )
    value = f"(SELECT count(*) FROM {history.sql} AS h WHERE h.k = c.id)"
    counted = f"SELECT id, {value} AS n FROM {orders.name.sql} AS c"
    models = [
        NamedModel(
            orders, "n", f"SELECT n, count(*) AS customers FROM ({counted}) AS q GROUP BY n", "grouped"
        ),
        NamedModel(orders, "n", f"SELECT DISTINCT n FROM ({counted}) AS q", "different"),
        NamedModel(
            orders,
            "id",
            f"SELECT id, EXISTS (SELECT 1 FROM {history.sql} AS h WHERE h.k = c.id) AS x "
            f"FROM {orders.name.sql} AS c",
            "there",
        ),
    ]

    def followed() -> list[str]:
        choices = [model.refresh().split(" (")[0] for model in models]
        with session.context.tuned(
            select_list_subqueries.CONF
        ):  # over a keyed table, Spark fails on the query, too
            assert [model.rows() for model in models] == [model.rows(model.sql) for model in models]
        return choices

    followed()
    for amount in (70, 80):
        orders.apply([{"id": 2, "amount": amount}, {"id": amount, "amount": 1}], [{"id": 3}])
        run(orders, f"UPDATE {history.sql} SET k = {amount} WHERE val = 2")
        assert followed() == ["INCREMENTAL"] * 3
    assert session.query(f"SET {rules}") == [(rules, "org.apache.spark.sql.catalyst.optimizer.LimitPushDown")]
