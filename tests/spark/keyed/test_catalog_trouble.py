"""A catalog that answers twice, late or not at all: nothing is doubled, nothing is lost.

Each test repeats one operation, and something happens to a statement one place later each time, until the
operation has no such statement. ``run_twice``: the statement arrives a second time. ``delay``: its process
dies after it has sent it, the next run goes through, and then it arrives. ``lose_the_answer``: it arrives,
and nobody is told. The next thing that a user would do follows, and rows are compared with a dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

ROWS = [{"id": number, "amount": number} for number in range(4)]
WAYS = pytest.mark.parametrize("way", ["run_twice", "delay", "lose_the_answer"])
MOST = 20


def rows(model: dict[int, int]) -> list[dict[str, int]]:
    return [{"id": key, "amount": amount} for key, amount in sorted(model.items())]


def amounts(orders: Any) -> dict[int, int]:
    found = orders.rows()
    made = {row["id"]: row["amount"] for row in found}
    assert len(found) == len(made), "a key twice"
    return made


@pytest.fixture
def troubled(shop: Any, cut_off: Any) -> Callable[..., Iterator[tuple[int, Callable[..., bool]]]]:
    """For each statement that there is: its place, and a function that runs the operation in trouble.

    ``attempt(run)`` says whether ``run(session)`` came to its end. What it had sent last arrives with
    ``attempt.land``. Of several ways, the next statement has the next one.
    """

    def places(*ways: str, first: int = 0, every: int = 1) -> Iterator[tuple[int, Any]]:
        for at in range(first, MOST, every):
            attempt = Attempt(shop, cut_off, ways[at % len(ways)], at)
            yield at, attempt
            attempt.session.connection.close()
            if len(attempt.session.statements.ran) <= at and not attempt.session.statements.late:
                assert at > 0, "an operation without a statement"
                return
        raise AssertionError(f"more than {MOST} statements")

    return places


class Attempt:
    """One operation, in trouble at one statement."""

    def __init__(self, shop: Any, cut_off: Any, way: str, at: int) -> None:
        self.session = shop.session()
        self._cut_off = cut_off
        getattr(self.session.statements, way)(at)

    def __call__(self, run: Callable[[Any], Any]) -> bool:
        try:
            run(self.session)
        except self._cut_off:
            return False
        return True

    def land(self) -> None:
        if self.session.statements.late:
            self.session.statements.land()


@WAYS
def test_builds(shop: Any, troubled: Any, way: str) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for at, attempt in troubled(way):
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
def test_upserts(shop: Any, troubled: Any, way: str) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)
    for at, attempt in troubled(way):
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
def test_compactions(shop: Any, troubled: Any, way: str) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)
    for at, attempt in troubled(way):
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
def test_pulls(shop: Any, troubled: Any, way: str) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    for at, attempt in troubled(way):
        orders.apply([{"id": at, "amount": 100 + at}, {"id": 50 + at, "amount": at}], [{"id": at - 1}])
        if attempt(lambda session: copy.on(session).run()):
            assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()
        if at % 2:
            orders.upsert([{"id": 7, "amount": at}])
        copy.run()
        attempt.land()
        copy.run()
        assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()
