"""Writes one batch of a microbatch model: replaces the rows of its interval in one commit.

Batches may run concurrently, in threads of one dbt run and in several runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.errors import StatementError
from dbt_arctic.keyed import replace
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.write import insert_into_change
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.plain import PlainWrite, execute_plain_write
from dbt_arctic.refresh.upsert import batch_in_one_task, prepare
from dbt_arctic.store.computed_write import Attempt, Purpose, branch_head, write_computed
from dbt_arctic.store.context import Context
from dbt_arctic.store.file_pruning import may_hold
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.row_counts import with_rows
from dbt_arctic.store.state import head
from dbt_arctic.store.writer_lock import writer_lock

_BY_METADATA = "DeleteFromTable"
"""Spark's plan of a DELETE that only removes whole files."""
_NOT_WHOLE_FILES = "some, but not all, rows match filter"


def replace_rows(
    context: Context, write: PlainWrite, direct: str, delete: str, statements: Sequence[str]
) -> Outcome:
    """Replace the rows of an interval of a plain table.

    If the interval matches whole files (the table is partitioned by it, or was written batch by batch), this
    is one statement and one commit that does not conflict with other batches. Otherwise the rows are deleted
    and inserted on a branch, one batch after the other.

    :param write: its branch is only created if it is needed.
    :param direct: ``INSERT INTO ... REPLACE WHERE``.
    :param delete: ``DELETE`` of the rows of the interval. Its plan shows whether it matches whole files.
    :param statements: the statements to run on the branch otherwise.
    """
    plan = "\n".join(str(row[0]) for row in context.query(f"EXPLAIN {delete}"))
    if _BY_METADATA in plan:
        try:
            rows = context.run("write", direct)
        except StatementError as error:
            if _NOT_WHOLE_FILES not in str(error):
                raise
            # Another writer has since added a file that crosses the border of the interval.
        else:
            return Outcome(with_rows("OK", rows), rows, direct)
    with writer_lock(write.target):
        return execute_plain_write(context, write, statements)


def replace_keys(context: Context, name: Name, config: KeyedConfig, sql: str, interval: Interval) -> Outcome:
    """Replace the rows of an interval of a keyed table.

    Writes the upserts of the batch, and deletes for keys that have a row in the interval and none in the
    batch. The deleted keys depend on the table, so this is a computed write. After a conflict only they are
    computed again: the batch itself is read from the previous attempt. An interval without rows changes
    nothing. If the statistics of files show that the table has no row in the interval, as for a new day, no
    row of it is read.

    :raises ConcurrentRun: others kept committing; nothing was written.
    """
    table, batch = prepare(context, name, config, sql)
    condition = interval.condition(config.model, [(column.name, column.type) for column in table.columns])
    column = next(one for one in table.columns if one.name.lower() == interval.event_time.lower())
    lowest, highest = interval.stored_range(column.type)
    properties = {PROPERTY_RUN: context.run_id}

    def statement(attempt: Attempt) -> str:
        rows = batch
        if (overtaken := attempt.previous) is not None:
            written = branch_head(context, table, overtaken.branch, head(overtaken.change))
            rows = replace.from_attempt(table, batch, written, overtaken.txn)
        if not may_hold(context.catalog, table, attempt.pinned, column.name, lowest, highest):
            one_task, few = batch_in_one_task(config, table, rows)
            return insert_into_change(
                table, few, attempt.txn, properties, attempt.branch, context.cores, one_task
            )
        return replace.replace_interval(
            table, rows, attempt.pinned, condition, attempt.txn, properties, attempt.branch, attempt.known
        )

    purpose = Purpose("upsert", config.model, "run the batch again with dbt retry")
    written = write_computed(context, table, purpose, statement)
    return Outcome(with_rows("REPLACE", written.rows), written.rows, written.sql)
