"""What a compaction of ``dbt-arctic keep`` reads of the catalog."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter import keep_actions
from dbt_arctic.adapter.keep_actions import Keeper
from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.keyed.names import Name

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
