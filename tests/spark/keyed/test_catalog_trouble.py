"""A catalog that receives a statement twice, late, or without answering: nothing is doubled or lost.

Each test repeats one operation, with a fault at one statement later each time, until the operation has no
more statements. ``run_twice``: the statement arrives a second time. ``delay``: its process dies after sending
it, the next run completes, and then it arrives. ``lose_the_answer``: it arrives, and its result is lost. Then
the next step of a user follows, and rows are compared with a dict. The long form tests each kind of fault at
each statement, the short form alternates (faults of builds are in the stories of ``tests/model``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.spark.keyed.injected_failures import ROWS, WAYS, amounts


def rows(model: dict[int, int]) -> list[dict[str, int]]:
    return [{"id": key, "amount": amount} for key, amount in sorted(model.items())]


@WAYS
@pytest.mark.long
def test_builds(shop: Any, troubled: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for at, attempt in troubled(*ways):
        model = {1: at, 20 + at: at}
        if attempt(lambda session, model=model: orders.on(session).build(rows(model))):
            assert amounts(orders) == model
            continue
        orders.build(rows(model))
        attempt.land()
        assert amounts(orders) == model
    orders.upsert([{"id": 1, "amount": 100}])
    orders.compact()
    assert amounts(orders) == {**model, 1: 100}


@WAYS
@pytest.mark.modelled
def test_upserts(shop: Any, troubled: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)
    for at, attempt in troubled(*ways):
        batch = {1: 50 + at, 20 + at: 1}
        if attempt(lambda session, batch=batch: orders.on(session).upsert(rows(batch))):
            assert amounts(orders) == {**model, **batch}
        orders.upsert(rows(batch))
        attempt.land()
        model.update(batch)
        assert amounts(orders) == model
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model


@WAYS
@pytest.mark.modelled
def test_compactions(shop: Any, troubled: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)
    for at, attempt in troubled(*ways):
        orders.apply([{"id": at, "amount": 100 + at}], [{"id": at - 1}])
        model[at] = 100 + at
        model.pop(at - 1, None)
        attempt(lambda session: orders.on(session).compact())
        assert amounts(orders) == model
        orders.upsert([{"id": 51, "amount": at}])
        model[51] = at
        if at % 2:
            orders.compact()
        attempt.land()
        assert amounts(orders) == model
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model


@WAYS
@pytest.mark.modelled
def test_pulls(shop: Any, troubled: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    for at, attempt in troubled(*ways):
        orders.apply([{"id": at, "amount": 100 + at}, {"id": 50 + at, "amount": at}], [{"id": at - 1}])
        if attempt(lambda session: copy.on(session).run()):
            assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()
        if at % 2:
            orders.upsert([{"id": 7, "amount": at}])
        copy.run()
        attempt.land()
        copy.run()
        assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()
