"""Idempotency keys of appended batches, where a table gets commits that do not continue its log."""

from __future__ import annotations

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.keyed.idempotency_keys import appended_keys
from dbt_arctic.maintenance.erase import _of_change, _Start
from dbt_arctic.maintenance.timeline import kind_of_change


def commit(number: int, **summary: str) -> Snapshot:
    given = {f"arctic.{name}": value for name, value in summary.items()}
    return Snapshot(number, number - 1 or None, number, number, "append", given)


def change_table(*commits: Snapshot) -> TableState:
    head = commits[-1].snapshot_id
    return TableState("s", "orders__change_1", "/lake", {}, (), commits, head, {"main": head})


def test_an_erasure_keeps_the_keys_of_the_commits_that_expire_with_it() -> None:
    state = change_table(commit(1), commit(2, txn="2", append="a"), commit(3, txn="3", append="b"))
    carried = _of_change(state, _Start(3, frozenset()))
    alone = Snapshot(4, 3, 4, 4, "append", carried)
    assert appended_keys([alone], {}) == ("b", "a")
    # Most tables have none.
    assert "arctic.appended" not in _of_change(
        change_table(commit(1), commit(2, txn="2")), _Start(2, frozenset())
    )


def test_the_history_names_the_batch() -> None:
    assert kind_of_change(commit(2, txn="2", append="2026-01-05/part-1")) == "append 2026-01-05/part-1"
    assert kind_of_change(commit(2, txn="2")) == "upsert"
