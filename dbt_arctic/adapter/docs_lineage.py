"""Column lineage in ``dbt docs``: from which columns each documented column of a model is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.result_inputs import settings_of_meaning
from dbt_arctic.auto.query_lineage import UpstreamColumn, find_column_lineage
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name

DETAIL = "computed from"
"""The entry of a column's ``meta``, which dbt's page shows with the column."""


def add_column_lineage(catalog: CatalogReader, credentials: ArcticCredentials, nodes: Iterable[Any]) -> None:
    """Add the lineage to the documented columns of models and snapshots whose SQL the planner can read.

    dbt's page shows details only of columns that the manifest has, so other columns have none.

    :param nodes: of dbt's manifest.
    """
    for node in nodes:
        sql = getattr(node, "compiled_code", None)
        if not node.columns or not sql or getattr(node, "language", "") != "sql":
            continue
        name = Name(node.database, node.schema, node.identifier)
        settings = settings_of_meaning(credentials, node.config.to_dict())
        found = find_column_lineage(catalog, name, sql, settings) or {}
        by_lower = {column.lower(): sources for column, sources in found.items()}
        for column in node.columns.values():
            if sources := by_lower.get(column.name.lower()):
                column.meta = {**column.meta, DETAIL: _listed(sources, name)}


def _listed(sources: Sequence[UpstreamColumn], model: Name) -> str:
    """The columns as text, with the schema where it differs from the model's.

    >>> from dbt_arctic.planner.properties.column_lineage import Derivation
    >>> _listed([UpstreamColumn(Name("lake", "raw", "rates"), "rate", Derivation.IDENTITY),
    ...     UpstreamColumn(Name("lake", "shop", "orders"), "amount", Derivation.AGGREGATION)],
    ...     Name("lake", "shop", "sums"))
    'raw.rates.rate, orders.amount'
    """
    return ", ".join(
        f"{one.relation.identifier}.{one.column}"
        if (one.relation.catalog, one.relation.schema) == (model.catalog, model.schema)
        else f"{one.relation.schema}.{one.relation.identifier}.{one.column}"
        for one in sources
    )


__all__ = ["DETAIL", "add_column_lineage"]
