"""Spark's analysis of a model's own query, which is kept for the length of one refresh.

A refresh needs the columns of the query at several places. For views over views over a dozen tables, or for
change events, an analysis can take longer than everything that Python does.
"""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.store.context import Context


def analysed_once(context: Context, sql: str) -> Context:
    """The same context, in which the columns of one query are analysed once.

    Generated queries are analysed as often as they are needed: they read auxiliary views, whose columns may
    change during the refresh.
    """
    kept: list[list[ColumnInfo]] = []

    def query_schema(text: str) -> list[ColumnInfo]:
        if text != sql:
            return context.query_schema(text)
        if not kept:
            kept.append(context.query_schema(text))
        return list(kept[0])

    return replace(context, query_schema=query_schema)


__all__ = ["analysed_once"]
