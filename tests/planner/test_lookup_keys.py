"""Which scans need only the rows that match changed keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    KeySemiJoin,
    LookupKeys,
    Node,
    Project,
    Scan,
    ScannedColumn,
    State,
    UnionAll,
    scans,
)
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.delta.lookup_keys import with_lookup_keys
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

FACTS = Facts(
    {
        "orders": UpstreamFacts(True, ("id",), 1_000_000, 1_000),
        "lines": UpstreamFacts(True, ("order_id", "line"), 4_000_000, 4_000),
        "customers": UpstreamFacts(False, ("id",), 10_000, 0),
    }
)
BY_ORDERS: LookupKeys = frozenset([("orders", "id")])
BY_LINES: LookupKeys = frozenset([("lines", "order_id")])


def scanned(**names: str) -> tuple[ScannedColumn, ...]:
    """Scanned columns: the stored name of each identifier."""
    return tuple(map(ScannedColumn, names, names.values()))


def orders(state: State = "new") -> Scan:
    return Scan("orders", "o", scanned(o_id="id", o_customer="customer"), state)


def lines(state: State = "new") -> Scan:
    return Scan("lines", "l", scanned(l_order="order_id", l_line="line", l_amount="amount"), state)


def same(one: str, other: str) -> exp.Expression:
    return exp.EQ(this=column(one), expression=column(other))


def lookups(node: Node, facts: Facts = FACTS, values: dict[str, Node] | None = None) -> dict[str, LookupKeys]:
    """By source, what the scans of a query are met by; those that say nothing are left out."""
    return {
        one.source: one.lookup_keys for one in scans(with_lookup_keys(node, facts, values)) if one.lookup_keys
    }


JOINED = same("o_id", "l_order")


@pytest.mark.parametrize("state", ["changed", "plus", "minus", "weighted", "keys"])
def test_the_lines_of_changed_orders_are_looked_up(state: State) -> None:
    assert lookups(Join(orders(state), lines(), "inner", (JOINED,))) == {"lines": BY_ORDERS}
    assert lookups(Join(lines("old"), orders(state), "inner", (JOINED,))) == {"lines": BY_ORDERS}


def test_orders_are_looked_up_by_the_changed_lines() -> None:
    assert lookups(Join(lines("weighted"), orders("old"), "inner", (JOINED,))) == {"orders": BY_LINES}


@pytest.mark.parametrize(
    ("kind", "left_is_told", "right_is_told"),
    [
        ("inner", True, True),
        ("semi", True, True),
        ("left", False, True),
        ("right", True, False),
        ("full", False, False),
    ],
)
def test_all_rows_of_a_preserved_side_are_read(
    kind: JoinKind, left_is_told: bool, right_is_told: bool
) -> None:
    assert bool(lookups(Join(lines(), orders("changed"), kind, (JOINED,)))) == left_is_told
    assert bool(lookups(Join(orders("changed"), lines(), kind, (JOINED,)))) == right_is_told


def test_the_null_supplying_side_of_a_join_is_not_restricted_by_it() -> None:
    inner = Join(Scan("customers", "c", scanned(c_id="id")), lines(), "left", (same("c_id", "l_line"),))
    assert lookups(Join(orders("changed"), inner, "inner", (JOINED,))) == {}
    turned = Join(lines(), Scan("customers", "c", scanned(c_id="id")), "left", (same("c_id", "l_line"),))
    assert lookups(Join(orders("changed"), turned, "inner", (JOINED,))) == {"lines": BY_ORDERS}


def test_values_of_several_sources_are_looked_up_together() -> None:
    items = (("k", column("l_order")),)
    both = UnionAll(
        (Project(orders("keys"), (("k", column("o_id")),)), Project(lines("keys"), items)), ("k",)
    )
    found = lookups(KeySemiJoin(lines(), both, ((column("l_order"), "k"),)))
    assert found == {"lines": BY_ORDERS | BY_LINES}
    mixed = replace(both, children=(both.children[0], Project(lines(), items)))
    assert lookups(KeySemiJoin(lines(), mixed, ((column("l_order"), "k"),))) == {}


def test_what_staged_values_are_made_of_is_known() -> None:
    staged = Scan("staged", "s", scanned(k="key_0"))
    made_of = Aggregate(
        Filter(orders("changed"), (same("o_customer", "o_id"),)), (("key_0", column("o_id")),)
    )
    asked = KeySemiJoin(lines(), staged, ((column("l_order"), "k"),))
    assert lookups(asked, values={"staged": made_of}) == {"lines": BY_ORDERS}
    assert lookups(asked) == {}


def test_through_a_restriction_a_column_has_the_values_of_its_keys() -> None:
    few = KeySemiJoin(lines(), orders("keys"), ((column("l_order"), "o_id"),))
    found = lookups(Join(few, replace(orders(), alias="p"), "inner", (JOINED,)))
    assert found == {"lines": BY_ORDERS, "orders": BY_ORDERS}


def test_other_columns_and_rows_say_nothing() -> None:
    assert lookups(Join(orders(), lines(), "inner", (JOINED,))) == {}, "all orders"
    assert lookups(Join(orders("changed"), lines(), "inner", (same("o_id", "l_line"),))) == {}, (
        "no first column"
    )
    assert lookups(Join(orders("changed"), lines(), "inner", (same("o_customer", "l_order"),))) == {}, (
        "no key"
    )
    computed = Project(orders("changed"), (("x", exp.Add(this=column("o_id"), expression=column("o_id"))),))
    assert lookups(Join(computed, lines(), "inner", (same("x", "l_order"),))) == {}


@pytest.mark.parametrize(
    "other",
    [
        {"orders": replace(FACTS.upstreams["orders"], logged=False)},
        {"lines": replace(FACTS.upstreams["lines"], logged=False)},
        {"lines": replace(FACTS.upstreams["lines"], changed=False)},
        {"orders": replace(FACTS.upstreams["orders"], changed_rows=None)},
        {"orders": replace(FACTS.upstreams["orders"], changed_rows=2_000_000)},
        {"orders": replace(FACTS.upstreams["orders"], rows=1_000)},
        {"orders": replace(FACTS.upstreams["orders"], rows=0)},
    ],
    ids=[
        "no log",
        "no log of its own",
        "unchanged",
        "unknown",
        "too many",
        "a tenant's",
        "no number of rows",
    ],
)
def test_what_would_be_too_much_or_is_not_known_is_not_kept(other: dict[str, UpstreamFacts]) -> None:
    facts = Facts({**FACTS.upstreams, **other})
    assert lookups(Join(orders("changed"), lines(), "inner", (JOINED,)), facts) == {}
