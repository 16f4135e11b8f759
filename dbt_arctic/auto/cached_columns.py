"""Skips Spark's analysis of a query whose columns are known from its last refresh.

The columns of a query follow from its text, the columns that it reads, settings, and Spark's own rules. The
fingerprint of a commit covers the first three, and Iceberg records the version of Spark that wrote it.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from dbt_arctic.auto.plan import IncrementalPlan, RefreshPlan
from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import FINGERPRINT, PROPERTY_CONSUMED, SETTINGS

_WRITTEN_BY = "engine-version"


def keeps_its_columns(catalog: CatalogReader, table: KeyedTable, change: TableState) -> bool:
    """Whether a table still has the columns of its last refresh, made by the same version of Spark."""
    newest = next((one for one in change.history() if PROPERTY_CONSUMED in one.summary), None)
    if newest is None or newest.summary.get(_WRITTEN_BY) != _spark():
        return False
    then = catalog.of(table.change).columns_at(
        table.change.schema, table.change.identifier, newest.snapshot_id
    )
    return {name: one.type for name, one in then.items()} == {one.name: one.type for one in change.columns}


def is_of_same_query(plan: RefreshPlan) -> bool:
    """Whether the last refresh was of the same query, so that the query's columns are those of the table."""
    last = plan.last_consumed.get(FINGERPRINT)
    if last is None or not last.table_id or last != plan.consumed.get(FINGERPRINT):
        return False
    settings = plan.consumed.get(SETTINGS)
    return settings is None or settings == plan.last_consumed.get(SETTINGS)


def can_match_by_name(plan: RefreshPlan) -> bool:
    """Whether the columns of a table can be matched by name to those of the plan's query.

    A table keeps the column order that it was created with, and the query's order may have changed.
    """
    if isinstance(plan, IncrementalPlan):
        return plan.query.is_named
    return plan.reason is None or plan.reason.code != "not-resolved"


@cache
def _spark() -> str:
    return version("pyspark")


__all__ = ["can_match_by_name", "is_of_same_query", "keeps_its_columns"]
