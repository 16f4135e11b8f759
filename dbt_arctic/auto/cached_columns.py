"""Skips Spark's analysis of a query whose columns are known from its last refresh.

What columns a query has follows from its text, the columns that it reads, settings, and Spark's own rules.
The fingerprint of a commit is of the first three, and Iceberg notes in it which Spark wrote.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from dbt_arctic.auto.plan import IncrementalPlan, RefreshPlan
from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import FINGERPRINT, PROPERTY_CONSUMED

_WRITTEN_BY = "engine-version"


def keeps_its_columns(catalog: CatalogReader, table: KeyedTable, change: TableState) -> bool:
    """Whether a table has the columns that its last refresh found it with, and that was by this Spark."""
    newest = next((one for one in change.history() if PROPERTY_CONSUMED in one.summary), None)
    if newest is None or newest.summary.get(_WRITTEN_BY) != _spark():
        return False
    then = catalog.columns_at(table.change.schema, table.change.identifier, newest.snapshot_id)
    return {name: one.type for name, one in then.items()} == {one.name: one.type for one in change.columns}


def is_of_same_query(plan: RefreshPlan) -> bool:
    """Whether the last refresh was by the same query, so that its columns are those of the table."""
    last = plan.expected.get(FINGERPRINT)
    return last is not None and bool(last.table_id) and last == plan.consumed.get(FINGERPRINT)


def tells_columns_apart(plan: RefreshPlan) -> bool:
    """Whether the columns of a plan that took them from the table are the query's, each with its own name. A
    table keeps the order that it was made with, and a query may have another by now.
    """
    if isinstance(plan, IncrementalPlan):
        return plan.query.is_named
    return plan.reason is None or plan.reason.code != "not-resolved"


@cache
def _spark() -> str:
    return version("pyspark")


__all__ = ["is_of_same_query", "keeps_its_columns", "tells_columns_apart"]
