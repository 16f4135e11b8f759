"""Temporary views for queries that several statements of a refresh read, so that Spark analyses them once.

A view keeps its text, and each statement that reads it analyses that anew, as often as it names the view, and
with it the text of the views below. Of views over views over a dozen tables that takes longer than to run the
statement. A view of these settings keeps what the text meant.
"""

from __future__ import annotations

from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context

ANALYSED = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}


def make_view(context: Context, step: str, sql: str, table: KeyedTable | None = None) -> int:
    """Run a statement that makes a temporary view over pinned versions.

    :param table: as of ``Context.run``.
    """
    with context.tuned(ANALYSED):
        return context.run(step, sql, table)


__all__ = ["make_view"]
