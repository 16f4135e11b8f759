"""What a compaction does if another commit lands in the middle of its statement."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.catalog.api import PlacedFile
from dbt_arctic.compaction import major, rewrite
from dbt_arctic.compaction.major import CompactionPlan
from dbt_arctic.compaction.rewrite import OVERTAKEN, merge_small_files
from dbt_arctic.errors import ArcticError, CommitConflict, StatementError
from dbt_arctic.keyed.names import Name
from tests.unit.compaction.conftest import Log, Orders, txn

MIXED = "Cannot delete file where some, but not all, rows match filter ref(name=_txn) in (7): data/a.parquet"
GONE = "Missing required files to delete: data/a.parquet"


class Context:
    """Statements fail with these errors, one after the other; then they do not."""

    def __init__(self, *failures: ArcticError) -> None:
        self.failures = list(failures)
        self.ran: list[str] = []
        self.texts: list[str] = []
        log = Log("events")
        log.commit(60, rows=10, files=3)
        self.catalog = SimpleNamespace(
            of=lambda name: self.catalog, load_table=lambda schema, name: log.state
        )

    def run(self, step: str, sql: str, table: Any = None) -> int | None:
        self.ran.append(step)
        self.texts.append(sql)
        if self.failures:
            raise self.failures.pop(0)
        return None


def plan(orders: Orders) -> CompactionPlan:
    return CompactionPlan(orders.table, 1, 1, pending=frozenset([7]), merge=frozenset(), trim=(7,))


def test_a_trim_of_files_that_were_put_together_meanwhile_is_planned_again(orders: Orders) -> None:
    context: Any = Context(StatementError(MIXED))
    assert major._trim(context, plan(orders)) == 1
    assert context.ran == ["trim", "trim"]


def test_a_trim_of_many_commits_lists_no_more_than_iceberg_compares_with_files(orders: Orders) -> None:
    """Of more than 200 values it does not look at the bounds of files, and none would go whole."""
    context: Any = Context()
    many = tuple(range(1000, 0, -2))
    assert major._trim(context, replace(plan(orders), trim=many)) == len(many)
    listed = [[int(one) for one in text.split("IN (")[1].rstrip(")").split(", ")] for text in context.texts]
    assert [len(one) for one in listed] == [200, 200, 100]
    # In the order of the log: a later statement takes nothing that is older.
    assert [max(one) for one in listed] == [1000, 600, 200]


def test_a_delete_goes_no_sooner_than_the_rows_that_lose_against_it(orders: Orders) -> None:
    """Whichever of them came first: their order is that of their sequence."""
    context: Any = Context()
    table = replace(orders.table, generation=replace(orders.table.generation, sequence_by="seq"))
    few, many = tuple(range(1, 51)), tuple(range(1, 301))
    assert major._trim(context, replace(plan(orders), table=table, trim=(), forget=few)) == 50
    assert context.ran == ["forget"]
    assert major._trim(context, replace(plan(orders), table=table, trim=(), forget=many)) == 300
    assert context.ran == ["forget", "trim", "trim", "forget", "forget"]
    assert ["<> 'D'" in text for text in context.texts] == [False, True, True, False, False]


def test_the_oldest_commits_are_trimmed_first(orders: Orders) -> None:
    merged = [orders.upsert(minutes) for minutes in (90, 80, 70)]
    late = txn(200)
    orders.change.commit(60, rows=1, files=1, size=1, txn=str(late))
    assert major._oldest_first(orders.change.state, frozenset([late, *merged])) == (*merged, late)


def test_any_other_failure_of_a_trim_is_reported(orders: Orders) -> None:
    context: Any = Context(StatementError("No space left on device"))
    with pytest.raises(StatementError, match="No space"):
        major._trim(context, plan(orders))


def test_files_of_an_older_partitioning_are_looked_up_only_where_there_may_be_some() -> None:
    context: Any = Context()
    name, state = Name("lake", "shop", "events"), context.catalog.load_table("shop", "events")
    known = replace(state, spec_id=2)
    assert not rewrite.may_have_old_files(known)
    assert rewrite.may_have_old_files(replace(known, has_old_specs=True))
    assert rewrite.may_have_old_files(replace(known, spec_id=None)), "as it is read by SQL"
    assert not rewrite.may_have_old_files(replace(known, has_old_specs=True, current_snapshot_id=None))
    files = [PlacedFile(True, 1, 1, (), spec_id=2), PlacedFile(False, 1, 1, (), spec_id=1)]
    context.catalog.placed_files = lambda *given: files
    assert not rewrite.has_old_files(context, name, known), "deletes are no rows"
    files.append(PlacedFile(True, 1, 1, (), spec_id=1))
    assert rewrite.has_old_files(context, name, known)
    assert rewrite.has_old_files(context, name, replace(known, spec_id=None))


@pytest.mark.parametrize("error", [CommitConflict("found new delete"), StatementError(GONE)])
def test_a_rewrite_gives_way(error: ArcticError) -> None:
    context: Any = Context(error)
    assert merge_small_files(context, Name("lake", "shop", "events")).outcome == OVERTAKEN
    assert context.ran == ["rewrite_plain"]


def test_any_other_failure_of_a_rewrite_is_reported() -> None:
    context: Any = Context(StatementError("No space left on device"))
    with pytest.raises(StatementError):
        merge_small_files(context, Name("lake", "shop", "events"))
    assert merge_small_files(context, Name("lake", "shop", "events")).outcome == rewrite.NOTHING
