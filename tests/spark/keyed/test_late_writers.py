"""What a writer sees whose table was rebuilt under it with other columns, another type or another key.

Its rows arrive, or everybody is told until a person decides: no later run goes on as if they had never been.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.errors import ArcticError, ConcurrentRun
from dbt_arctic.maintenance.restore import undo_full_refresh

OLD = [{"id": 1, "amount": "1"}]
NEW = [{"id": 2, "amount": 2}]
LATE = [{"id": 7, "amount": "seven"}]


@pytest.fixture
def orders(shop: Any) -> Any:
    made = shop.table(types={"id": "bigint", "amount": "string"})
    made.build(OLD)
    return made


def during(session: Any, action: Callable[[], Any]) -> Any:
    """A session beside whose upsert, before it lands, something else happens."""

    def before(step: str) -> None:
        if step == "upsert":
            session.statements.before = None
            action()

    session.statements.before = before
    return session


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
        ({"id": "bigint", "amount": "int"}, {}, "CANNOT_SAFELY_CAST"),
        ({"id": "bigint", "amount": "string"}, {"unique_key": "amount"}, "the key changed"),
    ],
    ids=["type", "key"],
)
def test_rows_that_the_new_table_cannot_take_wait_for_a_person(
    shop: Any, orders: Any, types: dict[str, str], config: dict[str, str], why: str
) -> None:
    new = orders.with_types(types).configured(**config)
    late = during(shop.session(), lambda: new.build(NEW))
    with pytest.raises(ArcticError, match=why):
        orders.on(late).upsert(LATE)
    told = rf"(?s)what landed in .*orders__change_1 .*{why}.*--full-refresh.*restore .*orders --previous"
    for _ in range(2):
        with pytest.raises(ConcurrentRun, match=told):
            new.upsert([{"id": 8, "amount": 8}])
    shown = new.rows()
    assert [int(row["amount"]) for row in shown] == [2]

    undo_full_refresh(shop.main.edge, orders.name)
    assert orders.rows() == [*OLD, *LATE], "nothing was lost"
    new.build(NEW)
    new.upsert([{"id": 8, "amount": 8}])
    assert [int(row["amount"]) for row in new.rows()] == [2, 8]
