"""Commits do not land in the order of their ``_txn``: the order is that of the commits alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

ROWS = [{"id": 1, "amount": 1}, {"id": 2, "amount": 2}]


@pytest.fixture
def slow(shop: Any) -> Any:
    """A session whose transactions began an hour ago."""
    session = shop.session()
    context = session.context
    session.context = replace(context, now_ms=lambda: context.now_ms() - 3_600_000)
    return session


@pytest.fixture
def older(shop: Any) -> Any:
    """A session whose transactions began two hours ago."""
    session = shop.session()
    context = session.context
    session.context = replace(context, now_ms=lambda: context.now_ms() - 7_200_000)
    return session


@pytest.mark.modelled
def test_the_later_commit_wins_though_its_transaction_began_earlier(shop: Any, slow: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    orders.on(slow).upsert([{"id": 1, "amount": 11}])
    assert orders.rows()[0]["amount"] == 11
    orders.compact()
    assert orders.base_rows()[0]["amount"] == 11


@pytest.mark.modelled
def test_a_commit_between_merge_and_trim_stays_wherever_its_number_lies(
    shop: Any, slow: Any, older: Any
) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.on(older).upsert([{"id": 1, "amount": 10}])
    orders.upsert([{"id": 2, "amount": 20}])
    session = shop.session()

    def late(step: str) -> None:
        if step == "trim":
            orders.on(slow).upsert([{"id": 1, "amount": 11}])  # its number is between the two

    session.statements.before = late
    result = orders.on(session).compact()
    assert (result.merged, result.trimmed) == (2, 2)
    assert [row["amount"] for row in orders.rows()] == [11, 20]
    orders.compact()
    assert [row["amount"] for row in orders.base_rows()] == [11, 20]


@pytest.mark.modelled
def test_a_pull_takes_a_late_commit_once_and_only_it(shop: Any, slow: Any, older: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 2, "amount": 20}])
    copy.run()
    orders.on(slow).upsert([{"id": 1, "amount": 11}])
    orders.on(older).upsert([{"id": 1, "amount": 12}])
    _, pulls = copy.plan(False)
    assert shop.main.query(f"SELECT id, amount, _action FROM ({pulls[0].sql})") == [(1, 12, "U")]
    copy.run()
    assert [row["amount"] for row in copy.rows()] == [12, 20]
