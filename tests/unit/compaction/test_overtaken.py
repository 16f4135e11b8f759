"""What a compaction does when somebody else's commit comes in the middle of its statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.compaction import major, rewrite
from dbt_arctic.compaction.major import CompactionPlan
from dbt_arctic.compaction.rewrite import OVERTAKEN, merge_small_files
from dbt_arctic.errors import ArcticError, CommitConflict, StatementError
from dbt_arctic.keyed.names import Name
from tests.unit.compaction.conftest import Log, Orders

MIXED = "Cannot delete file where some, but not all, rows match filter ref(name=_txn) in (7): data/a.parquet"
GONE = "Missing required files to delete: data/a.parquet"


class Edge:
    """Statements fail with these errors, one after the other; then they do not."""

    def __init__(self, *failures: ArcticError) -> None:
        self.failures = list(failures)
        self.ran: list[str] = []
        log = Log("events")
        log.commit(60, rows=10, files=3)
        self.catalog = SimpleNamespace(load_table=lambda schema, name: log.state)

    def run(self, step: str, sql: str, table: Any = None) -> int:
        self.ran.append(step)
        if self.failures:
            raise self.failures.pop(0)
        return -1


def plan(orders: Orders) -> CompactionPlan:
    seven = frozenset([7])
    return CompactionPlan(orders.table, 1, 1, pending=seven, merge=frozenset(), trim=seven)


def test_a_trim_of_files_that_were_put_together_meanwhile_is_planned_again(orders: Orders) -> None:
    edge: Any = Edge(StatementError(MIXED))
    assert major._trim(edge, plan(orders)) == 1
    assert edge.ran == ["trim", "trim"]


def test_any_other_failure_of_a_trim_is_told(orders: Orders) -> None:
    edge: Any = Edge(StatementError("No space left on device"))
    with pytest.raises(StatementError, match="No space"):
        major._trim(edge, plan(orders))


@pytest.mark.parametrize("error", [CommitConflict("found new delete"), StatementError(GONE)])
def test_a_rewrite_gives_way(error: ArcticError) -> None:
    edge: Any = Edge(error)
    assert merge_small_files(edge, Name("lake", "shop", "events")).outcome == OVERTAKEN
    assert edge.ran == ["rewrite_plain"]


def test_any_other_failure_of_a_rewrite_is_told() -> None:
    edge: Any = Edge(StatementError("No space left on device"))
    with pytest.raises(StatementError):
        merge_small_files(edge, Name("lake", "shop", "events"))
    assert merge_small_files(edge, Name("lake", "shop", "events")).outcome == rewrite.NOTHING
