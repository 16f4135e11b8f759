"""The texts by which keyed tables in a catalog without views are read, as no relation has their names."""

from __future__ import annotations

import re
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable, side_root
from dbt_arctic.store.context import Context
from dbt_arctic.store.other_catalogs import merged_text
from dbt_arctic.store.relation_reads import with_reads
from dbt_arctic.store.state import find_keyed

_PART = r"`((?:[^`]|``)+)`"
_MAYBE_READ = re.compile(
    rf"(?:\b(?:FROM|JOIN|USING)\s+|[,(]\s*){_PART}\.{_PART}\.{_PART}(?!\s*\.)", re.IGNORECASE
)
"""A full name that may be a relation that is read, or be in an expression, a string or a comment."""


def text_without_view(catalog: CatalogReader, name: Name) -> str | None:
    """The text by which a keyed table without a view is read; ``None`` for any other relation."""
    try:
        has_views = catalog.of(name).has_views()
    except ConfigError:
        return None  # a catalog that only Spark knows
    if has_views:
        return None
    table = find_keyed(catalog, name)
    return None if table is None or table.has_view else merged_text(table)


def reading_records(context: Context) -> Context:
    """The context whose statements read keyed tables without a view by their texts.

    The statements name these tables as if they had a view: those of ``UPDATE`` and ``DELETE``, and those over
    auxiliary views. Whether a catalog has views is requested only for the relations that a statement reads.
    """

    def run(step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        return context.run(step, with_records(context.catalog, sql), table)

    return replace(
        context,
        run=run,
        query=lambda sql: context.query(with_records(context.catalog, sql)),
        query_schema=lambda sql: context.query_schema(with_records(context.catalog, sql)),
    )


def with_records(catalog: CatalogReader, sql: str) -> str:
    """Generated SQL with texts in place of the names of keyed tables without a view."""
    texts = {}
    for parts in _MAYBE_READ.findall(sql):
        name = Name(*(part.replace("``", "`") for part in parts))
        if side_root(name.identifier) is None and name not in texts:
            texts[name] = text_without_view(catalog, name)
    # Most statements read no such table. To find the tokens of a long one takes milliseconds.
    return with_reads(sql, texts.get) if any(texts.values()) else sql
