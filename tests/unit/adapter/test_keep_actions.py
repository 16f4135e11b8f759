"""What a compaction of ``dbt-arctic keep`` reads of the catalog."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter import keep_actions
from dbt_arctic.adapter.keep_actions import Keeper
from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.scheduling.model_lag import ModelLag, PendingUpstream
from dbt_arctic.scheduling.scheduler import KeptModel, ModelState
from dbt_arctic.scheduling.settings import KeepSettings

ORDERS = Name("lake", "shop", "orders")
DUE = Operation("major", ORDERS, "", 1.0, 1.0)


def test_the_operations_table_is_read_once_for_a_look_and_its_compaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []

    def durations_of(*given: Any) -> MeasuredDurations:
        found.append("operations")
        return MeasuredDurations()

    monkeypatch.setattr(keep_actions, "durations_of", durations_of)
    monkeypatch.setattr(keep_actions, "find_states", lambda catalog, name: [])
    monkeypatch.setattr(
        keep_actions, "overview_of_tables", lambda *given, **how: [SimpleNamespace(due=[DUE])]
    )
    monkeypatch.setattr(keep_actions, "run_operations", lambda *given, **how: [])
    monkeypatch.setattr(keep_actions, "record_and_keep", lambda *given: None)
    session = SimpleNamespace(
        catalog=None,
        context=SimpleNamespace(now_ms=lambda: 0),
        compaction_of=None,
        operations_kept_s=0,
        own_schema=Name("lake", "shop", "any"),
        read=lambda sql: None,
    )
    target = SimpleNamespace(credentials=SimpleNamespace(database="lake"))
    project = SimpleNamespace(tables=frozenset([ORDERS]), target=target)
    keeper = Keeper(cast(Any, project), cast(Any, session), print)
    due = keeper.due_compactions()
    keeper.compact(due, None, lambda done: None)
    assert (due, found) == ([DUE], ["operations"])
    keeper.due_compactions()
    assert len(found) == 2, "operations that were recorded since then are read"


class World:
    """Models with their lags, tables that cannot be read, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **models: KeepSettings) -> None:
        self.now = 1000.0
        self.since: dict[str, float] = {}
        self.changed: dict[str, float] = {}
        self.damaged: set[str] = set()
        self.is_down = False
        monkeypatch.setattr(keep_actions, "now_s", lambda: self.now)
        monkeypatch.setattr(keep_actions, "Once", lambda catalog: catalog)
        monkeypatch.setattr(keep_actions, "LagReader", lambda *given: self)
        monkeypatch.setattr(keep_actions, "last_modified_ms", self.last_modified_ms)
        monkeypatch.setattr(keep_actions, "find_states", self.find_states)
        project = SimpleNamespace(
            target=None,
            manifest=None,
            models=[KeptModel(name, settings) for name, settings in models.items()],
            nodes={name: name for name in models},
            reads={name: [] for name in models},
            table_of=lambda model: ORDERS.sibling(model),
            tables=frozenset(map(ORDERS.sibling, models)),
        )
        self.keeper = Keeper(cast(Any, project), cast(Any, SimpleNamespace(catalog=self)), print)

    def of(self, name: Name) -> World:
        return self

    def list_names(self, schema: str) -> list[Any]:
        if self.is_down:
            raise CatalogUnavailable("down")
        return []

    def require(self, name: str) -> None:
        if self.is_down or name in self.damaged:
            raise CatalogUnavailable(f"{name} cannot be read")

    def lag_of(self, name: str) -> ModelLag:
        self.require(name)
        since = self.since.get(name)
        waiting = PendingUpstream("raw", "file", 1, None if since is None else int(since * 1000))
        return ModelLag(name, (waiting,))

    def last_modified_ms(self, catalog: Any, name: Name) -> int | None:
        self.require(name.identifier)
        at = self.changed.get(name.identifier)
        return None if at is None else int(at * 1000)

    def find_states(self, catalog: Any, name: Name) -> list[Any]:
        self.require(name.identifier)
        return [SimpleNamespace(name=name.sibling(f"{name.identifier}_state"))]

    def seen(self, model: str) -> ModelState:
        return self.keeper.observe({}).seen[model]


LAG, HOURLY = KeepSettings(target_lag_s=60), KeepSettings(every_s=3600)


def test_a_table_that_cannot_be_read_stops_only_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, orders=LAG, broken=LAG, hourly=HOURLY)
    world.since, world.damaged, world.changed = {"orders": 900}, {"broken", "hourly"}, {"hourly": 900}
    observed = world.keeper.observe({})
    assert observed.seen == {
        "orders": ModelState({"raw": 900}),
        "broken": ModelState(must_run=True),
        "hourly": ModelState(),
    }
    assert observed.lags["broken"].problem == "broken cannot be read: dbt-arctic verify"
    world.is_down = True
    with pytest.raises(CatalogUnavailable, match="down"):
        world.keeper.observe({})


def test_compaction_leaves_out_the_states_of_a_table_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, orders=LAG, broken=LAG)
    world.damaged = {"broken"}
    looked: list[set[str]] = []
    cast(Any, world.keeper)._session.context = SimpleNamespace(now_ms=lambda: 0)
    cast(Any, world.keeper)._session.compaction_of = None
    monkeypatch.setattr(
        keep_actions,
        "overview_of_tables",
        lambda catalog, tables, *given, **how: looked.append({one.identifier for one in tables}) or [],
    )
    assert world.keeper.due_compactions() == []
    assert looked == [{"orders", "orders_state", "broken"}]


def test_a_change_from_the_future_waits_since_it_was_seen_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, orders=LAG, hourly=HOURLY)
    world.since, world.changed = {"orders": 5_000_000}, {"hourly": 5_000_000}
    assert world.seen("orders").waiting == {"raw": 1000}
    world.now = 1030
    assert world.seen("orders").waiting == {"raw": 1000}
    assert world.seen("hourly").ran_at is None
    world.since["orders"] = 6_000_000
    assert world.seen("orders").waiting == {"raw": 1030}, "another change"
    world.since["orders"], world.changed["hourly"] = 1010, 1020
    assert (world.seen("orders").waiting, world.seen("hourly").ran_at) == ({"raw": 1010}, 1020)
    world.since["orders"] = 6_000_000
    world.now = 1040
    assert world.seen("orders").waiting == {"raw": 1040}, "what is gone is forgotten"
