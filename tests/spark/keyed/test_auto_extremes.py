"""MIN and MAX are stored with the sums; rows are only read if a group lost one of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import aggregate_delta, stages
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.store.state import current_version, load_keyed
from tests.extent import extent, first

ROUNDS = extent(2, 5)


def automatic(model: str, key: str) -> KeyedConfig:
    """Never in full because much has changed: the tables are small."""
    config = parse_config(model, {"unique_key": key, "incremental_strategy": "auto"})
    return replace(config, full_refresh_above=math.inf)


def images_of(context: Any, model: Any) -> list[tuple[Any, ...]]:
    """The before-images of the newest commit."""
    change = load_keyed(context.catalog, model).change.sql
    sql = (
        f"SELECT part, high, n FROM {change} WHERE _action = '-U' AND _txn = (SELECT max(_txn) FROM {change})"
    )
    return sorted(map(tuple, context.query(sql)))


@pytest.fixture
def recomputations(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each refresh that asks the rows of groups that have lost an extreme."""
    found: list[None] = []
    right = stages.new_extremes_sql

    def new_extremes_sql(*given: Any) -> str:
        found.append(None)
        return right(*given)

    monkeypatch.setattr(stages, "new_extremes_sql", new_extremes_sql)
    return found


BOTH = "min(v.amount) AS low, max(v.amount) AS high"


def joined(groups: Any, values: Any, shown: str = BOTH, parts: int = 3) -> str:
    return (
        f"SELECT g.amount % {parts} AS part, {shown}, sum(v.amount) AS total\n"
        f"FROM {groups.name.sql} AS g JOIN {values.name.sql} AS v ON g.id = v.id GROUP BY g.amount % {parts}"
    )


@pytest.mark.modelled
def test_what_is_gained_and_lost_at_once_is_no_extreme(shop: Any) -> None:
    """A row whose both sides change: its new value meets its old group for a moment."""
    groups, values = shop.table("groups"), shop.table("values")
    groups.build([{"id": 1, "amount": 0}, {"id": 2, "amount": 0}, {"id": 3, "amount": 0}])
    values.build([{"id": 1, "amount": 15}, {"id": 2, "amount": 10}, {"id": 3, "amount": 20}])
    context, model, sql = groups.session.context, groups.name.sibling("moved"), joined(groups, values)
    for rows in ([(0, 10, 20, 45)], [(0, 10, 20, 30), (1, 99, 99, 99)]):
        plan = plan_refresh(context.catalog, model, automatic("moved", "part"), sql, context.query_schema)
        outcome = run_refresh(context, model, automatic("moved", "part"), plan, owner="model.test")
        assert sorted(map(tuple, context.query(f"SELECT * FROM {model.sql}"))) == rows
        groups.upsert([{"id": 1, "amount": 1}])
        values.upsert([{"id": 1, "amount": 99}])
    assert str(outcome.choice) == "INCREMENTAL (sums)"


@pytest.mark.modelled
@pytest.mark.parametrize("looked_up", first(1, [True, False]), ids=["touched groups", "all groups"])
def test_extremes_of_a_join_are_those_of_the_query_whatever_comes_and_goes(
    shop: Any, monkeypatch: pytest.MonkeyPatch, recomputations: list[None], looked_up: bool
) -> None:
    """Whether all stored groups are read, or those that changes touch, as of a large state."""
    monkeypatch.setattr(aggregate_delta, "_has_many_groups", lambda stored, changed: looked_up)
    chance = random.Random(11)
    groups, values = shop.table("groups"), shop.table("values")
    for table in (groups, values):
        table.build([{"id": number, "amount": chance.randrange(40)} for number in range(60)])
    context, model = groups.session.context, groups.name.sibling("extremes")
    config = automatic("extremes", "part")
    sql = joined(groups, values)
    found: Counter[str] = Counter()
    for number in range(ROUNDS + 1):
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        found[str(run_refresh(context, model, config, plan, owner="model.test").choice)] += 1
        expected, kept = (
            sorted(map(tuple, context.query(text))) for text in (sql, f"SELECT * FROM {model.sql}")
        )
        assert kept == expected, f"round {number}"
        if number % 2:  # rows that only come leave no extreme behind
            for table in (groups, values):
                table.upsert([{"id": 100 + number, "amount": chance.randrange(40)}])
            continue
        for table in (groups, values):
            picked = chance.sample(range(60), 5)
            gone = [one for one in picked if chance.random() < 0.3]
            written = [{"id": one, "amount": chance.randrange(40)} for one in picked if one not in gone]
            table.apply(written, [{"id": one} for one in gone])
    assert load_keyed(context.catalog, model).hidden
    assert found == {"FULL (build)": 1, "INCREMENTAL (sums)": ROUNDS}
    assert 0 < len(recomputations) < ROUNDS


