"""A model that ends in sums is its own state: auxiliary values are in hidden columns of its table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import group_counts, plan_model
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed import layout
from dbt_arctic.keyed.create import drop_description
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.restore import restore_table
from dbt_arctic.maintenance.undo_adoption import undo_adoption
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.refresh.pull import plan_changes, plan_merge_on_read, plan_pull
from dbt_arctic.store.state import current_version, load_keyed
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

SHARES = """
SELECT amount % 3 AS part, sum(amount) AS amount, avg(amount) AS average,
  100 * max(amount) / count(*) AS share, 'x' AS label
FROM {} GROUP BY amount % 3
"""
SHOWN = ["part", "amount", "average", "share", "label"]


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(20)])
    return made


@pytest.fixture
def model(orders: Orders) -> Model:
    made = Model(orders, "part", SHARES.format(orders.name.sql))
    made.refresh()
    return made


def as_table(model: Model) -> Orders:
    return Orders(model.session, model.name, {}, {"unique_key": "part"})


def columns(model: Model, sql: str) -> list[str]:
    return [column.name for column in model.session.context.query_schema(sql)]


@pytest.mark.modelled
def test_one_statement_adds_what_changed(orders: Orders, model: Model) -> None:
    orders.upsert([{"id": 1, "amount": 40}, {"id": 50, "amount": 7}])
    orders.delete([{"id": 3}])
    ran = model.session.statements.ran
    ran.clear()
    assert model.refresh() == "INCREMENTAL (sums)"
    assert [one.step for one in ran if one.sql.startswith("INSERT")] == ["refresh"]
    assert model.state is None
    assert model.rows() == model.rows(model.sql)
    assert model.refresh() == "SKIP (no upstream change)"


@pytest.mark.modelled
@pytest.mark.parametrize(("many", "buckets"), [(20, 8), (21, 1)])
def test_as_many_buckets_as_groups_there_may_be(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, many: int, buckets: int
) -> None:
    """Amounts lie between 0 and 19."""
    monkeypatch.setattr(group_counts, "MANY", many)
    monkeypatch.setattr(layout, "DEFAULT_BUCKETS", 8)
    orders.upsert([{"id": 20, "amount": 3}])
    model = Model(orders, "amount", f"SELECT amount, sum(id) AS total FROM {orders.name.sql} GROUP BY amount")
    model.refresh()
    table = load_keyed(model.session.catalog, model.name)
    assert table.hidden
    assert table.layout.buckets == buckets


@pytest.mark.modelled
def test_a_model_that_is_a_state_itself_gets_no_other(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its extreme would have a use for hidden columns, and these cannot be had."""
    monkeypatch.setattr(plan_model, "build_with_hidden_columns", lambda *a, **k: None)
    shown = "amount % 3 AS part, max(amount) AS high, count(*) AS n"
    sql = f"SELECT {shown} FROM {orders.name.sql} GROUP BY amount % 3"
    model = Model(orders, "part", sql)
    model.refresh()
    assert model.state is None
    orders.upsert([{"id": 1, "amount": 40}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_group_comes_and_goes_and_extremes_leave(orders: Orders, model: Model) -> None:
    orders.delete([{"id": number} for number in range(20) if number % 3 == 1])
    model.refresh()
    assert [part for part, *_ in model.rows()] == [0, 2]
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 1, "amount": 1}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    orders.delete([{"id": 17}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_single_row_is_its_own_state(orders: Orders) -> None:
    sql = f"SELECT 0 AS one, sum(amount) AS total, avg(amount) AS average FROM {orders.name.sql}"
    model = Model(orders, "one", sql)
    model.refresh()
    assert as_table(model).table.hidden == ("_rows", "_count_1", "_sum_2")
    orders.delete([{"id": number} for number in range(20)])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == [(0, None, None)]
    orders.upsert([{"id": 1, "amount": 5}])
    model.refresh()
    assert model.rows() == [(0, 5, 5.0)]


@pytest.mark.modelled
def test_nobody_sees_what_it_keeps(orders: Orders, model: Model) -> None:
    name, catalog = model.name, model.session.catalog
    table = as_table(model).table
    assert table.hidden
    assert columns(model, f"SELECT * FROM {name.sql}") == SHOWN
    before = current_version(catalog, table)
    orders.upsert([{"id": 1, "amount": 40}])
    model.refresh()
    for sql in (
        plan_merge_on_read(catalog, name, None, "test"),
        plan_merge_on_read(catalog, name, before.token, "test"),
    ):
        assert columns(model, sql) == SHOWN
    changes = plan_changes(catalog, name, before.token, None, "both", "test")
    pull = plan_pull(catalog, name, None, model="test")
    for sql in (changes, pull.sql):
        assert columns(model, sql) == [*SHOWN, "_action"]


@pytest.mark.modelled
@pytest.mark.without_views
def test_it_is_compacted_and_restored_like_any_other(orders: Orders, model: Model) -> None:
    orders.upsert([{"id": 1, "amount": 40}])
    model.refresh()
    assert as_table(model).compact().merged > 0
    table = as_table(model).table
    model.session.query(drop_description(table))
    restore_table(model.session.context, model.name)
    assert replace(as_table(model).table, previous=None) == replace(table, previous=None)
    orders.upsert([{"id": 2, "amount": 41}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_other_sql_has_what_it_needs_or_is_refreshed_by_keys(orders: Orders, model: Model) -> None:
    table = as_table(model).table
    sql = model.sql
    for other, how in (
        # What is hidden suffices, and what is not needed is NULL; or it does not.
        (sql.replace("(amount)", "(amount + 1)"), "INCREMENTAL (sums)"),
        (sql.replace("100 * max(amount) / count(*)", "100.0D * count(*)"), "INCREMENTAL (sums)"),
        (sql.replace("100 *", "max(id) + 100 *"), "INCREMENTAL (1 key)"),
        (sql + " HAVING count(*) > 6", "INCREMENTAL (1 key)"),
        (sql, "INCREMENTAL (sums)"),
    ):
        model.sql = other
        assert model.refresh() == "FULL (changed-sql)", other
        assert model.rows() == model.rows(model.sql)
        orders.upsert([{"id": 60, "amount": orders.rows()[-1]["amount"] + 3}])
        assert model.refresh() == how, other
        assert model.rows() == model.rows(model.sql)
    assert as_table(model).table.columns == table.columns


@pytest.mark.modelled
def test_a_hidden_sum_of_another_type_is_none(orders: Orders) -> None:
    sql = f"SELECT amount % 3 AS part, avg(amount) AS average FROM {orders.name.sql} GROUP BY amount % 3"
    model = Model(orders, "part", sql)
    model.refresh()
    assert as_table(model).table.hidden == ("_rows", "_sum_1", "_count_1", "_sum_2")
    model.sql = sql.replace("avg(amount)", "CAST(avg(CAST(amount AS decimal(5, 1))) AS double)")
    assert model.refresh() == "FULL (changed-sql)"
    orders.upsert([{"id": 60, "amount": 3}])
    assert model.refresh() == "INCREMENTAL (1 key)"
    assert model.rows() == model.rows(model.sql)
    assert as_table(model).table.hidden == ("_rows", "_sum_1", "_count_1", "_sum_2")


@pytest.mark.modelled
def test_other_columns_are_another_table(orders: Orders, model: Model) -> None:
    model.sql = f"SELECT amount % 3 AS part, min(amount) AS low FROM {orders.name.sql} GROUP BY amount % 3"
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    assert as_table(model).table.generation.number == 2
    orders.upsert([{"id": 60, "amount": -3}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_model_over_it_reads_what_it_shows(orders: Orders, model: Model) -> None:
    other = Model(orders, "part", f"SELECT * FROM {model.name.sql}")
    other.name = Name(model.name.catalog, model.name.schema, "other")
    other.refresh()
    orders.upsert([{"id": 1, "amount": 40}])
    model.refresh()
    other.refresh()
    assert columns(model, f"SELECT * FROM {other.name.sql}") == SHOWN
    assert other.rows() == model.rows()


@pytest.mark.modelled
def test_it_keeps_what_its_rows_were(orders: Orders, model: Model) -> None:
    model.config = replace(model.config, before_images=True)
    before = model.rows()
    # Group 0 changes, 1 goes, 2 stays.
    orders.apply([{"id": 3, "amount": 30}], [{"id": number} for number in range(1, 20, 3)])
    assert model.refresh() == "INCREMENTAL (sums)"
    table = as_table(model).table
    logged = model.session.query(f"SELECT _action, {', '.join(SHOWN)} FROM {table.change.sql} WHERE _txn > 0")
    found = {(action, row[0]): tuple(row) for action, *row in logged}
    assert {key: row for key, row in found.items() if key[0] == "-U"} == {
        ("-U", row[0]): row for row in before if row[0] in (0, 1)
    }
    assert sorted(key for key in found if key[0] != "-U") == [("D", 1), ("U", 0)]
    assert model.rows() == model.rows(model.sql)
    other = Model(orders, "label, part", f"SELECT label, part, amount FROM {model.name.sql}")
    other.name = model.name.sibling("other")
    other.config = replace(other.config, unique_key=("label", "part"))
    other.refresh()
    orders.upsert([{"id": 2, "amount": 32}])
    model.refresh()
    other.refresh()
    assert other.rows() == other.rows(other.sql)
    assert table.base.identifier not in other.written_by


def test_what_cannot_be_stored_is_done_without(orders: Orders) -> None:
    """A table has no intervals, but a model may show the minutes of the longest."""
    sql = f"""SELECT amount % 3 AS part, avg(amount) AS mean,
  date_part('minute', max(make_dt_interval(0, 0, amount))) AS minutes
FROM {orders.name.sql} GROUP BY amount % 3"""
    model = Model(orders, "part", sql)
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    assert as_table(model).table.hidden == ()
    orders.upsert([{"id": 60, "amount": 33}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_short_integers_are_not_kept_as_long_ones(orders: Orders) -> None:
    short = "CAST(amount AS smallint)"
    sql = (
        f"SELECT amount % 3 AS part, max({short}) - min({short}) AS spread FROM {orders.name.sql} GROUP BY 1"
    )
    model = Model(orders, "part", sql)
    model.refresh()
    assert not as_table(model).table.hidden
    orders.delete([{"id": number} for number in (7, 10, 13)])
    assert model.refresh() == "INCREMENTAL (1 key)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_names_in_capitals(orders: Orders) -> None:
    sql = f"""SELECT amount % 3 AS Part, max(amount) - min(amount) AS Spread,
  sum(CASE WHEN amount BETWEEN 5 AND 15 THEN amount END) AS S
FROM {orders.name.sql} GROUP BY amount % 3"""
    model = Model(orders, "part", sql)
    model.refresh()
    assert as_table(model).table.hidden
    assert model.refresh() == "SKIP (no upstream change)"
    orders.delete([{"id": number} for number in (7, 10, 13)])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert (1, 18, None) in model.rows()
    assert model.rows() == model.rows(model.sql)
    # Another case of a name is the same column.
    model.sql = sql.replace("AS S\n", "AS s\n").replace("Part", "PART")
    assert model.refresh() == "FULL (changed-sql)"
    orders.delete([{"id": number} for number in (5, 8, 11, 14)])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert (2, 15, None) in model.rows()


@pytest.mark.modelled
def test_rows_of_another_hand_are_put_right(orders: Orders, model: Model) -> None:
    context, name = model.session.context, model.name
    modify(context, name, parse_modification(f"DELETE FROM {name.sql} WHERE part = 1"))
    orders.upsert([{"id": 1, "amount": 4}])
    assert model.refresh() == "FULL (written-to)"
    assert model.rows() == model.rows(model.sql)
    assert model.refresh() == "SKIP (no upstream change)"
    with pytest.raises(ConfigError, match="_rows is not a column"):
        modify(context, name, parse_modification(f"UPDATE {name.sql} SET _rows = 5"))
    with pytest.raises(ConfigError, match="was built as an automatic model"):
        as_table(model).upsert_sql(model.sql)


@pytest.mark.modelled
def test_a_table_that_is_plain_again_shows_no_more(orders: Orders, model: Model) -> None:
    undo_adoption(model.session.context, model.name)
    assert columns(model, f"SELECT * FROM {model.name.sql}") == SHOWN
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_full_refresh_keeps_the_buckets_that_a_table_has_grown_to(orders: Orders, model: Model) -> None:
    assert as_table(model).table.layout.buckets == 1
    sql, context = model.sql, model.session.context
    model.config = replace(model.config, buckets=4)
    for buckets in (4, None):
        model.config = replace(model.config, buckets=buckets)
        plan = plan_refresh(
            context.catalog, model.name, model.config, sql, context.query_schema, rebuild=True
        )
        run_refresh(context, model.name, model.config, plan, owner="model.test")
        assert as_table(model).table.layout.buckets == 4
        assert as_table(model).table.hidden
