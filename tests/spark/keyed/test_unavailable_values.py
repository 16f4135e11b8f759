"""Rows that lack values which did not change: the stored value stays, in whatever batches the events come."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError, ValueUnknown
from tests.extent import extent

Row = dict[str, Any]
TYPES = {"id": "bigint", "seq": "int", "amount": "int", "body": "string"}
STORIES, STEPS = extent(6, 60), 8


@pytest.fixture
def orders(shop: Any) -> Any:
    return shop.table("orders", TYPES, sequence_by="seq")


def lacking(orders: Any) -> Any:
    """The table from the view of a model whose rows may lack values."""
    return orders.with_types({**TYPES, "_unavailable": "array<string>"})


def event(id_: int, seq: int, amount: int | None, body: str | None, *missing: str) -> Row:
    row = {"id": id_, "seq": seq, "amount": amount, "body": body}
    return {**row, **dict.fromkeys(missing), "_unavailable": list(missing) or None}


@pytest.mark.modelled
@pytest.mark.parametrize("seed", range(STORIES))
def test_random_stories_end_as_the_source(orders: Any, seed: int) -> None:
    """Events arrive first in their order, and may be repeated at any later time, in batches of any size."""
    chance = random.Random(seed)
    source: dict[int, Row] = {}
    log: list[Row] = []

    def change() -> None:
        id_, seq = chance.randrange(4), len(log) + 1
        amount, body = chance.choice([None, 1, 2]), chance.choice([None, "a", "b"])
        if id_ in source and chance.random() < 0.25:
            del source[id_]
            log.append({**event(id_, seq, None, None), "_action": "D"})
        elif id_ in source and chance.random() < 0.7:
            missing = chance.choice([("body",), ("amount",), ("amount", "body")])
            new = event(id_, seq, amount, body)
            source[id_] = {**{name: new[name] for name in TYPES}, **{n: source[id_][n] for n in missing}}
            log.append({**event(id_, seq, amount, body, *missing), "_action": "U"})
        else:
            log.append({**event(id_, seq, amount, body), "_action": "U"})
            source[id_] = {name: log[-1][name] for name in TYPES}

    delivered = 0
    for step in range(STEPS):
        for _ in range(chance.randrange(1, 7)):
            change()
        again = chance.sample(log[:delivered], min(delivered, chance.randrange(4)))
        batch = [*log[delivered:], *again]
        chance.shuffle(batch)
        delivered = len(log)
        model = lacking(orders).model(batch, actions=True)
        if step == 0:
            orders.build_sql(model)
        else:
            orders.upsert_sql(model)
        if chance.random() < 0.3:
            orders.compact()
        assert orders.rows() == [source[key] for key in sorted(source)], (seed, step)


@pytest.mark.modelled
def test_a_value_that_was_never_sent_is_an_error(orders: Any) -> None:
    with pytest.raises(ValueUnknown, match="lacks the value of body"):
        orders.build_sql(lacking(orders).model([event(1, 1, 1, None, "body")]))
    lacking(orders).build([event(1, 1, 1, "a")])
    with pytest.raises(ValueUnknown, match="lacks the value of body"):
        lacking(orders).upsert([event(2, 5, 1, None, "body")])
    orders.delete([{"id": 1, "seq": 9}])
    lacking(orders).upsert([event(1, 5, 1, None, "body")])  # it loses against the delete
    assert orders.rows() == []


@pytest.mark.modelled
def test_it_needs_an_order(shop: Any) -> None:
    plain = shop.table("plain", TYPES)
    with pytest.raises(ConfigError, match="sequence_by"):
        lacking(plain).build([event(1, 1, 1, "a")])