@pytest.mark.modelled
def test_the_last_row_of_all_leaves_nothing(shop: Any) -> None:
    values = shop.table("values")
    values.build([{"id": 1, "amount": 7}])
    context, model = values.session.context, values.name.sibling("highest")
    config = automatic("highest", "one")
    sql = f"SELECT 1 AS one, max(amount) AS high, count(*) AS n FROM {values.name.sql}"

    def refreshed() -> list[Any]:
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        run_refresh(context, model, config, plan, owner="model.test")
        return [tuple(row) for row in context.query(f"SELECT high, n FROM {model.sql}")]

    assert refreshed() == [(7, 1)]
    values.apply([], [{"id": 1}])
    assert refreshed() == [(None, 0)]
    values.upsert([{"id": 2, "amount": 3}])
    assert refreshed() == [(3, 1)]


@pytest.mark.modelled
def test_a_group_that_loses_its_extreme_while_that_is_asked_is_computed_anew(
    shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is none of those that were found to have lost one."""
    values = shop.table("values")
    values.build([{"id": number, "amount": number} for number in range(10)])
    context, model = values.session.context, values.name.sibling("reached")
    config = automatic("reached", "part")
    sql = f"SELECT id % 2 AS part, max(amount) AS high FROM {values.name.sql} GROUP BY id % 2"
    right = aggregate_delta.groups_to_recompute

    def one_of_two(*given: Any, **more: Any) -> str:
        return f"SELECT * FROM (\n{right(*given, **more)}\n) WHERE key_0 = 0"

    monkeypatch.setattr(aggregate_delta, "groups_to_recompute", one_of_two)
    for _ in range(2):
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        outcome = run_refresh(context, model, config, plan, owner="model.test")
        expected, kept = (
            sorted(map(str, context.query(text))) for text in (sql, f"SELECT * FROM {model.sql}")
        )
        assert kept == expected
        values.delete([{"id": 8}, {"id": 9}])
    assert str(outcome.choice) == "INCREMENTAL (2 keys)"


@pytest.mark.modelled
def test_groups_that_are_kept_while_their_extremes_are_asked_outlive_a_compaction(
    shop: Any, monkeypatch: pytest.MonkeyPatch, recomputations: list[None]
) -> None:
    """The statement that commits reads another version then; else it reads none, for groups are read once."""
    values = shop.table("values")
    values.build([{"id": number, "amount": number} for number in range(10)])
    context, model = values.session.context, values.name.sibling("compacted")
    config = replace(automatic("compacted", "part"), before_images=True)
    sql = f"SELECT id % 2 AS part, max(amount) AS high, count(*) AS n FROM {values.name.sql} GROUP BY id % 2"

    def refreshed(*, reads: bool) -> str:
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        outcome = run_refresh(context, model, config, plan, owner="model.test")
        expected, kept = (
            sorted(map(str, context.query(text))) for text in (sql, f"SELECT * FROM {model.sql}")
        )
        assert kept == expected
        assert (load_keyed(context.catalog, model).base.sql in outcome.sql) == reads
        return str(outcome.choice)

    refreshed(reads=True)
    values.delete([{"id": 9}])
    assert refreshed(reads=False) == "INCREMENTAL (sums)"
    assert images_of(context, model) == [(1, 9, 5)]
    right, compactions = aggregate_delta.groups_to_recompute, []

    def groups_to_recompute(*given: Any, **more: Any) -> str:
        compactions.append(compact_major(context, model, trim_grace_seconds=0))
        return right(*given, **more)

    monkeypatch.setattr(aggregate_delta, "groups_to_recompute", groups_to_recompute)
    values.delete([{"id": 7}])
    assert refreshed(reads=True) == "INCREMENTAL (sums)"
    assert images_of(context, model) == [(1, 7, 4)]
    assert len(compactions) == 1
    assert len(recomputations) == 2


ENDS = [("max(v.amount) AS high", "_min_1"), ("min(v.amount) + 1 AS more", "_max_1")]


class Ends:
    """A model that shows one end of the values of each part, and knows the other, which is ``spare``."""

    def __init__(self, groups: Any, values: Any, shown: str, spare: str) -> None:
        self.context, self.spare = groups.session.context, spare
        self.name, self.config = groups.name.sibling("ends"), automatic("ends", "part")
        self.sql = joined(groups, values, shown, parts=12)
        both = "min(v.amount) AS `_min_1`, max(v.amount) AS `_max_1`"
        self.true = joined(groups, values, both, parts=12)

    def refresh(self) -> str:
        plan = plan_refresh(self.context.catalog, self.name, self.config, self.sql, self.context.query_schema)
        return str(run_refresh(self.context, self.name, self.config, plan, owner="model.test").choice)

    def rows(self, sql: str) -> list[str]:
        return sorted(map(str, self.context.query(sql)))

    def ends(self) -> list[tuple[Any, ...]]:
        """Of each part the end that is stored, and what it is."""
        table = load_keyed(self.context.catalog, self.name)
        assert self.spare in table.hidden
        stored = merge_on_read(table, current_version(self.context.catalog, table))
        return [
            tuple(row)
            for row in self.context.query(
                f"SELECT s.part, s.`{self.spare}`, t.`{self.spare}` FROM (\n{stored}\n) AS s\n"
                f"JOIN (\n{self.true}\n) AS t USING (part) ORDER BY part"
            )
        ]


@pytest.mark.modelled
@pytest.mark.parametrize(("shown", "spare"), first(1, ENDS))
def test_an_end_that_is_not_shown_is_unknown_or_right(shop: Any, shown: str, spare: str) -> None:
    """Groups of one value, of two, and with NULLs, which come and go."""
    chance = random.Random(5)
    amounts: list[int | None] = [1, 1, 1, 2, None]
    groups, values = shop.table("groups"), shop.table("values")
    groups.build([{"id": number, "amount": number % 12} for number in range(40)])
    values.build([{"id": number, "amount": chance.choice(amounts)} for number in range(40)])
    model = Ends(groups, values, shown, spare)
    found: Counter[str] = Counter()
    for number in range(2 * ROUNDS):
        found[model.refresh()] += 1
        kept = model.rows(f"SELECT * FROM {model.name.sql}")
        assert kept == model.rows(model.sql), f"round {number}"
        ends = model.ends()
        assert len(ends) == len(kept)
        assert all(end in (None, true) for _, end, true in ends), f"round {number}: {ends}"
        picked = chance.sample(range(40), 3)
        gone = [one for one in picked if chance.random() < 0.4]
        written = [{"id": one, "amount": chance.choice(amounts)} for one in picked if one not in gone]
        values.apply(written, [{"id": one} for one in gone])
        if number % 3 == 0:
            groups.upsert([{"id": chance.randrange(40), "amount": chance.randrange(12)}])
    assert found["INCREMENTAL (sums)"] >= 3, found
    assert not any(choice.startswith("FULL") for choice in found if choice != "FULL (build)"), found


@pytest.mark.long
@pytest.mark.parametrize(("shown", "spare"), ENDS)
def test_an_end_that_is_not_shown_ends_no_refresh(
    shop: Any, recomputations: list[None], shown: str, spare: str
) -> None:
    groups, values = shop.table("groups"), shop.table("values")
    groups.build([{"id": number, "amount": number % 2} for number in range(8)])
    # Each part has 1, 2, 3 and 4.
    values.build([{"id": number, "amount": number // 2 + 1} for number in range(8)])
    model = Ends(groups, values, shown, spare)
    model.refresh()
    low, high = (1, 4) if spare == "_min_1" else (4, 1)
    assert model.ends() == [(0, low, low), (1, low, low)]
    values.delete([{"id": 2 * (low - 1)}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert [end for _, end, _ in model.ends()] == [None, low]
    values.upsert([{"id": 2, "amount": 2}, {"id": 100, "amount": 9}])
    groups.upsert([{"id": 100, "amount": 0}] if spare == "_min_1" else [])
    model.refresh()
    assert model.ends()[0][1] is None, "what has gone stays unknown"
    assert model.rows(f"SELECT * FROM {model.name.sql}") == model.rows(model.sql)
    values.delete([{"id": 100 if spare == "_min_1" else 2 * (high - 1)}])
    assert not recomputations
    assert model.refresh() == "INCREMENTAL (sums)"
    assert recomputations
    assert all(end == true for _, end, true in model.ends()), "computed anew with the group"
    assert model.rows(f"SELECT * FROM {model.name.sql}") == model.rows(model.sql)


@pytest.mark.modelled
def test_a_value_that_all_rows_of_a_group_have_stays_while_one_of_them_does(
    shop: Any, recomputations: list[None]
) -> None:
    customers = shop.table("customers", {"id": "bigint", "nation": "int", "region": "string"})
    rows = [{"id": number, "nation": number % 2, "region": "ab"[number % 2]} for number in range(8)]
    customers.build(rows)
    context, model = customers.session.context, customers.name.sibling("nations")
    config = automatic("nations", "nation")
    sql = (
        "SELECT nation, max(region) AS region, count(*) AS customers\n"
        f"FROM {customers.name.sql} GROUP BY nation"
    )

    def refreshed() -> str:
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        told = str(run_refresh(context, model, config, plan, owner="model.test").choice)
        expected, kept = (
            sorted(map(str, context.query(text))) for text in (sql, f"SELECT * FROM {model.sql}")
        )
        assert kept == expected
        return told

    refreshed()
    assert set(load_keyed(context.catalog, model).hidden) == {"_count_1", "_min_1"}
    # Three of four go, and another value comes that is not as good.
    customers.apply([{"id": 20, "nation": 1, "region": "a"}], [{"id": number} for number in (1, 3, 5)])
    assert refreshed() == "INCREMENTAL (sums)"
    assert not recomputations
    # Now the group has two values: that of one row may have been the only one.
    customers.delete([{"id": 7}])
    assert refreshed() == "INCREMENTAL (sums)"
    assert recomputations
    # All four rows of the other group get another value, which is less.
    customers.upsert([{"id": number, "nation": 0, "region": "0"} for number in (0, 2, 4, 6)])
    assert refreshed().startswith("INCREMENTAL")
    # NULLs are not among the values.
    customers.upsert([{"id": number, "nation": 0, "region": None} for number in (0, 2, 4)])
    refreshed()
    customers.delete([{"id": 6}])
    refreshed()
