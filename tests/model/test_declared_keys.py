"""Keys that a project declares for a table: a model is incremental as long as they hold, and right if not."""

from __future__ import annotations

import random

import pytest

from dbt_arctic.auto import key_checks
from dbt_arctic.auto.key_selection import ProjectKey, with_needed_keys
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.stages import stages_of, stages_with_sql
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.store.refresh_outcome import Outcome
from tests.model import plain  # noqa: F401  # the statements of users
from tests.model.world import MemoryWorld

LAST = (
    "SELECT tid, v FROM (SELECT *, row_number() OVER (PARTITION BY tid ORDER BY upd DESC) AS n FROM {}) "
    "WHERE n = 1"
)
KEY = ("tid", "upd")


class Events:
    """A plain table of events, and a model with the last event of each ``tid``."""

    def __init__(self, sql: str = LAST) -> None:
        self.world = MemoryWorld(1)
        self.context = self.world.process("run").context
        self.raw, self.model = self.world.name("raw"), self.world.name("last")
        self.sql = sql.format(self.raw.sql)
        self.keys = {self.raw.dotted.lower(): [ProjectKey(("v",)), ProjectKey(KEY)]}
        self.world.execute(f"CREATE TABLE {self.raw.sql} (tid bigint, upd bigint, v bigint) USING iceberg")
        # Enough rows that a few changes are few.
        self.add(*((tid, 0, tid) for tid in range(100, 160)))

    def add(self, *rows: tuple[int, int | None, int]) -> None:
        listed = str(list(rows)).strip("[]").replace("None", "NULL")
        self.world.execute(f"INSERT INTO {self.raw.sql} VALUES {listed}")

    def remove(self, condition: str) -> None:
        self.world.execute(f"DELETE FROM {self.raw.sql} WHERE {condition}")

    def config(self) -> KeyedConfig:
        settings = {
            "unique_key": "tid",
            "incremental_strategy": "auto",
            "buckets": 1,
            "full_refresh_above": 1,
        }
        config = parse_config("last", settings)
        return with_needed_keys(self.context.catalog, self.model, config, self.sql, self.keys, "")

    def planned(self) -> RefreshPlan:
        return plan_refresh(
            self.context.catalog, self.model, self.config(), self.sql, self.context.query_schema
        )

    def refresh(self) -> Outcome:
        plan = self.planned()
        outcome = run_refresh(self.context, self.model, self.config(), plan, owner="o")
        assert [one.stage for one in outcome.stages][:1] == [one.name for one in stages_of(plan)][:1]
        return outcome

    def stored(self) -> dict[int, int]:
        return dict(self.world.query(f"SELECT tid, v FROM {self.model.sql}"))

    def expected(self) -> dict[int, int]:
        rows = self.world.query(f"SELECT tid, coalesce(upd, -1), v FROM {self.raw.sql}")
        return {tid: v for tid, _, v in sorted(rows)}


def test_a_declared_key_makes_a_deduplication_incremental() -> None:
    events, chance = Events(), random.Random(5)
    assert str(events.refresh().choice) == "FULL (build)"
    for last in range(1, 7):
        added = {tid: (tid, last, chance.randrange(1000)) for tid in chance.sample(range(95, 165), 3)}
        events.add(*added.values())
        if chance.random() < 0.5:
            events.remove(f"tid = {chance.choice(list(added))}")
        assert str(events.refresh().choice).startswith("INCREMENTAL")
        assert events.stored() == events.expected()
    assert events.planned().action == "nothing"


def test_only_the_keys_that_a_model_needs_are_used() -> None:
    events = Events()
    (used,) = events.config().declared_keys.items()
    assert used == (events.raw.dotted.lower(), KEY)
    for sql in ("SELECT tid, v FROM {}", "SELECT tid, rand() AS v FROM {}"):
        assert Events(sql).config().declared_keys == {}
    events.keys = {}
    events.refresh()
    events.add((100, 9, 1))
    assert str(events.refresh().choice) == "FULL (ties)"


@pytest.mark.parametrize("wrong", [(101, 7, 5), (101, None, 5)])
def test_rows_that_share_a_key_end_incremental_refreshes_until_they_are_gone(
    wrong: tuple[int, int | None, int],
) -> None:
    """NULL counts as such a row, because it does not identify one."""
    events = Events()
    events.refresh()
    events.add((101, 7, 4), (102, 7, 4))
    assert str(events.refresh().choice).startswith("INCREMENTAL")
    for row in (wrong, (103, 1, 1)):
        # The second row is unique, and those of the first refresh have to be found again.
        events.add(row)
        assert str(events.refresh().choice) == "FULL (not-unique)"
        assert events.stored()[101] in (4, 5)
        assert {**events.stored(), 101: 0} == {**events.expected(), 101: 0}
        assert events.planned().action == "nothing"
    events.remove("tid = 101 AND v = 5")
    assert str(events.refresh().choice) == "FULL (not-unique)"
    events.add((104, 1, 1))
    assert str(events.refresh().choice).startswith("INCREMENTAL")
    assert events.stored() == events.expected()


def test_rows_that_share_a_key_before_the_first_build_are_found() -> None:
    events = Events()
    events.add((100, 0, 8))
    assert str(events.refresh().choice) == "FULL (build)"
    events.add((105, 3, 8))
    assert str(events.refresh().choice) == "FULL (not-unique)"


def test_a_plan_shows_the_check_before_its_keys() -> None:
    events = Events()
    assert [one.name for one in stages_of(events.planned())] == ["declared_key_1", "query"]
    events.refresh()
    events.add((100, 5, 1))
    stages = list(stages_with_sql(stages_of(events.planned())))
    assert [stage.name for stage, _ in stages] == ["declared_key_1", "affected_keys", "rows"]
    assert "LEFT SEMI JOIN" in stages[0][1]
    assert stages[0][0].decision is not None
    assert stages[0][0].decision.when == f"{events.raw} has several rows of one key"


def test_a_key_of_columns_that_the_table_lacks_is_an_error() -> None:
    events = Events()
    events.keys = {events.raw.dotted.lower(): [ProjectKey(("tid", "at"), "models/sources.yml")]}
    with pytest.raises(ConfigError, match="at, which is not a column") as error:
        events.config()
    assert error.value.where == "models/sources.yml"
    assert "tid, upd, v" in error.value.fix
    # A test may be on an expression.
    events.keys = {events.raw.dotted.lower(): [ProjectKey(("lower(v)",))]}
    assert events.config().declared_keys == {}


def test_another_declared_key_is_another_query() -> None:
    events = Events()
    events.refresh()
    events.keys = {events.raw.dotted.lower(): [ProjectKey(("upd", "tid"))]}
    events.add((100, 5, 1))
    assert str(events.refresh().choice) == "FULL (changed-sql)"


def test_a_refresh_without_the_check_would_not_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_checks, "_check_sql", lambda upstream, all_rows: "SELECT 0")
    events = Events()
    events.refresh()
    events.add((101, 0, 5))
    assert str(events.refresh().choice).startswith("INCREMENTAL")
