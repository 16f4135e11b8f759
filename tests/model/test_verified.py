"""A refresh that proves itself: a sample of keys is recomputed after it, and a difference is repaired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from dbt_arctic.auto import recomputed_keys
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.upstream_relations import Sources
from dbt_arctic.auto.verification_log import recorded
from dbt_arctic.auto.verified_sample import sample_sql
from dbt_arctic.auto.verify_refresh import verify_refresh
from dbt_arctic.errors import ConfigError, RefreshDiffers
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, State
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.run import write_rows
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import current_version, load_change, load_keyed
from tests.model import duck
from tests.model.test_automatic import FIRST, sales
from tests.model.world import MemoryWorld
from tests.planner.mutants import MUTANTS, replaced

JOINED = "SELECT s.id, s.amount, c.amount AS other FROM {0} s JOIN {0} c ON c.id = s.customer"
SUMS = "SELECT customer, sum(amount) AS total, count(*) AS orders FROM {0} GROUP BY customer"


@dataclass
class Shop:
    """A table of sales, and one automatic model over it that is verified."""

    world: MemoryWorld
    sql: str
    key: str
    verify: object = "100%"
    accept: tuple[str, ...] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        self.context = self.world.process("run").context
        self.source, self.model = self.world.name("sales"), self.world.name("model")
        self.plain = parse_config(
            "sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1}
        )
        rows = sales((1, 1, 10), (2, 1, 20), (3, 2, 31), *((sale, 9, 1) for sale in range(10, 30)))
        build_generation(
            self.context, self.source, self.plain, rows, {}, owner="o", comment="", column_comments=None
        )
        self.sql = self.sql.format(self.source.sql)

    def change(self, *rows: tuple[int, int, int]) -> None:
        write_rows(self.context, self.source, self.plain, sales(*rows), Consumption({}, {}), None)

    def refresh(self, *, rebuild: bool = False) -> Outcome:
        config = parse_config(
            "model",
            {
                "unique_key": self.key,
                "incremental_strategy": "auto",
                "buckets": 1,
                "auto": {"verify": self.verify, "accept": list(self.accept), "strict": self.strict},
                "full_refresh_above": 1,
            },
        )
        context = self.context
        plan = plan_refresh(
            context.catalog, self.model, config, self.sql, context.query_schema, rebuild=rebuild
        )
        outcome = run_refresh(context, self.model, config, plan, owner="o")
        return verify_refresh(context, self.model, config, self.sql, outcome, RefreshParameters())

    @property
    def is_right(self) -> bool:
        stored, expected = (
            sorted(self.world.query(text)) for text in (f"SELECT * FROM {self.model.sql}", self.sql)
        )
        return stored == expected

    @property
    def results(self) -> list[str]:
        table = load_keyed(self.context.catalog, self.model)
        return [one.result for one in recorded(load_change(self.context.catalog, table).properties)]


@pytest.fixture(autouse=True)
def _whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")  # as Spark adds whole numbers


WRONG = {
    "inner_join_of_the_left_side_only": (JOINED, "id"),
    "without_lost_rows": (SUMS, "customer"),
    "without_lost_rows, over a state": (FIRST, "customer"),
}
"""Planners that are wrong on purpose, each with a model for which it is."""


@contextmanager
def wrong(mutant: str) -> Iterator[None]:
    if mutant in MUTANTS:
        with MUTANTS[mutant]():
            yield
        return
    right = Sources.relation

    def without_lost_rows(self: Sources, source: str, state: State) -> str:
        """The rows that are gone, and what a row was before, are not looked at."""
        found = right(self, source, state)
        lost = {"minus": "false", "weighted": f"{SIGN_OF_ROW} = 1"}.get(state)
        return found if lost is None else f"(SELECT * FROM {found} WHERE {lost})"

    with replaced(Sources, "relation", without_lost_rows):
        yield


@pytest.mark.parametrize("mutant", WRONG)
def test_a_wrong_refresh_is_found_and_repaired_by_the_next_run(mutant: str) -> None:
    sql, key = WRONG[mutant]
    shop = Shop(MemoryWorld(1), sql, key)
    assert shop.refresh().verified is None  # a build computes everything
    shop.change((4, 2, 400), (2, 3, 7))
    found = shop.refresh()
    assert found.verified is not None
    assert found.verified.result == "equal", found
    assert found.verified.keys >= 1
    assert found.message.endswith(f"{counted(found.verified.keys, 'key')} verified")
    assert shop.results == ["equal"]
    shop.change((1, 1, 900), (11, 9, 6), (2, 1, 8))
    with wrong(mutant), pytest.raises(RefreshDiffers) as raised:
        shop.refresh()
    assert not shop.is_right, "the planner is wrong for this model"
    assert shop.results == ["different", "equal"]
    assert "the query returns" in raised.value.why
    assert f"{key} = " in raised.value.why
    assert raised.value.fix.startswith("dbt run --select model")
    # Nothing has changed upstream, and the rows are wrong nevertheless.
    repaired = shop.refresh()
    assert str(repaired.choice) == "FULL (differed)"
    assert repaired.verified is None
    assert shop.is_right
    shop.change((4, 2, 1))
    found = shop.refresh()
    assert found.choice is not None
    assert found.choice.strategy == "incremental"
    assert found.verified is not None
    assert found.verified.result == "equal", found
    assert shop.results == ["equal", "different", "equal"]


@pytest.mark.parametrize("sql", [SUMS, FIRST])
def test_a_strict_model_is_repaired_by_the_command_that_the_error_names(sql: str) -> None:
    shop = Shop(MemoryWorld(1), sql, "customer", strict=True)
    shop.refresh()
    shop.change((1, 1, 900))
    with wrong("without_lost_rows"), pytest.raises(RefreshDiffers) as raised:
        shop.refresh()
    command = "dbt run --full-refresh --select model"
    assert raised.value.fix.startswith(command)
    for _ in range(2):
        with pytest.raises(ConfigError, match="differed") as refused:
            shop.refresh()
        assert "keys differ" in refused.value.why
        assert refused.value.fix.endswith(command)
    shop.refresh(rebuild=True)
    assert shop.is_right
    shop.change((2, 1, 8))
    assert re.search(r"\bkeys? verified$", shop.refresh().message)
    assert shop.is_right


def test_a_model_with_lateral_subqueries_is_verified_by_its_own_sql() -> None:
    first = "SELECT c.amount FROM {0} c WHERE c.customer = s.customer ORDER BY c.amount DESC, c.id LIMIT 1"
    sql = (
        f"SELECT s.id, f.amount AS first, n.orders FROM {{0}} s LEFT JOIN LATERAL ({first}) f ON TRUE, "
        "LATERAL (SELECT count(*) AS orders FROM {0} c WHERE c.customer = s.customer) n"
    )
    shop = Shop(MemoryWorld(1), sql, "id")
    shop.refresh()
    shop.change((1, 1, 5), (2, 2, 900), (40, 1, 7))
    found = shop.refresh()
    assert found.choice is not None
    assert found.choice.strategy == "incremental"
    assert found.verified is not None
    assert found.verified.result == "equal", found
    assert shop.is_right


def test_only_every_nth_refresh_is_verified_and_the_others_say_so() -> None:
    shop = Shop(MemoryWorld(1), SUMS, "customer", verify="2 keys every 2")
    shop.refresh()
    told = []
    for amount in range(4):
        shop.change((1, 1, amount))
        found = shop.refresh().verified
        assert found is not None
        told.append((found.result, found.keys))
    assert told == [("not due", 0), ("equal", 2), ("not due", 0), ("equal", 2)]


def test_the_same_refresh_has_the_same_sample() -> None:
    """It depends on nothing but the version, so that a difference can be looked at again."""
    shop = Shop(MemoryWorld(1), SUMS, "customer")
    shop.refresh()
    shop.change((1, 1, 5))
    shop.refresh()
    table = load_keyed(shop.context.catalog, shop.model)
    version = current_version(shop.context.catalog, table)
    txn = int(load_change(shop.context.catalog, table).history()[0].summary[PROPERTY_TXN])
    one, again, other = (
        sorted(shop.world.query(sample_sql(table, version, txn, seed, 2))) for seed in (1, 1, 3)
    )
    assert one == again
    assert (1, True) in one, "the key that was written"
    assert len(one) == len(other) == 2


def test_a_query_that_cannot_be_restricted_is_not_verified_if_it_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recomputed_keys, "WHOLE_ROWS", 5)
    shop = Shop(MemoryWorld(1), FIRST, "customer")
    shop.refresh()
    shop.change((4, 2, 400))
    found = shop.refresh()
    assert found.verified is not None
    assert found.verified.result == "skipped"
    assert "cannot be restricted to some keys" in found.message
    assert shop.results == ["skipped"]
    shop.change((4, 2, 401))
    shop.refresh()
    assert shop.results == ["skipped"], "the same reason is recorded once"


def test_rows_that_the_data_do_not_determine_are_not_compared() -> None:
    sql = "SELECT customer, count(*) AS orders, first(amount) AS one FROM {} GROUP BY customer"
    shop = Shop(MemoryWorld(1), sql, "customer", accept=("order_dependent",))
    shop.refresh()
    shop.change((1, 1, 5), (7, 1, 8))
    found = shop.refresh()
    assert found.verified is not None
    assert found.verified.result == "equal", found
