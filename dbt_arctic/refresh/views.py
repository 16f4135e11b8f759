"""Temporary views that statements of a refresh read several times: what their text means is found out once.

A view keeps its text, and each statement that reads it analyses that anew, as often as it names the view, and
with it the text of the views below. Of views over views over a dozen tables that takes longer than to run the
statement. A view of these settings keeps what the text meant.
"""

from __future__ import annotations

from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.edge import Edge

ANALYSED = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}


def make_view(edge: Edge, step: str, sql: str, table: KeyedTable | None = None) -> int:
    """Run a statement that makes a temporary view over pinned versions.

    :param table: as of ``Edge.run``.
    """
    with edge.tuned(ANALYSED):
        return edge.run(step, sql, table)


__all__ = ["make_view"]
