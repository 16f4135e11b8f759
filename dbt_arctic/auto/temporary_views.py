"""Temporary views for queries that several statements of a refresh read, so that Spark analyses them once.

By default a view keeps its text. Each statement that reads it analyses the text again for each reference, and
the text of nested views as well. For views over views over a dozen tables, this takes longer than running the
statement. With these settings, a view keeps its analysed plan.
"""

from __future__ import annotations

from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context

ANALYSED = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}


def make_view(context: Context, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
    """Create a temporary view over pinned versions.

    :param table: see ``Context.run``.
    """
    with context.tuned(ANALYSED):
        return context.run(step, sql, table)


__all__ = ["make_view"]
