"""What a model means can change though no upstream has a commit: its SQL, and the columns that it reads."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.errors import DuplicateKey
from tests.extent import extent, first
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

BY_PART = "SELECT amount % 3 AS part, sum(amount) AS amount FROM {0} GROUP BY amount % 3{1}"


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(20)])
    return made


@pytest.mark.modelled
@pytest.mark.parametrize(
    "changed",
    first(
        2,
        [
            BY_PART.replace("{1}", " HAVING sum(amount) > 60"),
            BY_PART.replace("sum(amount)", "sum(amount) * 100"),
            BY_PART.replace("sum(amount) AS amount", "sum(amount) AS total"),
            BY_PART.replace("{1}", " ORDER BY part LIMIT 2"),
        ],
    ),
    ids=["having", "value", "name", "limit"],
)
def test_a_model_over_a_state_follows_its_sql(orders: Orders, changed: str) -> None:
    model = Model(orders, "part", BY_PART.format(orders.name.sql, " HAVING sum(amount) > 50"))
    model.refresh()
    assert model.refresh() == "SKIP (no upstream change)"
    model.sql = changed.replace("{1}", "").format(orders.name.sql)
    assert model.plan().action != "nothing"
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    assert model.refresh() == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_a_state_that_cannot_tell_what_the_model_asks_now_is_given_up(shop: Any) -> None:
    orders = shop.table(types={"id": "bigint", "amount": "decimal(28,10)"})
    orders.build([{"id": number, "amount": number} for number in range(20)])
    of_some = "GROUP BY id % 3 HAVING count(*) > 1"
    summed = f"SELECT id % 3 AS part, sum(amount) AS amount FROM {orders.name.sql} {of_some}"
    model = Model(orders, "part", summed)
    model.refresh()
    assert model.state is not None
    model.sql = summed.replace("sum(amount)", "avg(amount)")
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    assert model.state is None
    assert model.refresh() == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_rows_of_one_key_in_the_model_leave_its_state(orders: Orders) -> None:
    by_two = "GROUP BY id % 3, amount > 90 HAVING count(*) > 0"
    summed = f"SELECT id % 3 AS part, sum(amount) AS amount FROM {orders.name.sql} {by_two}"
    model = Model(orders, "part", summed)
    model.refresh()
    state = model.state
    assert state is not None
    orders.upsert([{"id": 1, "amount": 99}])
    with pytest.raises(DuplicateKey):
        model.refresh()
    assert model.state == state
    orders.upsert([{"id": 1, "amount": 9}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_state_that_gets_a_key_of_null_is_given_up(orders: Orders) -> None:
    part = "CASE WHEN amount < 90 THEN amount % 3 END"
    summed = (
        f"SELECT {part} AS part, count(*) AS n FROM {orders.name.sql} GROUP BY {part} HAVING count(*) > 3"
    )
    model = Model(orders, "part", summed)
    model.refresh()
    assert model.state is not None
    orders.upsert([{"id": 1, "amount": 95}])
    assert model.refresh() == "FULL (without-state)"
    assert model.rows() == model.rows(model.sql)
    assert model.state is None
    orders.upsert([{"id": 2, "amount": 3}])
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_compacted_state_is_no_change(orders: Orders) -> None:
    model = Model(orders, "part", BY_PART.format(orders.name.sql, " HAVING count(*) > 1"))
    model.refresh()
    orders.upsert([{"id": 1, "amount": 7}])
    model.refresh()
    state = Orders(orders.session, model.name.sibling("model__state"), {}, {})
    assert state.compact().merged > 0
    assert model.refresh() == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_a_key_that_only_the_first_rows_have_once_needs_no_state(orders: Orders) -> None:
    model = Model(orders, "part", f"SELECT amount % 3 AS part, id FROM {orders.name.sql} ORDER BY id LIMIT 3")
    model.refresh()
    assert model.rows() == [(0, 0), (1, 1), (2, 2)]
    orders.upsert([{"id": 0, "amount": 3}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_column_that_was_dropped_and_added_again_is_another_one(unbuilt: Orders) -> None:
    session = unbuilt.session
    plain = unbuilt.name.sibling("plain")
    session.query(
        f"CREATE TABLE {plain.sql} (id BIGINT, x INT) USING iceberg TBLPROPERTIES ('format-version' = '3')"
    )
    session.query(f"INSERT INTO {plain.sql} VALUES (1, 10), (2, 20)")
    model = Model(unbuilt, "id", f"SELECT id, x FROM {plain.sql}")
    model.refresh()
    session.query(f"ALTER TABLE {plain.sql} DROP COLUMN x")
    session.query(f"ALTER TABLE {plain.sql} ADD COLUMN x INT")
    model.refresh()
    assert sorted(map(str, model.rows())) == ["(1, None)", "(2, None)"]
    session.query(f"INSERT INTO {plain.sql} VALUES (3, 30)")
    model.refresh()
    assert sorted(map(str, model.rows())) == ["(1, None)", "(2, None)", "(3, 30)"]


@pytest.mark.modelled
def test_a_column_that_no_row_has_yet_is_null(unbuilt: Orders) -> None:
    session = unbuilt.session
    plain = unbuilt.name.sibling("plain")
    session.query(f"CREATE TABLE {plain.sql} (id BIGINT) USING iceberg")
    session.query(f"INSERT INTO {plain.sql} VALUES (1), (2)")
    session.query(f"ALTER TABLE {plain.sql} ADD COLUMN x INT")
    model = Model(unbuilt, "id", f"SELECT id, x FROM {plain.sql}")
    model.refresh()
    assert sorted(map(str, model.rows())) == ["(1, None)", "(2, None)"]


@pytest.mark.modelled
def test_a_column_that_was_renamed_has_its_values_before_the_next_commit(unbuilt: Orders) -> None:
    session = unbuilt.session
    plain = unbuilt.name.sibling("plain")
    session.query(f"CREATE TABLE {plain.sql} (id BIGINT, x INT, y INT) USING iceberg")
    session.query(f"INSERT INTO {plain.sql} VALUES (1, 10, 100), (2, 20, 200)")
    model = Model(unbuilt, "id", f"SELECT id, x FROM {plain.sql}")
    model.refresh()
    session.query(f"ALTER TABLE {plain.sql} RENAME COLUMN x TO z")
    model.sql = f"SELECT id, z AS x FROM {plain.sql}"
    model.refresh()
    assert model.rows() == [(1, 10), (2, 20)]
    for old, new in (("y", "x"), ("z", "y"), ("x", "z")):
        session.query(f"ALTER TABLE {plain.sql} RENAME COLUMN {old} TO {new}")
    model.refresh()
    assert model.rows() == [(1, 100), (2, 200)], "the name means another column by now"
    session.query(f"UPDATE {plain.sql} SET z = 300 WHERE id = 2")
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == [(1, 100), (2, 300)]


@pytest.mark.modelled
def test_a_recursive_query_that_is_called_like_its_model_reads_itself(unbuilt: Orders) -> None:
    session = unbuilt.session
    raw = unbuilt.name.sibling("raw")
    session.query(f"CREATE TABLE {raw.sql} (id BIGINT, parent BIGINT) USING iceberg")
    session.query(f"INSERT INTO {raw.sql} VALUES (1, NULL), (2, 1)")
    below = f"SELECT c.id, c.parent FROM {raw.sql} AS c JOIN model AS t ON c.parent = t.id"
    top = f"SELECT id, parent FROM {raw.sql} WHERE parent IS NULL"
    model = Model(unbuilt, "id", f"WITH RECURSIVE model AS ({top} UNION ALL {below}) SELECT * FROM model")
    for more in ("(3, 2), (4, 3)", "(5, NULL), (6, 5), (7, 6)"):
        model.refresh()
        session.query(f"INSERT INTO {raw.sql} VALUES {more}")
    model.refresh()
    assert sorted(key for key, _ in model.rows()) == [1, 2, 3, 4, 5, 6, 7]


def test_a_view_of_a_table_that_got_a_column_is_read_as_it_was_made(unbuilt: Orders) -> None:
    session = unbuilt.session
    raw, recent = unbuilt.name.sibling("raw"), unbuilt.name.sibling("recent")
    session.query(f"CREATE TABLE {raw.sql} (id BIGINT, x INT) USING iceberg")
    session.query(f"INSERT INTO {raw.sql} VALUES (1, 10)")
    session.query(f"CREATE VIEW {recent.sql} AS SELECT * FROM {raw.sql}")
    model = Model(unbuilt, "id", f"SELECT id, x FROM {recent.sql}")
    model.refresh()
    session.query(f"ALTER TABLE {raw.sql} ADD COLUMN note STRING")
    session.query(f"INSERT INTO {raw.sql} VALUES (2, 20, 'n')")
    model.refresh()
    assert model.rows() == [(1, 10), (2, 20)]


def test_columns_of_icebergs_metadata_may_be_read(unbuilt: Orders) -> None:
    session = unbuilt.session
    raw = unbuilt.name.sibling("raw")
    session.query(f"CREATE TABLE {raw.sql} (x INT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    session.query(f"INSERT INTO {raw.sql} VALUES (10)")
    model = Model(unbuilt, "id", f"SELECT _row_id AS id, x FROM {raw.sql}")
    model.refresh()
    session.query(f"INSERT INTO {raw.sql} VALUES (20)")
    model.refresh()
    assert [x for _, x in model.rows()] == [10, 20]
    numbered = f"SELECT *, row_number() OVER (PARTITION BY x ORDER BY x) AS _pos FROM {raw.sql}"
    model.sql = f"SELECT x AS id, x FROM ({numbered}) AS n WHERE _pos = 1"
    model.refresh()
    assert model.refresh() == "SKIP (no upstream change)", "a name of one's own"


def test_rows_with_maps_and_variants_are_compared(unbuilt: Orders) -> None:
    session = unbuilt.session
    raw = unbuilt.name.sibling("raw")
    session.query(
        f"CREATE TABLE {raw.sql} (id BIGINT, m MAP<STRING, INT>, v VARIANT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    session.query(f"INSERT INTO {raw.sql} SELECT id, map('a', id, 'b', 2), parse_json('1') FROM range(4)")
    model = Model(unbuilt, "id", f"SELECT id, m['a'] AS a, count(*) AS n FROM {raw.sql} GROUP BY id, m['a']")
    model.refresh()
    session.query(f"UPDATE {raw.sql} SET m = map('b', 2, 'a', 70) WHERE id = 2")
    session.query(f"DELETE FROM {raw.sql} WHERE id = 1")
    session.query(f"INSERT INTO {raw.sql} SELECT id, m, v FROM {raw.sql} WHERE id = 3")
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == model.rows(model.sql)
    assert model.rows() == [(0, 0, 1), (2, 70, 1), (3, 3, 2)]


@pytest.mark.modelled
def test_a_table_that_was_created_again_without_rows_has_none(unbuilt: Orders) -> None:
    session = unbuilt.session
    plain = unbuilt.name.sibling("plain")
    session.query(f"CREATE TABLE {plain.sql} (id BIGINT, x INT) USING iceberg")
    session.query(f"INSERT INTO {plain.sql} VALUES (1, 10), (2, 20)")
    model = Model(unbuilt, "id", f"SELECT id, x FROM {plain.sql}")
    model.refresh()
    session.query(f"CREATE OR REPLACE TABLE {plain.sql} (id BIGINT, x INT) USING iceberg")
    model.refresh()
    assert model.rows() == []
    session.query(f"INSERT INTO {plain.sql} VALUES (3, 30)")
    model.refresh()
    assert model.rows() == [(3, 30)]


@pytest.mark.modelled
def test_a_plain_upstream_may_become_a_keyed_one(unbuilt: Orders) -> None:
    session = unbuilt.session
    source = unbuilt.name.sibling("source")
    session.query(f"CREATE TABLE {source.sql} USING iceberg AS SELECT 1L AS id, 1 AS amount")
    model = Model(unbuilt, "id", f"SELECT id, amount FROM {source.sql}")
    model.refresh()
    session.query(f"DROP TABLE {source.sql}")
    keyed = Orders(session, source, unbuilt.types, unbuilt.config)
    keyed.build([{"id": 1, "amount": 5}, {"id": 2, "amount": 6}])
    assert model.refresh() == "FULL (history-gone)"
    assert model.rows() == [(1, 5), (2, 6)]


def test_a_view_means_the_schema_in_which_it_was_made(unbuilt: Orders, shop: Any) -> None:
    session = unbuilt.session
    schema, elsewhere = unbuilt.name.schema, f"{unbuilt.name.schema}_elsewhere"
    session.query(f"CREATE SCHEMA IF NOT EXISTS lake.{elsewhere}")
    try:
        session.query(
            f"CREATE TABLE lake.{elsewhere}.things USING iceberg AS SELECT 1L AS id, 'theirs' AS whose"
        )
        session.query(f"CREATE TABLE lake.{schema}.things USING iceberg AS SELECT 1L AS id, 'ours' AS whose")
        session.query(f"USE lake.{elsewhere}")
        session.query(f"CREATE VIEW lake.{elsewhere}.shown AS SELECT id, whose FROM things")
        session.query(f"USE lake.{schema}")
        model = Model(unbuilt, "id", f"SELECT id, whose FROM lake.{elsewhere}.shown")
        model.refresh()
        assert model.rows() == [(1, "theirs")]
    finally:
        session.query(f"USE lake.{schema}")
        session.query(f"DROP VIEW IF EXISTS lake.{elsewhere}.shown")
        session.query(f"DROP TABLE IF EXISTS lake.{elsewhere}.things")
        session.query(f"DROP SCHEMA IF EXISTS lake.{elsewhere}")


@pytest.mark.modelled
def test_settings_that_change_what_a_text_means(orders: Orders) -> None:
    model = Model(orders, "id", f"SELECT id, amount * 2 AS twice FROM {orders.name.sql}")
    context = model.session.context

    def refresh(settings: str) -> str:
        terms = RefreshParameters(settings)
        plan = plan_refresh(
            context.catalog, model.name, model.config, model.sql, context.query_schema, terms=terms
        )
        return str(run_refresh(context, model.name, model.config, plan, owner="model.test").choice)

    refresh("spark.sql.caseSensitive=true")
    assert refresh("spark.sql.caseSensitive=true") == "FULL (setting)"
    assert refresh("spark.sql.caseSensitive=false;spark.sql.ansi.enabled=true") == "FULL (first-plan)"
    assert refresh("spark.sql.caseSensitive=false;spark.sql.ansi.enabled=true") == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_without_ansi_sums_are_not_added_to(orders: Orders) -> None:
    sql = f"SELECT id % 2 AS part, count(*) AS n FROM {orders.name.sql} GROUP BY 1"
    context, model = orders.session.context, Model(orders, "part", sql)
    for number, (ansi, told) in enumerate({"true": "sums", "False": "1 key"}.items()):
        found = []
        for _ in range(2):
            orders.upsert([{"id": 2 * number, "amount": 9}, {"id": 20 + 2 * number, "amount": 7}])
            plan = plan_refresh(
                context.catalog,
                model.name,
                model.config,
                sql,
                context.query_schema,
                terms=RefreshParameters(f"spark.sql.ansi.enabled={ansi}"),
            )
            found.append(str(run_refresh(context, model.name, model.config, plan, owner="model.test").choice))
            orders.delete([{"id": 20 + 2 * number}])
        assert found[-1] == f"INCREMENTAL ({told})"


QUOTED = "SELECT {1}city{1} AS city, count(*) AS n FROM {0} GROUP BY {1}city{1}{2}"


def test_where_spark_reads_names_in_double_quotes_nothing_is_written_from_another_reading(
    shop: Any,
) -> None:
    """Neither to hidden columns nor to a state."""
    orders = shop.table(types={"id": "bigint", "city": "string"})
    orders.build([{"id": number, "city": "ABC"[number % 3]} for number in range(9)])
    models = [
        Model(orders, "city", QUOTED.format(orders.name.sql, '"', having))
        for having in ("", " HAVING count(*) > 1")
    ]
    models[1].name = models[1].name.sibling("of_many")
    context = orders.session.context
    orders.session.query("SET spark.sql.ansi.doubleQuotedIdentifiers = true")
    for number in range(extent(2, 3)):
        for model in models:
            plan = plan_refresh(
                context.catalog,
                model.name,
                model.config,
                model.sql,
                context.query_schema,
                terms=RefreshParameters("spark.sql.ansi.doubleQuotedIdentifiers=true"),
            )
            outcome = run_refresh(context, model.name, model.config, plan, owner="model.test")
            assert str(outcome.choice).startswith("FULL"), outcome.choice
            assert model.rows() == model.rows(model.sql)
        orders.upsert([{"id": number, "city": "C"}])
