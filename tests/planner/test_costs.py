"""Guards that cost as much as the query are not compared; joins begin with what leaves out most."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Scan, ScannedColumn, State
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.delta.costs import costly_guards
from dbt_arctic.planner.delta.join_order import Chain, Count, joined
from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

TYPES = {
    "sales": [
        (name, "bigint") for name in ("id", "seller", "day", "amount", "price", "tax", "place", "kind")
    ],
    "sellers": [("id", "bigint"), ("name", "string")],
}
MANY = Facts(
    {
        "sales": UpstreamFacts(True, ("id",), rows=60_000_000, changed_rows=600_000),
        "sellers": UpstreamFacts(False, ("id",), rows=100_000),
    }
)
BEST = """
WITH revenue AS (SELECT seller, sum(amount) AS total FROM sales GROUP BY seller)
SELECT s.id, s.name, r.total FROM sellers AS s JOIN revenue AS r ON s.id = r.seller
WHERE r.total = (SELECT max(total) FROM revenue)
"""
RECENT = """
SELECT id, seller, day, amount, price, tax, place, kind FROM sales
WHERE day > (SELECT max(day) - 30 FROM sales)
"""


def with_rows(rows: int) -> Facts:
    return Facts({name: replace(one, rows=rows) for name, one in MANY.upstreams.items()})


@pytest.mark.parametrize(
    ("sql", "facts", "is_costly"),
    [
        (BEST, MANY, True),
        (RECENT, MANY, False),  # two columns of ten
        (BEST, with_rows(1000), False),  # too little to matter
        (BEST, with_rows(0), False),  # unknown
    ],
)
def test_what_costs_as_much_as_the_query_is_not_compared(sql: str, facts: Facts, is_costly: bool) -> None:
    query = analyse_query(sql, TYPES)
    guards = plan_incremental(query, ["id"], facts).guards
    assert guards
    found = costly_guards(guards, query.node, facts)
    assert (found is not None) == is_costly
    if found is not None:
        assert found.code == "costly-guard"
        assert "max(total)" in sql.splitlines()[found.line - 1]
        assert "100% of what the whole query" in found.what


def test_changes_go_on_with_a_relation_that_has_a_condition_of_its_own() -> None:
    """Though it is larger than the other: what meets none of its rows need not come to that one."""
    names = ("id", "seller", "day")
    states: dict[str, State] = {"sales": "minus", "sellers": "new", "days": "new"}
    sales, sellers, days = (
        Scan(source, source, tuple(ScannedColumn(f"{source}_{one}", one) for one in names), state)
        for source, state in states.items()
    )
    key = {"sellers": 1_000, "days": 5_000}
    facts = Facts(
        {"sales": UpstreamFacts(True, ("id",), 10_000, 10)}
        | {name: UpstreamFacts(False, ("id",), rows) for name, rows in key.items()}
    )
    links = tuple(
        exp.EQ(this=column(mine), expression=column(theirs))
        for mine, theirs in (("sales_seller", "sellers_id"), ("sales_day", "days_id"))
    )
    some = Filter(days, (exp.GT(this=column("days_day"), expression=exp.Literal.number(3)),))
    start = Chain(sales, (sales,), Count(10))
    assert joined(start, [sellers, days], links, set(), facts).reached == (sales, sellers, days)
    assert joined(start, [sellers, some], links, set(), facts).reached == (sales, some, sellers)
