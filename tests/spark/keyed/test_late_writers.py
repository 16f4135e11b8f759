"""Writers whose table was rebuilt in the meantime with other columns, another type or another key.

Their rows arrive, or every run fails until the user decides. No later run continues without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.errors import ArcticError, ConcurrentRun
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.leftovers import Retention, find_leftovers
from dbt_arctic.maintenance.restore import undo_full_refresh
from tests.spark.keyed.conftest import Killed

OLD = [{"id": 1, "amount": "1"}]
NEW = [{"id": 2, "amount": 2}]
LATE = [{"id": 7, "amount": "seven"}]


@pytest.fixture
def orders(shop: Any) -> Any:
    made = shop.table(types={"id": "bigint", "amount": "string"})
    made.build(OLD)
    return made


def during(session: Any, action: Callable[[], Any]) -> Any:
    """A session during whose upsert another operation happens before it lands."""

    def before(step: str) -> None:
        if step == "upsert":
            session.statements.before = None
            action()

    session.statements.before = before
    return session


@pytest.mark.modelled
def test_a_new_column_is_null_and_a_dropped_one_is_left_out(shop: Any, orders: Any) -> None:
    wide = orders.with_types({**orders.types, "note": "string"})
    late = during(shop.session(), lambda: wide.build([{"id": 1, "amount": "2", "note": "n"}]))
    orders.on(late).upsert([{"id": 1, "amount": "3"}, {"id": 5, "amount": "5"}])
    assert wide.rows() == [
        {"id": 1, "amount": "3", "note": None},
        {"id": 5, "amount": "5", "note": None},
    ]
    narrow = orders.with_types({"id": "bigint"})
    during(late, lambda: narrow.build([{"id": 1}]))
    wide.on(late).upsert([{"id": 6, "amount": "6", "note": "late"}])
    assert narrow.rows() == [{"id": 1}, {"id": 6}]


@pytest.mark.parametrize(
    ("types", "config", "why"),
    [
        ({"id": "bigint", "amount": "int"}, {}, "amount is string"),
        ({"id": "bigint", "amount": "string"}, {"unique_key": "amount"}, "the key changed"),
        ({"id": "string", "amount": "string"}, {}, "the type of id changed"),
    ],
    ids=["type", "key", "key-type"],
)
@pytest.mark.modelled
def test_rows_that_the_new_table_cannot_take_wait_for_a_person(
    shop: Any, orders: Any, types: dict[str, str], config: dict[str, str], why: str
) -> None:
    new = orders.with_types(types).configured(**config)
    late = during(shop.session(), lambda: new.build(NEW))
    with pytest.raises(ArcticError, match=why):
        orders.on(late).upsert(LATE)
    told = rf"(?s)commits to .*orders__change_1 .*{why}.*--full-refresh.*restore .*orders --previous"
    for _ in range(2):
        with pytest.raises(ConcurrentRun, match=told):
            new.upsert([{"id": 8, "amount": 8}])
    shown = new.rows()
    assert [int(row["amount"]) for row in shown] == [2]
    assert week_old(shop.main) == ["late-rows", "late-rows"], "clean leaves them"

    undo_full_refresh(shop.main.context, orders.name)
    assert orders.rows() == [*OLD, *LATE], "nothing was lost"
    new.build(NEW)
    new.upsert([{"id": 8, "amount": 8}])
    assert [int(row["amount"]) for row in new.rows()] == [2, 8]
    assert "late-rows" not in week_old(shop.main)


def week_old(session: Any) -> list[str]:
    """The removal of the previous generation, once it is old enough."""
    inventory = take_inventory(session.catalog, "lake", session.schema)
    found = find_leftovers(inventory, session.context.now_ms() + 8 * 24 * 3600 * 1000, Retention())
    assert not found.removals or not found.kept
    return [one.kind for one in (*found.removals, *found.kept)]


@pytest.mark.modelled
def test_rows_that_are_still_to_come_outlive_a_clean_up_and_an_erasure(shop: Any, orders: Any) -> None:
    """Their writer died when they had landed. What says that they are to be replayed, an erasure lets go."""
    late = shop.session()

    def before(step: str) -> None:
        if step == "upsert":
            late.statements.before = None
            late.statements.die(1)
            orders.build(OLD)

    late.statements.before = before
    with pytest.raises(Killed):
        orders.on(late).upsert(LATE)
    assert (orders.rows(), week_old(shop.main)) == (OLD, ["late-rows", "late-rows"])
    context = shop.main.context
    erase_keys(context, plan_by_values(context, orders.name, [("id", "1")]))
    assert orders.rows() == LATE
    orders.upsert(OLD)
    assert (orders.rows(), week_old(shop.main)) == ([*OLD, *LATE], ["previous", "previous"])
