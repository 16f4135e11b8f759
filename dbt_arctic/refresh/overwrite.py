"""``insert_overwrite`` on a keyed table: a batch replaces the partitions that it has rows for, or all rows.

The deleted keys depend on the table, so this is a computed write. Its commit is a normal one that compaction
merges, downstream models pull, and later upserts override.
"""

from __future__ import annotations

from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.overwrite import StagedBatch, list_partitions, replace_rows
from dbt_arctic.keyed.write import insert_into_change
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.upsert import prepare
from dbt_arctic.store.branches import branch_name, staged
from dbt_arctic.store.computed_write import Attempt, Purpose, branch_head, write_computed
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.row_counts import with_rows
from dbt_arctic.store.state import head, load_change


def overwrite(
    context: Context, name: Name, config: KeyedConfig, sql: str, consumption: Consumption
) -> Outcome:
    """Replace rows by a batch, in one commit.

    The batch is written to a branch that is never published, and read from there. So its query runs once, and
    its partitions and the written rows come from the same result.

    :raises ConcurrentRun: others kept committing; nothing was published.
    """
    table, batch = prepare(context, name, config, sql)
    properties = {PROPERTY_RUN: context.run_id, **consumption.properties()}
    change = load_change(context.catalog, table)
    consumption.check(change, config.model, name)
    txn = context.new_txn()
    branch = branch_name(txn)
    with staged(context, table.change, head(change), branch, table):
        run = {PROPERTY_RUN: context.run_id}
        context.run("stage", insert_into_change(table, batch, txn, run, branch), table)
        rows = StagedBatch(branch_head(context, table, branch, head(change)), txn)
        partitions = context.query(list_partitions(table, rows)) if config.overwrite == "partitions" else None

        def statement(attempt: Attempt) -> str:
            return replace_rows(
                table,
                rows,
                attempt.pinned,
                partitions,
                attempt.txn,
                properties,
                attempt.branch,
                attempt.known,
            )

        written = write_computed(
            context,
            table,
            Purpose(
                "overwrite",
                config.model,
                "run the model again",
                joins=True,
                pulls=consumption.pulls,
            ),
            statement,
            check=lambda pinned: consumption.check(pinned, config.model, name),
        )
    return Outcome(with_rows("OVERWRITE", written.rows), written.rows, written.sql)
