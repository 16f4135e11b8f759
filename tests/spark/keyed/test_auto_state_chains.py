"""Models over several states: each is refreshed from those before it, and the model over all of them."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.auto import nested_view, plan_table, refresh_model
from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.auto.state_tree import shown_states
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.auxiliary import view_selection
from tests.spark.keyed.test_auto_nested_views import MODELS, Shop

MODEL = "days beside days"
SQL = """WITH days AS (
    SELECT customer, day, sum(amount) AS total, count(*) AS sales FROM {sales}
    WHERE customer IS NOT NULL GROUP BY customer, day),
  cities AS (SELECT c.city, d.day, sum(d.total) AS total, max(d.sales) AS most FROM days AS d
    JOIN {customers} AS c ON c.id = d.customer GROUP BY c.city, d.day)
  SELECT a.customer, a.day, a.total, b.total AS next, x.total AS of_city, y.most FROM days AS a
  JOIN days AS b ON b.customer = a.customer AND b.day > a.day
  JOIN {customers} AS c ON c.id = a.customer
  JOIN cities AS x ON x.city = c.city AND x.day = a.day
  JOIN cities AS y ON y.city = x.city AND y.day = b.day
  WHERE a.total > 20 AND NOT EXISTS (SELECT 1 FROM days AS n
    WHERE n.customer = a.customer AND n.day > a.day AND n.day < b.day)"""


class Chained(Shop):
    """One model, and its states."""

    def states(self) -> list[KeyedTable]:
        return find_states(self.context.catalog, self.sales.name.sibling(MODEL))

    def dies_before_commit(self, number: int) -> bool:
        """Refresh, and end right before a table is written to; whether it came so far."""
        statements, begun = self.sales.session.statements, []

        def die(step: str) -> None:
            if step == "refresh":
                begun.append(step)
                if len(begun) == number:
                    raise InterruptedError

        statements.before = die
        try:
            self.refresh(MODEL)
        except InterruptedError:
            return True
        finally:
            statements.before = None
        return False


@pytest.fixture
def chained(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Chained:
    monkeypatch.setattr(nested_view, "WORTH_ROWS", 1)
    monkeypatch.setattr(view_selection, "WORTH_OPERATORS", 40)
    monkeypatch.setattr(plan_table, "SMALL", 0)
    monkeypatch.setattr(refresh_model, "_LITTLE", 0)
    monkeypatch.setitem(MODELS, MODEL, (["customer", "day"], SQL))
    return Chained(shop)


@pytest.mark.modelled
def test_it_equals_its_query_after_any_change_wherever_a_run_ends(
    chained: Chained, monkeypatch: pytest.MonkeyPatch
) -> None:
    chained.refresh(MODEL)
    states = chained.states()
    assert [one.name.identifier.partition("__")[2] for one in states] == ["state", "state_2"]
    assert states[0].column_names[:2] == ("customer", "day"), "what the other reads comes first"
    assert chained.rows(MODEL) == chained.expected(MODEL)
    chained.change()
    name = chained.sales.name.sibling(MODEL)
    shown = shown_states(chained.context.catalog, name, chained.plan(MODEL))
    assert [(one.name, one.action) for one in shown] == [
        (states[0].name, "incremental"),
        (states[1].name, None),
    ]
    assert [set(one.reads) for one in shown] == [
        {chained.sales.name.dotted},
        {states[0].name.dotted, chained.customers.name.dotted},
    ]
    ran = chained.sales.session.statements.ran
    ran.clear()
    outcome = chained.refresh(MODEL)
    assert str(outcome.choice).startswith("INCREMENTAL"), outcome
    writes = [one.sql for one in ran if one.sql.startswith("INSERT")]
    assert [chained.sales.table.base.sql in one for one in writes] == [True, False, False]
    assert chained.rows(MODEL) == chained.expected(MODEL)
    for number in (2, 3):
        chained.change()
        assert chained.dies_before_commit(number)
        plan = chained.plan(MODEL)
        shown = shown_states(chained.context.catalog, name, plan)
        assert [one.action for one in shown] == ["nothing", ["incremental", "nothing"][number - 2]]
        assert plan.action == "incremental"
        chained.customers.upsert([chained.customer(number)])
        outcome = chained.refresh(MODEL)
        assert str(outcome.choice).startswith("INCREMENTAL"), outcome
        assert chained.rows(MODEL) == chained.expected(MODEL), number
    assert chained.states() == states, "kept, not built anew"
    assert str(chained.refresh(MODEL).choice) == "SKIP (no upstream change)"
    monkeypatch.setattr(view_selection, "WORTH_OPERATORS", 1_000)
    chained.change()
    chained.refresh(MODEL)
    assert chained.rows(MODEL) == chained.expected(MODEL)
    assert chained.states() == states[:1], "the other is of no use any more"
    chained.sales.upsert([{**chained.sale(1), "customer": 3, "day": None}])
    assert "FULL (without-state)" in chained.refresh(MODEL).message, "a keyed table has no key that is NULL"
    assert chained.rows(MODEL) == chained.expected(MODEL)
    assert chained.states() == []
