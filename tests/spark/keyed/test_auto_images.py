"""Automatic models that keep what changed rows were before, and those that read it there."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import load_change, load_keyed
from tests.extent import extent
from tests.spark.keyed.conftest import Orders


@dataclass
class Chain:
    """``orders``, what is paid of them, and its sums."""

    orders: Orders
    ran: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.paid, self.totals = self.orders.name.sibling("paid"), self.orders.name.sibling("totals")
        self.sql = {
            self.paid: f"SELECT id, amount % 5 AS part, amount FROM {self.orders.name.sql} WHERE amount > 3",
            self.totals: "SELECT part, count(*) AS orders, sum(amount) AS amount, count(amount) AS amounts "
            f"FROM {self.paid.sql} GROUP BY part",
        }

    def refresh(self, model: Any, *, images: bool = True) -> Outcome:
        context = self.orders.session.context
        key = "id" if model == self.paid else "part"
        config = parse_config(model.identifier, {"unique_key": key, "incremental_strategy": "auto"})
        config = replace(config, full_refresh_above=math.inf, before_images=images and model == self.paid)
        plan = plan_refresh(context.catalog, model, config, self.sql[model], context.query_schema)
        before = len(self.orders.session.statements.ran)
        outcome = run_refresh(context, model, config, plan, owner="model.test")
        self.ran = [one.sql for one in self.orders.session.statements.ran[before:]]
        rows = [
            sorted(map(tuple, context.query(text)))
            for text in (f"SELECT * FROM {model.sql}", self.sql[model])
        ]
        assert rows[0] == rows[1]
        return outcome

    def both(self) -> None:
        self.refresh(self.paid)
        self.refresh(self.totals)

    @property
    def looked_up(self) -> bool:
        """Whether the last refresh read what is paid as it was."""
        return any("paid__base" in sql for sql in self.ran)


@pytest.fixture
def chain(shop: Any) -> Chain:
    orders = shop.table()
    orders.build([{"id": number, "amount": number % 11} for number in range(40)])
    made = Chain(orders)
    made.both()
    return made


def test_what_rows_were_is_read_from_the_changes(chain: Chain) -> None:
    # 7 changes, 8 does not, 4 goes, 1 comes, 50 is new, and 2, which is not paid, stays away.
    chain.orders.apply(
        [
            {"id": 7, "amount": 8},
            {"id": 8, "amount": 8},
            {"id": 1, "amount": 9},
            {"id": 50, "amount": 6},
            {"id": 2, "amount": 1},
        ],
        [{"id": 4}],
    )
    told = chain.refresh(chain.paid)
    assert (told.rows, str(told.choice)) == (4, "INCREMENTAL (5 keys)")
    assert chain.refresh(chain.totals).choice is not None
    assert not chain.looked_up
    refresh = next(sql for sql in chain.ran if sql.startswith("INSERT"))
    assert refresh.count("paid__change") == 1, "what was lost and gained is read once"


@pytest.mark.modelled
def test_images_are_no_changes_for_who_counts_them(chain: Chain) -> None:
    chain.orders.apply([{"id": 7, "amount": 9}, {"id": 50, "amount": 6}], [{"id": 4}])
    chain.refresh(chain.paid)
    catalog = chain.orders.session.catalog
    change = load_change(catalog, load_keyed(catalog, chain.paid))
    assert change.history()[0].summary["added-records"] == "5", "two of them images"
    plan = plan_refresh(
        catalog,
        chain.totals,
        parse_config("totals", {"unique_key": "part", "incremental_strategy": "auto"}),
        chain.sql[chain.totals],
        None,
    )
    assert plan.changed_rows == 3


@pytest.mark.modelled
@pytest.mark.parametrize("seed", range(extent(1, 3)))
def test_random_rounds(chain: Chain, seed: int) -> None:
    """Several commits of one key between two looks; keys that go and come back; compaction and trims."""
    drawn = random.Random(seed)
    looked_up = 0
    for _ in range(extent(4, 12)):
        keys = drawn.sample(range(50), 6)
        gone = keys[: drawn.randint(0, 3)]
        chain.orders.apply(
            [{"id": key, "amount": drawn.randint(0, 12)} for key in keys if key not in gone],
            [{"id": key} for key in gone],
        )
        chain.refresh(chain.paid)
        if drawn.random() < 0.3:
            compact_major(chain.orders.session.context, chain.paid, 0)
        if drawn.random() < 0.5:
            chain.refresh(chain.totals)
            looked_up += chain.looked_up
    chain.refresh(chain.totals)
    assert looked_up == 0


@pytest.mark.modelled
def test_where_one_commit_has_none_what_rows_were_is_looked_up(chain: Chain) -> None:
    chain.orders.upsert([{"id": 7, "amount": 9}])
    chain.refresh(chain.paid)
    chain.orders.upsert([{"id": 7, "amount": 10}, {"id": 8, "amount": 10}])
    chain.refresh(chain.paid, images=False)
    chain.refresh(chain.totals)
    assert chain.looked_up


@pytest.mark.modelled
def test_a_commit_without_rows_has_nothing_to_keep(chain: Chain) -> None:
    chain.orders.upsert([{"id": 2, "amount": 1}])
    assert str(chain.refresh(chain.paid).choice) == "INCREMENTAL (0 keys)"
    chain.orders.upsert([{"id": 7, "amount": 9}])
    chain.refresh(chain.paid)
    chain.refresh(chain.totals)
    assert not chain.looked_up


@pytest.mark.modelled
def test_keys_that_the_log_tells_are_not_computed_first(chain: Chain) -> None:
    chain.sql[chain.paid] = f"SELECT id, amount % 5 AS part, amount FROM {chain.orders.name.sql}"
    chain.refresh(chain.paid)
    chain.orders.apply([{"id": 7, "amount": 9}, {"id": 50, "amount": 6}], [{"id": 4}])
    told = chain.refresh(chain.paid)
    assert (told.rows, str(told.choice)) == (3, "INCREMENTAL (3 keys)")
    assert not any("CACHE" in sql for sql in chain.ran)
    chain.orders.upsert([{"id": 7, "amount": 1}])
    chain.orders.upsert([{"id": 7, "amount": 2}, {"id": 8, "amount": 2}])
    assert str(chain.refresh(chain.paid).choice) == "INCREMENTAL (2 keys)"
    assert any("CACHE" in sql for sql in chain.ran)
