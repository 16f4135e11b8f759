"""A batch of a keyed table: its interval is replaced in one commit, whatever others commit meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import CommitStateUnknown, DuplicateKey, NullKey
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.microbatch import replace_keys

TYPES = {"id": "bigint", "day": "date", "amount": "bigint"}


def replace_day(orders: Any, day: int, rows: list[dict[str, Any]], session: Any) -> None:
    interval = Interval.of("day", f"2020-01-{day:02}", f"2020-01-{day + 1:02}")
    config = parse_config(orders.name.identifier, orders.config)
    replace_keys(session.context, orders.name, config, orders.model(rows), interval)


def row(key: int, day: int, amount: int) -> dict[str, Any]:
    return {"id": key, "day": f"2020-01-{day:02}", "amount": amount}


def test_keys_that_are_gone_from_the_interval_are_deleted_in_the_same_commit(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1), row(2, 1, 2), row(3, 2, 3), row(4, 2, 4)])
    orders.upsert([row(5, 2, 5)])
    change, _ = orders.commits()
    replace_day(orders, 2, [row(3, 2, 30), row(6, 2, 60)], shop.main)
    assert orders.rows() == [row(1, 1, 1), row(2, 1, 2), row(3, 2, 30), row(6, 2, 60)]
    assert orders.commits()[0] == change + 1
    orders.compact()
    assert orders.rows() == [row(1, 1, 1), row(2, 1, 2), row(3, 2, 30), row(6, 2, 60)]


def test_an_interval_without_rows_commits_nothing(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1), row(3, 2, 3)])
    version = orders.version
    replace_day(orders, 3, [], shop.main)
    assert orders.version == version
    replace_day(orders, 2, [], shop.main)
    assert orders.version != version
    assert orders.rows() == [row(1, 1, 1)]


def test_a_batch_of_a_new_day_reads_no_row_of_the_table(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1)])

    def reads_rows(day: int, rows: list[dict[str, Any]]) -> bool:
        replace_day(orders, day, rows, shop.main)
        (*_, write) = [one.sql for one in shop.main.statements.ran if one.step == "upsert"]
        return orders.table.base.sql in write

    assert not reads_rows(2, [row(2, 2, 2), row(3, 2, 3)])
    # The day is in the change table only, then in the base table only.
    assert reads_rows(2, [row(2, 2, 20)])
    orders.compact()
    assert reads_rows(2, [row(4, 2, 4)])
    assert not reads_rows(3, [])
    assert orders.rows() == [row(1, 1, 1), row(4, 2, 4)]


def test_a_batch_that_is_overtaken_computes_its_deletes_anew_and_not_its_rows(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1), row(2, 1, 2), row(3, 2, 3)])
    other = shop.session()
    steps = shop.main.statements.steps
    done: list[str] = []

    def overtake(step: str) -> None:
        if step == "fast_forward" and not done:
            done.append(step)
            # Key 2 moves to the other day while the batch that no longer has it is being written.
            replace_day(orders.on(other), 2, [row(2, 2, 20), row(3, 2, 30)], other)

    shop.main.statements.before = overtake
    replace_day(orders, 1, [row(1, 1, 10)], shop.main)
    assert orders.rows() == [row(1, 1, 10), row(2, 2, 20), row(3, 2, 30)]
    upserts = [made.sql for made in shop.main.statements.ran[len(steps) :] if made.step == "upsert"]
    assert ["from_json" in sql for sql in upserts] == [True, False]
    change = orders.table.change
    assert list(shop.main.catalog.load_table(change.schema, change.identifier).branches) == ["main"]


@pytest.mark.modelled
def test_a_batch_that_was_written_twice_and_is_overtaken_is_refused(shop: Any) -> None:
    """Its rows are read back from the branch, and would be there twice."""
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1), row(2, 2, 2)])
    process, other = shop.session(), shop.session()
    process.statements.run_twice(1)

    def overtake(step: str) -> None:
        if step == "fast_forward":
            process.statements.before = None
            replace_day(orders.on(other), 2, [row(2, 2, 20)], other)

    process.statements.before = overtake
    with pytest.raises(CommitStateUnknown, match="committed twice"):
        replace_day(orders.on(process), 1, [row(1, 1, 10)], process)
    assert process.statements.steps[1] == "upsert"
    assert orders.rows() == [row(1, 1, 1), row(2, 2, 20)]


@pytest.mark.modelled
def test_a_batch_that_is_cut_off_anywhere_is_all_there_or_not_at_all(shop: Any, cut_off: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1), row(2, 1, 2), row(3, 2, 3)])
    before, after = orders.rows(), [row(1, 1, 10), row(3, 2, 3), row(4, 1, 4)]
    found = []
    for at in range(4):
        process = shop.session()
        process.statements.die(at)
        with pytest.raises(cut_off):
            replace_day(orders.on(process), 1, [row(1, 1, 10), row(4, 1, 4)], process)
        found.append(orders.rows())
    assert found == [before, before, before, after]
    replace_day(orders, 1, [row(1, 1, 10), row(4, 1, 4)], shop.main)
    assert orders.rows() == after


def test_a_batch_is_checked_like_every_other(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([row(1, 1, 1)])
    with pytest.raises(DuplicateKey):
        replace_day(orders, 1, [row(2, 1, 2), row(2, 1, 3)], shop.main)
    with pytest.raises(NullKey):
        replace_day(orders, 1, [{**row(2, 1, 2), "id": None}], shop.main)
    assert orders.rows() == [row(1, 1, 1)]
