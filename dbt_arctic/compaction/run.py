"""Executes operations one after the other, within a time budget, and records their results.

A failed or overtaken operation does not stop the others: each is a separate commit, and unfinished work
remains due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dbt_arctic.compaction.major import compact_major, trim_merged
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.rebucket import rebucket
from dbt_arctic.compaction.rewrite import RewriteResult, compact_full, compact_minor, merge_small_files
from dbt_arctic.compaction.settings import DEFAULT_TRIM_GRACE_SECONDS, CompactionSettings
from dbt_arctic.compaction.status import TableStatus, measure_keyed, measure_plain
from dbt_arctic.errors import ArcticError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import operations
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import Record
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import find_keyed, load_base, load_change

FAILED = "failed"
OVER_BUDGET = "no time left"


@dataclass(frozen=True)
class OperationResult:
    """The result of an operation. ``detail`` describes its amount, or the reason of a failure.

    :param before: the status of the table before, if available.
    :param after: the status of the table after, if available.
    """

    operation: Operation
    outcome: str
    detail: str = ""
    began_ms: int = 0
    seconds: float = 0.0
    before: TableStatus | None = None
    after: TableStatus | None = None

    @property
    def was_tried(self) -> bool:
        """Whether the operation was started."""
        return self.outcome != OVER_BUDGET


def run_operations(
    context: Context,
    operations: Sequence[Operation],
    budget_s: float | None = None,
    grace_s: float = DEFAULT_TRIM_GRACE_SECONDS,
    report: Callable[[OperationResult], None] = lambda done: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[OperationResult]:
    """Execute as many operations as the budget allows, in the given order.

    The durations of finished operations correct the estimates of the remaining ones. On a slow machine, fewer
    operations are executed, and the budget is kept.

    :param report: called after each operation.
    """
    began, spent, estimated = clock(), 0.0, 0.0
    found = []
    for operation in operations:
        slower = max(1.0, spent / estimated) if estimated else 1.0
        left = None if budget_s is None else budget_s - (clock() - began)
        if left is not None and operation.cost_s * slower > left:
            done = OperationResult(operation, OVER_BUDGET, began_ms=context.now_ms())
        else:
            done = run_operation(context, operation, grace_s, clock)
            spent += done.seconds
            estimated += operation.cost_s
        report(done)
        found.append(done)
    return found


def run_operation(
    context: Context,
    operation: Operation,
    grace_s: float = DEFAULT_TRIM_GRACE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> OperationResult:
    """Execute one operation, and return its result even if it fails."""
    began, began_ms = clock(), context.now_ms()
    before: TableStatus | None = None
    try:
        before = _measure(context, operation.name, grace_s)
        outcome, detail = _execute(context, operation, grace_s)
        after = _measure(context, operation.name, grace_s)
    except ArcticError as error:
        return OperationResult(operation, FAILED, str(error), began_ms, clock() - began, before)
    return OperationResult(operation, outcome, detail, began_ms, clock() - began, before, after)


def trim_when_due(context: Context, name: Name, settings: CompactionSettings) -> OperationResult | None:
    """After a write: trim what was merged longer ago than the grace period, so that later reads are faster.

    Reads metadata, and runs one statement without a Spark job if something is due. A failure does not affect
    the write; ``None`` if nothing is due.
    """
    if settings.trigger is None or settings.shed:
        return None
    operation = Operation("trim", name, "with a write", 0.5, 0.0)
    try:
        status = _measure(context, name, settings.trim_grace_s)
    except ArcticError as error:
        return OperationResult(operation, FAILED, str(error), context.now_ms())
    if status is None or not status.pending.trim_due:
        return None
    return run_operation(context, operation, settings.trim_grace_s)


class _Executed(NamedTuple):
    """The outcome of an operation, and a description of what it did."""

    outcome: str
    detail: str


def _execute(context: Context, operation: Operation, grace_s: float) -> _Executed:
    """Execute an operation, and return its outcome and a description of its amount."""
    name, target = operation.name, operation.target_file_bytes
    if operation.kind in ("major", "trim"):
        if operation.kind == "major":
            merged = compact_major(context, name, grace_s)
        else:
            merged = trim_merged(context, name, grace_s)
        has_rows = merged.merged_rows is not None and merged.merged
        rows = f", {counted(merged.merged_rows or 0, 'row')}" if has_rows else ""
        detail = f"{counted(merged.merged, 'commit')} merged{rows}; {merged.trimmed:,} trimmed"
        return _Executed(merged.outcome, "; ".join([detail, *merged.indexes]))
    if operation.kind == "minor":
        result = compact_minor(context, name, target)
    elif operation.kind == "full" and operation.to_buckets is not None:
        result = rebucket(context, name, operation.to_buckets, target)
    elif operation.kind == "full":
        result = compact_full(context, name, operation.buckets, target)
    else:
        result = merge_small_files(context, name, target, old_files=not operation.due)
    return _Executed(result.outcome, _files(result))


def _files(result: RewriteResult) -> str:
    report = f"{counted(result.files_before, 'file')} into {result.files_after:,}"
    return f"{report}; {result.note}" if result.note else report


def _measure(context: Context, name: Name, grace_s: float) -> TableStatus | None:
    table = find_keyed(context.catalog, name)
    if table is not None:
        base, change = load_base(context.catalog, table), load_change(context.catalog, table)
        return measure_keyed(context.catalog, table, base, change, context.now_ms(), grace_s)
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    return None if state is None else measure_plain(context.catalog, name, state, context.now_ms())


def record(context: Context, schema: Name, done: Sequence[OperationResult]) -> None:
    """Record the operations that were started, in one commit; no commit if there were none.

    :param schema: any name of the schema that has the table of operations.
    """
    tried = [one for one in done if one.was_tried]
    if not tried:
        return
    name = schema.sibling(operations.OPERATIONS)
    if context.catalog.of(name).load_table(name.schema, name.identifier) is None:
        context.run("create_operations", operations.create_table(name))
    context.run("record_operations", operations.insert(name, [_record(context, one) for one in tried]))


def _record(context: Context, done: OperationResult) -> Record:
    operation, before, after = done.operation, done.before, done.after
    return Record(
        at_ms=done.began_ms,
        run=context.run_id,
        kind=operation.kind,
        table_name=operation.name.dotted,
        scope=operation.scope,
        why=operation.why,
        outcome=done.outcome,
        detail=done.detail,
        estimated_s=operation.cost_s,
        seconds=done.seconds,
        read_cost_before=before.read_amplification if before else 0.0,
        read_cost_after=after.read_amplification if after else 0.0,
        files_before=before.files if before else 0,
        files_after=after.files if after else 0,
        bytes_before=before.size_bytes if before else 0,
        bytes_after=after.size_bytes if after else 0,
    )
