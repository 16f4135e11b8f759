"""An upsert of some columns: the others keep their values, whichever run wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError, ConstraintBroken, SchemaChanged, StatementError
from dbt_arctic.keyed.checks import Check
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.upsert import computed_upsert
from dbt_arctic.store.consumption import Consumption
from tests.extent import extent, in_turn

TYPES = {"id": "bigint", "amount": "int", "note": "string"}
ROWS = [{"id": number, "amount": number, "note": f"n{number}"} for number in range(4)]


def only(orders: Any, column: str) -> Any:
    """The table from the view of a model that produces one column in addition to the key."""
    narrow = orders.with_types({"id": "bigint", column: TYPES[column]})
    return narrow.configured(merge_update_columns=[column])


@pytest.fixture
def orders(shop: Any) -> Any:
    made = shop.table(types=TYPES)
    made.build(ROWS)
    return made


def amounts_and_notes(orders: Any) -> dict[int, tuple[Any, Any]]:
    rows = orders.rows()
    found = {row["id"]: (row["amount"], row["note"]) for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


@pytest.mark.modelled
def test_what_a_model_does_not_name_is_kept_and_of_a_new_row_null(shop: Any, orders: Any) -> None:
    consumer = shop.consumer("copy", orders)
    consumer.run()
    orders.upsert([{"id": 1, "amount": 10, "note": "pending"}])
    outcome = only(orders, "amount").upsert(
        [{"id": 1, "amount": 11}, {"id": 2, "amount": 12}, {"id": 9, "amount": 9}]
    )
    assert outcome.message == "UPSERT 3"
    model = {0: (0, "n0"), 1: (11, "pending"), 2: (12, "n2"), 3: (3, "n3"), 9: (9, None)}
    assert amounts_and_notes(orders) == model
    only(orders, "amount").delete([{"id": 3}])
    only(orders, "amount").upsert([{"id": 3, "amount": 33}])
    model[3] = (33, None)
    assert amounts_and_notes(orders) == model
    orders.compact()
    assert amounts_and_notes(orders) == model
    consumer.run()
    assert {row["id"]: (row["amount"], row["note"]) for row in consumer.rows()} == model


@pytest.mark.modelled
def test_excluded_columns_are_only_written_with_a_new_row(orders: Any) -> None:
    first = orders.configured(merge_exclude_columns="note", deduplicate_by="amount", delete_when="amount < 0")
    first.upsert(
        [
            {"id": 1, "amount": 10, "note": "late"},
            {"id": 1, "amount": 9, "note": "older"},
            {"id": 7, "amount": 7, "note": "new"},
            {"id": 2, "amount": -1, "note": "gone"},
        ]
    )
    assert amounts_and_notes(orders) == {0: (0, "n0"), 1: (10, "n1"), 3: (3, "n3"), 7: (7, "new")}


def test_an_empty_batch_commits_nothing(orders: Any) -> None:
    version = orders.version
    assert only(orders, "amount").upsert([]).message == "UPSERT 0"
    assert orders.version == version


def test_a_batch_that_is_refused_changes_no_column(orders: Any) -> None:
    wider = orders.with_types({"id": "bigint", "amount": "bigint", "new": "string"})
    rows = [{"id": 1, "amount": 1, "new": "x"}]
    for settings, message in (
        ({"merge_exclude_columns": "amount"}, "does not return note"),
        ({"merge_update_columns": ["amount", "note"]}, "does not return note"),
    ):
        refused = wider.configured(on_schema_change="append_new_columns", **settings)
        with pytest.raises(ConfigError, match=message):
            refused.upsert(rows)
    complete = orders.with_types({**TYPES, "new": "string"})
    for settings in ({"delete_when": "nothing > 1"}, {"deduplicate_by": "nothing"}):
        with pytest.raises(StatementError, match="nothing"):
            complete.configured(on_schema_change="append_new_columns", **settings).upsert(
                [{**ROWS[1], "new": "x"}]
            )
    assert {name: orders.table.types[name] for name in orders.table.column_names} == TYPES
    assert amounts_and_notes(orders) == {row["id"]: (row["amount"], row["note"]) for row in ROWS}


@pytest.mark.modelled
def test_with_a_sequence_a_row_wins_or_loses_as_a_whole(shop: Any) -> None:
    types = {**TYPES, "at": "int"}
    orders = shop.table(types=types, sequence_by="at")
    orders.build([{"id": 1, "amount": 1, "note": "a", "at": 5}, {"id": 2, "amount": 2, "note": "b", "at": 5}])
    narrow = orders.with_types({"id": "bigint", "amount": "int", "at": "int"})
    narrow = narrow.configured(merge_update_columns=["amount"])
    narrow.upsert([{"id": 1, "amount": 10, "at": 6}, {"id": 2, "amount": 20, "at": 4}])
    narrow.apply([], [{"id": 1, "at": 8}])
    narrow.upsert([{"id": 1, "amount": 11, "at": 7}])
    assert orders.rows() == [{"id": 2, "amount": 2, "note": "b", "at": 5}]
    narrow.upsert([{"id": 1, "amount": 12, "at": 9}])
    rows = [{"id": 1, "amount": 12, "note": None, "at": 9}, {"id": 2, "amount": 2, "note": "b", "at": 5}]
    assert orders.rows() == rows
    orders.compact()
    assert orders.base_rows() == rows


@pytest.mark.parametrize(
    ("by", "step"),
    [
        ("another column", "create_branch"),
        ("another column", "fast_forward"),
        ("whole rows", "upsert"),
        ("a delete", "fast_forward"),
    ],
)
@pytest.mark.modelled
def test_two_writers_of_different_columns_lose_nothing(shop: Any, orders: Any, by: str, step: str) -> None:
    other = orders.on(shop.session())
    expected = {0: (0, "n0"), 1: (10, "n1"), 2: (20, "n2"), 3: (3, "n3")}

    def overtake(at: str) -> None:
        if at == step:
            shop.main.statements.before = None
            if by == "another column":
                only(other, "note").upsert([{"id": 1, "note": "mine"}])
            elif by == "whole rows":
                other.upsert([{"id": 1, "amount": 5, "note": "mine"}])
            else:
                other.delete([{"id": 1}])

    shop.main.statements.before = overtake
    only(orders, "amount").upsert([{"id": 1, "amount": 10}, {"id": 2, "amount": 20}])
    expected[1] = (10, None) if by == "a delete" else (10, "mine")
    assert amounts_and_notes(orders) == expected


@in_turn("die", "lose_the_answer")
@pytest.mark.modelled
def test_cut_off_anywhere_it_is_all_or_nothing(
    shop: Any, orders: Any, cut_off: Any, ways: Sequence[str]
) -> None:
    model = amounts_and_notes(orders)
    # In memory (tests/model) it is cut off anywhere; the short form has the write and its publication.
    for turn, at in enumerate(extent([2, 4, 4, 6], list(range(20)))):
        process = shop.session()
        getattr(process.statements, ways[turn % len(ways)])(at)
        batch, ended = [{"id": 1, "amount": 100 + turn}, {"id": 20 + turn, "amount": 1}], False
        try:
            only(orders.on(process), "amount").upsert(batch)
            ended = len(process.statements.ran) <= at
        except cut_off:
            pass
        finally:
            process.connection.close()
        written = {**model, 1: (100 + turn, "n1"), 20 + turn: (1, None)}
        assert amounts_and_notes(orders) in (model, written), "all of a batch or nothing"
        only(orders, "amount").upsert(batch)
        model = written
        assert amounts_and_notes(orders) == model
        if ended:
            break
    assert at == 6


def test_the_table_is_joined_where_it_lies(shop: Any) -> None:
    orders = shop.table(types=TYPES, buckets=4)
    orders.build_sql("SELECT id, CAST(id AS INT) AS amount, CAST(id AS STRING) AS note FROM range(3000)")
    orders.upsert_sql("SELECT id, 0 AS amount, 'x' AS note FROM range(600)")
    shop.main.plans_as_for_users()
    shop.main.query("SET spark.sql.autoBroadcastJoinThreshold = -1")
    plans: list[str] = []

    def explain(step: str, sql: str, table: Any = None) -> int | None:
        if step == "upsert":
            plans.append(shop.main.query(f"EXPLAIN {sql}")[0][0])
        return shop.main.statements(step, sql, table)

    shop.main.context = replace(shop.main.context, run=explain)
    only(orders, "amount").upsert_sql("SELECT id, CAST(-1 AS INT) AS amount FROM range(10, 3010, 3)")
    after_join = plans[0][plans[0].index("Join") :]
    exchanges = re.findall(r"Exchange \w+", after_join)
    assert exchanges == ["Exchange keygroupedpartitioning"], "the batch is brought to the table's buckets"
    written = set(range(10, 3010, 3))
    amounts = {**{key: key for key in range(600, 3000)}, **dict.fromkeys(written, -1)}
    rows = shop.main.query(f"SELECT count(*), sum(amount), count(note) FROM {orders.name.sql}")
    assert rows == [(len(written | set(range(3000))), sum(amounts.values()), 3000)]


@pytest.mark.modelled
def test_constraints_hold_for_the_completed_row(shop: Any, orders: Any) -> None:
    narrow = only(orders, "amount")
    check = Check("not_null on note", "NOT NULL", "`note` IS NULL")
    config = replace(parse_config("orders", narrow.config), checks=(check,))

    def write(rows: list[dict[str, Any]]) -> None:
        computed_upsert(shop.main.context, orders.name, config, narrow.model(rows), Consumption())

    write([{"id": 1, "amount": 10}])
    with pytest.raises(ConstraintBroken, match="note"):
        write([{"id": 2, "amount": 20}, {"id": 50, "amount": 5}])
    assert amounts_and_notes(orders) == {0: (0, "n0"), 1: (10, "n1"), 2: (2, "n2"), 3: (3, "n3")}


@pytest.mark.modelled
def test_a_late_row_of_a_deleted_key_loses_and_breaks_no_constraint(shop: Any) -> None:
    types = {**TYPES, "at": "int"}
    orders = shop.table(types=types, sequence_by="at")
    orders.build([{"id": key, "amount": key, "note": "a", "at": 5} for key in (1, 2)])
    orders.delete([{"id": 1, "at": 8}])
    orders.compact()
    narrow = orders.with_types({"id": "bigint", "amount": "int", "at": "int"})
    narrow = narrow.configured(merge_update_columns=["amount"])
    check = Check("not_null on note", "NOT NULL", "`note` IS NULL")
    config = replace(parse_config("orders", narrow.config), checks=(check,))

    def write(*rows: dict[str, Any]) -> None:
        computed_upsert(shop.main.context, orders.name, config, narrow.model(rows), Consumption())

    write({"id": 1, "amount": 10, "at": 7}, {"id": 2, "amount": 20, "at": 6})
    assert orders.rows() == [{"id": 2, "amount": 20, "note": "a", "at": 6}]
    with pytest.raises(ConstraintBroken, match="note"):
        write({"id": 1, "amount": 10, "at": 9})
    write({"id": 1, "amount": 10, "at": 8})
    assert [row["id"] for row in orders.rows()] == [2], "of one value a delete wins"


@pytest.mark.modelled
def test_a_column_that_would_be_lost_in_silence_is_an_error(orders: Any) -> None:
    narrow = orders.with_types({"id": "bigint", "amount": "int"})
    row = [{"id": 1, "amount": 1}]
    with pytest.raises(SchemaChanged, match="note"):
        narrow.upsert(row)
    with pytest.raises(ConfigError, match="does not return note"):
        narrow.configured(merge_update_columns=["amount", "note"]).upsert(row)
    with pytest.raises(ConfigError, match="does not return note"):
        narrow.configured(merge_exclude_columns=["amount"]).upsert(row)
    with pytest.raises(ConfigError, match="not a column"):
        narrow.configured(merge_update_columns=["amuont"]).upsert(row)
    with pytest.raises(SchemaChanged, match="sync_all_columns"):
        narrow.configured(merge_update_columns=["amount"], on_schema_change="sync_all_columns").upsert(row)
    assert amounts_and_notes(orders)[1] == (1, "n1")
