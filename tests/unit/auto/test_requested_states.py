"""The requests that commits record, and the requests that are expected of the next refreshes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dbt_arctic.auto import expected_requests
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.requested_states import (
    PROPERTY_REQUESTED,
    RecordedRequests,
    record_requests,
    recorded_in,
)
from dbt_arctic.auto.requests_after_build import later_requests
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.frontend.parse import named, parse
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.context import ModelsOfRun

ORDERS, LINES, PARTS = (Name("lake", "shop", name) for name in ("orders", "lines", "parts"))
TOLD = {
    LINES: RecordedRequests(("amount", "order_id"), ((ORDERS, "id"),)),
    ORDERS: RecordedRequests(("customer", "id")),
}


@dataclass
class Commit:
    summary: dict[str, str] = field(default_factory=dict)


def told_by_commits(*commits: Any) -> Any:
    return recorded_in(commits, "lake")


def test_a_commit_records_all_requests_so_far_unless_they_are_recorded() -> None:
    first = record_requests(TOLD, told_by_commits())
    assert told_by_commits(Commit(), Commit(first)) == TOLD
    again = record_requests({LINES: RecordedRequests(("amount",))}, told_by_commits(Commit(first)))
    assert again == {}
    more = record_requests(
        {LINES: RecordedRequests(("kind",), ((PARTS, "id"),))}, told_by_commits(Commit(first))
    )
    assert told_by_commits(Commit(more), Commit(first)) == {
        LINES: RecordedRequests(("amount", "kind", "order_id"), ((ORDERS, "id"), (PARTS, "id"))),
        ORDERS: TOLD[ORDERS],
    }
    # Of another query nothing carries over.
    assert told_by_commits(Commit(record_requests({ORDERS: TOLD[ORDERS]}))) == {ORDERS: TOLD[ORDERS]}
    assert json.loads(first[PROPERTY_REQUESTED])[0]["table"] == ["shop", "lines"]


def upstream(name: Name, key: tuple[str, ...], columns: str, rows: int, **more: Any) -> Upstream:
    typed = tuple((column, "int") for column in columns.split())
    told = {"keys": f"SELECT of {name}"}
    return Upstream(
        name, typed, key, Consumed("t", "2"), told, True, rows=rows, row_bytes=100, logged=True,  # type: ignore[arg-type]
        **{"changed_rows": 1000, **more},
    )  # fmt: skip


LINES_NOW = upstream(LINES, ("order_id", "line"), "order_id line amount kind", 40_000_000)
ORDERS_NOW = upstream(ORDERS, ("id",), "id customer", 10_000_000)


def test_what_a_model_will_ask_for_is_known_when_it_is_built() -> None:
    sql = (
        "SELECT o.customer, count(*) AS lines, count(l.amount) AS some, sum(l.amount) AS amount "
        "FROM orders AS o JOIN lines AS l ON l.order_id = o.id GROUP BY o.customer"
    )
    upstreams = {"orders": ORDERS_NOW, "lines": LINES_NOW}
    inputs = ModelInputs(upstreams, tree=named(parse(sql), lambda written: written))
    config = parse_config("m", {"unique_key": "customer", "incremental_strategy": "auto"})
    told = later_requests(inputs, config)
    assert set(told) == {ORDERS, LINES}
    assert told[LINES].lookup_keys == ((ORDERS, "id"),)
    assert {"order_id", "amount"} <= set(told[LINES].columns)
    assert "kind" not in told[LINES].columns
    unread = ModelInputs(upstreams, reason=Reason("not-parsed", "a construct that is not known"))
    assert later_requests(unread, config) == {}, "it is built all the same"


LAST = Consumed("t", "1")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[Name, Any]:
    """What models say, by their names. ``orders`` changed by 1,000 rows since version 1."""
    found: dict[Name, Any] = {}
    monkeypatch.setattr(expected_requests, "_recorded_by", lambda catalog, name: found.get(name, ({}, {})))
    monkeypatch.setattr(expected_requests, "find_states", lambda catalog, name: [])
    monkeypatch.setattr(expected_requests, "inspect_upstream", lambda catalog, name, last, until: ORDERS_NOW)
    return found


def asked_of_lines(said: dict[Name, Any], lines: Upstream = LINES_NOW, target: str = "mine") -> Any:
    alongside = ModelsOfRun(lambda of: [*said])
    catalog: Any = None
    return expected_requests.expected_requests(catalog, alongside, LINES.sibling(target), lines, LAST, {})


def test_requests_of_other_models_at_their_last_refresh_are_expected(said: dict[Name, Any]) -> None:
    consumed = {LINES.dotted: LAST, ORDERS.dotted: LAST}
    assert asked_of_lines(said) is None
    said[LINES.sibling("mine")] = (consumed, TOLD)
    assert asked_of_lines(said) is None, "who asks is none of the others"
    said[LINES.sibling("other")] = (consumed, {LINES: RecordedRequests(("amount", "gone"))})
    assert asked_of_lines(said) == (["amount"], [])
    said[LINES.sibling("third__state")] = (consumed, TOLD)
    assert asked_of_lines(said) == (["amount", "order_id"], [(ORDERS_NOW, "id")])


def test_others_count_that_need_the_same_changes_of_a_large_table(said: dict[Name, Any]) -> None:
    consumed = {LINES.dotted: LAST, ORDERS.dotted: LAST}
    said[LINES.sibling("other")] = ({**consumed, LINES.dotted: Consumed("t", "0")}, TOLD)
    assert asked_of_lines(said) is None
    said[LINES.sibling("other")] = (consumed, TOLD)
    assert asked_of_lines(said) is not None
    assert asked_of_lines(said, replace(LINES_NOW, rows=1000)) is None
    assert asked_of_lines(said, replace(LINES_NOW, changed_rows=10**7)) == (["amount", "order_id"], [])
