"""Going back with ``sequence_by``: what was then is shown again, and rows that come late keep their order.

The table is a dict in each test; a consumer that pulls has to follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ConcurrentRun, ConstraintBroken, VersionUnavailable
from dbt_arctic.maintenance.provenance import explain_row
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.timeline import history
from dbt_arctic.refresh.clone import cloned_rows
from dbt_arctic.refresh.config import parse_config

Row = dict[str, Any]
TYPES = {"id": "bigint", "seq": "int", "amount": "int"}


def row(id_: int, seq: int, amount: int) -> Row:
    return {"id": id_, "seq": seq, "amount": amount}


def deletion(id_: int, seq: int) -> Row:
    return {"id": id_, "seq": seq}


def of(rows: list[Row]) -> dict[int, tuple[int, int]]:
    found = {one["id"]: (one["seq"], one["amount"]) for one in rows}
    assert len(found) == len(rows), "a key twice"
    return found


def at(session: Any, step: str, action: Callable[[], Any]) -> None:
    """Let others act once, right before a statement of a session."""

    def before(now: str) -> None:
        if now == step:
            session.statements.before = None
            action()

    session.statements.before = before


@pytest.fixture
def orders(shop: Any) -> Any:
    """Three rows, of which one was deleted since; the delete is merged and remembered."""
    made = shop.table("orders", TYPES, sequence_by="seq")
    made.build([row(1, 5, 50), row(2, 5, 60), row(3, 5, 70)])
    made.delete([deletion(2, 8)])
    made.compact()
    return made


THEN = {1: (5, 50), 3: (5, 70)}


@pytest.mark.modelled
def test_late_rows_keep_their_order_and_consumers_follow(shop: Any, orders: Any) -> None:
    context, consumer = shop.main.context, shop.consumer("copy", orders)
    consumer.run()

    def followed(model: dict[int, tuple[int, int]]) -> bool:
        assert consumer.run() == "upserted"
        return of(consumer.rows()) == model

    then = orders.version.token
    orders.apply([row(1, 9, 90), row(4, 9, 1)], [deletion(3, 9)])
    newest = {1: (9, 90), 4: (9, 1)}
    assert of(orders.rows()) == newest
    assert followed(newest)

    done = roll_back(context, orders.name, then)
    assert (done.rows, done.to.token) == (2, then)
    assert of(orders.rows()) == THEN
    assert followed(THEN)
    told = history(shop.main.catalog, orders.name)
    assert [(entry.kind, entry.rows) for entry in told[:2]] == [("upsert", 1), (f"rollback to {then}", 2)]
    steps = explain_row(context, orders.name, ["id=1"]).steps
    assert [step.change.kind for step in steps][:2] == [f"rollback to {then}", "upsert"]
    # A row that is older than what was undone, one that its delete knows, one that has lost by itself.
    orders.upsert([row(1, 6, 66), row(2, 7, 1), row(3, 4, 1)])
    later = {1: (6, 66), 3: (5, 70)}
    assert of(orders.rows()) == later
    assert followed(later)
    orders.compact()
    assert of(orders.base_rows()) == later

    roll_back(context, orders.name, done.before.token)
    assert of(orders.rows()) == newest
    assert followed(newest)
    orders.upsert([row(3, 8, 1), row(2, 7, 1), row(4, 8, 1)])
    assert of(orders.rows()) == newest, "the deletes of then are remembered, too"


@pytest.mark.modelled
def test_what_lands_meanwhile_is_kept_and_another_build_waits(shop: Any, orders: Any, cut_off: Any) -> None:
    then = orders.version.token
    orders.upsert([row(1, 9, 90)])
    for count in (3, 7):
        session = shop.session()
        session.statements.die(count)
        with pytest.raises(cut_off):
            roll_back(session.context, orders.name, then)
        assert of(orders.rows()) == {**THEN, 1: (9, 90)}
    session = shop.session()

    def meanwhile() -> None:
        orders.apply([row(1, 6, 66), row(2, 7, 1), row(5, 1, 1)], [deletion(3, 4)])
        with pytest.raises(ConcurrentRun):
            orders.build([])
        with pytest.raises(ConcurrentRun):
            roll_back(shop.main.context, orders.name, then)

    first = [row(6, 1, 1)]

    def schema_of(sql: str) -> Any:
        while first:
            orders.upsert([first.pop()])  # the version is chosen, and nothing is begun
        return session.connection.query_schema(sql)

    at(session, "publish_view", meanwhile)
    roll_back(replace(session.context, query_schema=schema_of), orders.name, then)
    assert of(orders.rows()) == {1: (6, 66), 3: (5, 70), 5: (1, 1), 6: (1, 1)}


@pytest.mark.modelled
def test_what_was_undone_is_pulled_again(shop: Any) -> None:
    source = shop.table("source", TYPES)
    source.build([row(1, 1, 10), row(2, 1, 20)])
    middle = shop.consumer("middle", source, sequence_by="seq")
    middle.run()
    first = middle.orders.version.token
    source.apply([row(1, 2, 11)], [{"id": 2, "seq": 3}])
    middle.run()
    assert of(middle.rows()) == {1: (2, 11)}
    roll_back(shop.main.context, middle.orders.name, first)
    assert of(middle.rows()) == {1: (1, 10), 2: (1, 20)}
    assert (middle.run(), of(middle.rows())) == ("upserted", {1: (2, 11)})


@pytest.mark.modelled
def test_what_an_older_version_cannot_mean_now_is_refused(shop: Any, orders: Any) -> None:
    then = orders.version.token
    orders.upsert([row(3, 9, 9), {**row(1, 9, 0), "amount": None}])
    null = orders.version.token
    orders.upsert([row(1, 10, 1)])
    view = orders.name.sql
    shop.main.query(f"ALTER VIEW {view} SET TBLPROPERTIES ('arctic.required' = '[\"amount\"]')")
    with pytest.raises(ConstraintBroken):
        roll_back(shop.main.context, orders.name, null)
    orders.configured(sequence_by="amount").build([row(1, 1, 1)])
    with pytest.raises(VersionUnavailable, match="its order was seq in that version and is amount now"):
        roll_back(shop.main.context, orders.name, then)
    assert of(orders.rows()) == {1: (1, 1)}


@pytest.mark.modelled
def test_a_clone_remembers_what_its_source_has_deleted(shop: Any, orders: Any) -> None:
    rows = cloned_rows(shop.main.catalog, orders.name, "copy")
    copy = shop.table("copy", TYPES, sequence_by="seq")
    copy.build_sql(rows.sql_for(parse_config("copy", copy.config)))
    copy.upsert([row(2, 7, 1), row(1, 4, 1)])
    assert of(copy.rows()) == THEN
    copy.upsert([row(2, 9, 1)])
    assert of(copy.rows()) == {**THEN, 2: (9, 1)}
    for other in ({"sequence_by": "amount"}, {"sequence_by": None}, {"unique_key": ["id", "seq"]}):
        assert rows.sql_for(parse_config("copy", copy.configured(**other).config)) == rows.sql
