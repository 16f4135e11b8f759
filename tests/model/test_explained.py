"""The explanation of a plan, for people at every width and for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.adapter.planning import ModelPlan
from dbt_arctic.auto.advice import advise
from dbt_arctic.auto.fallbacks import alternatives_of
from dbt_arctic.auto.inputs import find_inputs
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.state_tree import shown_states
from dbt_arctic.auto.timings import timings
from dbt_arctic.cli.explain import explained, explanation_as_dict
from dbt_arctic.cli.plan import WORDS, _as_json, _state_lines, reasons
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.state import count_rows, find_keyed, load_base, load_change, load_keyed
from tests.model import duck
from tests.model.statements import Interpreter
from tests.model.test_automatic import FIRST
from tests.model.test_verified import JOINED, SUMS, Shop
from tests.model.world import MemoryWorld
from tests.planner.printed_plan import differing, of_plan

DEARER = "SELECT id, amount FROM {0} WHERE amount > (SELECT avg(amount) FROM {0})"
RANDOM = "SELECT id, amount * rand() AS other FROM {}"


def planned(shop: Shop) -> ModelPlan:
    catalog = shop.context.catalog
    config = parse_config("model", {"unique_key": shop.key, "incremental_strategy": "auto"})
    plan = plan_refresh(catalog, shop.model, config, shop.sql, None)
    table = find_keyed(catalog, shop.model)
    took = () if table is None else tuple(timings(load_change(catalog, table).history()))
    advice = tuple(advise(find_inputs(catalog, shop.model, shop.sql, {}, settings=""), config))
    states = tuple(shown_states(catalog, shop.model, plan))
    return ModelPlan("model", shop.model, plan, False, (), "models/model.sql", advice, states, took)


def printed(entry: ModelPlan, width: int) -> list[str]:
    why, views = reasons(entry, with_more=False), _state_lines(entry)
    return list(explained(entry, WORDS[entry.plan.action], why, views, width))


@pytest.mark.parametrize(
    ("sql", "key"), [(JOINED, "id"), (SUMS, "customer"), (FIRST, "customer"), (RANDOM, "id")]
)
def test_an_explanation_fits_each_width_and_has_the_values_of_the_plan(
    sql: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")
    shop = Shop(MemoryWorld(1), sql, key, verify=None)
    first = planned(shop)
    assert first.explanation.does.startswith(
        ("Runs the whole query and creates", "Builds the auxiliary views")
    )
    assert first.explanation.full_seconds is None
    assert first.explanation.cost == first.explanation.full_cost
    if sql != RANDOM:
        shop.refresh()
        shop.change((4, 2, 400), (2, 3, 7))
    entry = planned(shop)
    made = explanation_as_dict(entry.explanation)
    for width in (80, 120):
        lines = printed(entry, width)
        assert all(len(line) <= width for line in lines), lines
        text = " ".join(" ".join(lines).split())
        assert made["does"] in text
        for advice in made["advice"]:
            assert advice in text
        for condition in made["falls_back_if"]:
            assert condition in text
    if sql == RANDOM:
        assert made["advice"] == ["Compute it outside the model."], made
        return
    assert made["full_cost"]["rows"] >= 23
    assert made["cost"]["changed_rows"] == 2
    assert "reads 2 changed rows, and" in text
    assert made["full_seconds"] is not None
    if sql == SUMS:
        assert made["cost"]["rows"] == 2, "no other rows are read"
        catalog = shop.context.catalog
        read = [load_keyed(catalog, one.name) for one in entry.plan.inputs.upstreams.values()]
        sides = [load(catalog, one) for one in read for load in (load_base, load_change)]
        assert made["full_cost"]["rows"] == sum(count_rows(side) or 0 for side in sides), "with pending rows"
    if sql == FIRST:
        assert "  views" in lines
        assert lines[-1].split()[0] == "state"
    shop.refresh()
    nothing = planned(shop)
    assert nothing.explanation.cost is None
    assert nothing.explanation.does == "Does nothing: no upstream has a new commit."


def test_the_refresh_after_a_changed_value_is_printed_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")
    shop = Shop(MemoryWorld(1), DEARER, "id", verify=None)
    assert _as_json(planned(shop), show_sql=True)["alternatives"] == []
    shop.refresh()
    shop.change((4, 2, 400), (2, 3, 7))
    entry = planned(shop)
    (other,) = _as_json(entry, show_sql=True)["alternatives"]
    assert "has changed" in other["if"]
    (alternative,) = alternatives_of(entry.plan)
    sent: list[str] = []
    for function in ("run", "query"):
        monkeypatch.setattr(Interpreter, function, _recording(getattr(Interpreter, function), sent))
    shop.refresh()
    assert shop.is_right
    assert differing(of_plan(alternative.plan), sent) == []
    assert [one.text for one in of_plan(alternative.plan)] == [
        other["sql"][stage["purpose"]] for stage in other["stages"]
    ]
    assert differing(of_plan(entry.plan), sent), "the first plan has ended at its guard"


def _recording(function: Callable[..., Any], sent: list[str]) -> Callable[..., Any]:
    def run(self: Interpreter, sql: str) -> Any:
        sent.append(sql)
        return function(self, sql)

    return run
