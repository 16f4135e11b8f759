"""An overwrite replaces partitions, or the table, in one commit, and touches nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dbt_arctic.errors import CommitStateUnknown, DuplicateKey
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.overwrite import overwrite
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.consumption import Consumption
from tests.extent import in_turn

TYPES = {"id": "bigint", "day": "date", "amount": "int"}
PARTITIONED = {"partition_by": "day"}


def row(key: int, day: int | None, amount: int) -> dict[str, Any]:
    return {"id": key, "day": None if day is None else f"2020-01-{day:02}", "amount": amount}


ROWS = [row(1, 1, 1), row(2, 1, 2), row(3, 2, 3), row(4, 2, 4), row(5, None, 5)]


@pytest.fixture
def days(shop: Any) -> Any:
    made = shop.table(types=TYPES, **PARTITIONED)
    made.build(ROWS)
    return made


def replace_by(orders: Any, rows: list[dict[str, Any]], session: Any = None, **config: Any) -> Any:
    at_work = orders if session is None else orders.on(session)
    settings = {**orders.config, "incremental_strategy": "insert_overwrite", **config}
    actions = any("_action" in line for line in rows)
    sql = orders.model(rows, actions=actions)
    parsed = parse_config(orders.name.identifier, settings)
    return overwrite(at_work.session.context, orders.name, parsed, sql, Consumption())


def rows_by_id(orders: Any) -> dict[int, tuple[Any, int]]:
    rows = orders.rows()
    found = {line["id"]: (line["day"], line["amount"]) for line in rows}
    assert len(found) == len(rows), "a key twice"
    return found


def as_dict(rows: list[dict[str, Any]]) -> dict[int, tuple[Any, int]]:
    return {line["id"]: (line["day"], line["amount"]) for line in rows}


@pytest.mark.modelled
def test_a_batch_that_was_staged_twice_is_refused(shop: Any) -> None:
    """Each of its rows would be in the commit twice."""
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1), row(2, 1, 2)])
    version, process = orders.version, shop.session()
    process.statements.run_twice(1)
    with pytest.raises(CommitStateUnknown, match="committed twice"):
        replace_by(orders, [row(1, 1, 10), row(3, 1, 3)], process, overwrite="table")
    assert process.statements.steps[1] == "stage"
    assert orders.version == version
    replace_by(orders, [row(1, 1, 10), row(3, 1, 3)], overwrite="table")
    assert orders.rows() == [row(1, 1, 10), row(3, 1, 3)]


def test_an_empty_batch_commits_nothing(days: Any) -> None:
    version = days.version
    assert replace_by(days, []).message == "OVERWRITE 0"
    assert days.version == version
    assert rows_by_id(days) == as_dict(ROWS)


def test_partitions_that_the_batch_has_rows_of_are_replaced(days: Any) -> None:
    days.upsert([row(6, 2, 6), row(4, 3, 40)])  # key 4 has left the day, key 6 came to it
    change, _ = days.commits()
    # 3 stays as it is, 2 moves into the day, 6 is gone from it.
    outcome = replace_by(days, [row(3, 2, 3), row(2, 2, 20), row(7, 2, 7)])
    expected = as_dict(
        [row(1, 1, 1), row(2, 2, 20), row(3, 2, 3), row(4, 3, 40), row(5, None, 5), row(7, 2, 7)]
    )
    assert rows_by_id(days) == expected
    assert outcome.message == "OVERWRITE 3", "what is alike is not written"
    assert days.commits()[0] == change + 2, "one commit, and the staged batch"
    days.compact()
    assert as_dict(days.base_rows()) == expected
    replace_by(days, [row(5, None, 50), row(8, None, 8)])
    replace_by(days, [row(8, None, 8)])
    del expected[5]
    expected[8] = (None, 8)
    assert rows_by_id(days) == expected
    # A delete alone replaces nothing.
    replace_by(days, [{"id": 7, "_action": "D"}])
    del expected[7]
    assert rows_by_id(days) == expected


@pytest.mark.parametrize("by", ["month(day)", "truncate(1, kind)"])
def test_partitions_may_be_transforms(shop: Any, by: str) -> None:
    types = {**TYPES, "kind": "string"}
    orders = shop.table(types=types, partition_by=[by])
    rows = [{**row(key, key, key), "kind": kind} for key, kind in enumerate(["ax", "ay", "bx", None, "ß"], 1)]
    rows.append({"id": 9, "day": "2020-02-01", "amount": 9, "kind": "c"})
    orders.build(rows)
    replace_by(orders, [{**row(1, 1, 10), "kind": "az"}])
    left = {key for key, _ in rows_by_id(orders).items()}
    assert left == ({1, 9} if by.startswith("month") else {1, 3, 4, 5, 9})


@pytest.mark.modelled
@pytest.mark.parametrize("config", [{}, {"overwrite": "table"}])
def test_a_table_as_a_whole(shop: Any, config: dict[str, Any]) -> None:
    orders = shop.table(types=TYPES, **(PARTITIONED if config else {}))
    orders.build(ROWS)
    orders.upsert([row(6, 2, 6)])
    consumer = shop.consumer("copy", orders)
    consumer.run()
    replace_by(orders, [row(1, 1, 1), row(6, 2, 60)], **config)
    assert rows_by_id(orders) == as_dict([row(1, 1, 1), row(6, 2, 60)])
    consumer.run()
    assert as_dict(consumer.rows()) == as_dict([row(1, 1, 1), row(6, 2, 60)])
    replace_by(orders, [], **config)
    assert rows_by_id(orders) == {}


@pytest.mark.modelled
@pytest.mark.parametrize("step", ["stage", "fast_forward"])
def test_whoever_commits_in_between_is_replaced_and_whoever_comes_later_wins(
    shop: Any, days: Any, step: str
) -> None:
    other = days.on(shop.session())

    def overtake(at: str) -> None:
        if at == step:
            shop.main.statements.before = None
            other.apply([row(8, 2, 8), row(1, 2, 10), row(9, 1, 9)], [{"id": 5}])
            other.compact()

    shop.main.statements.before = overtake
    replace_by(days, [row(3, 2, 30)])
    expected = as_dict([row(2, 1, 2), row(3, 2, 30), row(9, 1, 9)])
    assert rows_by_id(days) == expected
    days.compact()
    assert as_dict(days.base_rows()) == expected
    days.upsert([row(8, 2, 80)])
    assert rows_by_id(days) == {**expected, 8: ("2020-01-02", 80)}
    change = days.table.change
    assert set(shop.main.catalog.load_table(change.schema, change.identifier).branches) == {"main"}


@pytest.mark.modelled
@pytest.mark.parametrize("step", ["merge", "trim"])
def test_it_is_not_lost_to_a_compaction(shop: Any, days: Any, step: str) -> None:
    days.upsert([row(4, 2, 40), row(6, 2, 6)])
    process = shop.session()

    def meanwhile(at: str) -> None:
        if at == step:
            process.statements.before = None
            replace_by(days, [row(3, 2, 30)])

    process.statements.before = meanwhile
    days.on(process).compact()
    expected = as_dict([row(1, 1, 1), row(2, 1, 2), row(3, 2, 30), row(5, None, 5)])
    assert rows_by_id(days) == expected
    days.compact()
    assert as_dict(days.base_rows()) == expected


@pytest.mark.modelled
@in_turn("die", "lose_the_answer")
def test_cut_off_anywhere_it_is_all_or_nothing(
    shop: Any, days: Any, cut_off: Any, ways: Sequence[str]
) -> None:
    before = as_dict(ROWS)
    for at in range(20):
        process, ended = shop.session(), False
        getattr(process.statements, ways[at % len(ways)])(at)
        batch = [row(3, 2, 100 + at)]
        after = as_dict([*ROWS[:2], ROWS[4], *batch])
        try:
            replace_by(days, batch, process)
            ended = len(process.statements.ran) <= at
        except cut_off:
            pass
        finally:
            process.connection.close()
        assert rows_by_id(days) in (before, after)
        replace_by(days, batch)
        before = after
        assert rows_by_id(days) == after
        days.upsert([ROWS[3]])
        before = {**after, 4: as_dict(ROWS)[4]}
        if ended:
            break
    assert at == 9


@pytest.mark.modelled
def test_a_batch_is_checked_like_every_other_and_an_upsert_needs_no_rebuild(days: Any) -> None:
    with pytest.raises(DuplicateKey):
        replace_by(days, [row(2, 1, 2), row(2, 2, 3)])
    assert rows_by_id(days) == as_dict(ROWS)
    replace_by(days, [row(3, 2, 30)])
    config = parse_config("orders", days.config)
    upsert(days.session.context, days.name, config, days.model([row(3, 2, 31)]))
    assert rows_by_id(days)[3] == ("2020-01-02", 31)
