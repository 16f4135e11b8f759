"""An upper bound for the number of groups, from column bounds in metadata. No Spark job."""

from __future__ import annotations

import math

from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.algebra.operators import Aggregate, Node, Project, scans, walk
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.store.state import consistent_pair, find_keyed

MANY = 500_000
"""The number of stored groups from which on only the affected groups are read, in several tasks."""

_BOUNDED = ("int", "bigint", "date")


def may_be_many(catalog: CatalogReader, inputs: ModelInputs, state: Node) -> bool:
    """Whether an auxiliary view may have ``MANY`` groups, by the column bounds of its group columns.

    A column with unknown bounds counts as one with few values, like a status or a country.

    :param state: an aggregate, perhaps with the constant key of a single row.
    """
    node = state.child if isinstance(state, Project) else state
    if (
        not isinstance(node, Aggregate)
        or max((one.rows or 0 for one in inputs.upstreams.values()), default=0) < MANY
    ):
        return False
    stored = {name: (scan.source, column) for scan in scans(node) for name, column in scan.columns}
    below = {name: value for part in walk(node) if isinstance(part, Project) for name, value in part.items}
    groups = 1
    pending = set(columns_of(*(value for _, value in node.groups)))
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in stored:
            source, column = stored[name]
            groups *= _values(catalog, inputs.upstreams[source], column)
        elif name in below:
            pending |= columns_of(below[name])
    return groups >= MANY


def _values(catalog: CatalogReader, upstream: Upstream, column: str) -> int:
    """The number of integers, or days, between the bounds of a column; 1 if the bounds are unknown."""
    if dict(upstream.columns).get(column) not in _BOUNDED:
        return 1
    where = _stored_at(catalog, upstream.name)
    if where is None:
        return 1
    files = catalog.of(where[0]).data_files(where[0].schema, where[0].identifier, where[1], column)
    lower = min((math.inf if one.lower is None else one.lower for one in files), default=math.inf)
    upper = max((-math.inf if one.upper is None else one.upper for one in files), default=-math.inf)
    return int(upper - lower) + 1 if lower <= upper else 1


def _stored_at(catalog: CatalogReader, name: Name) -> tuple[Name, int] | None:
    """The table that has most of the rows of an upstream, and its snapshot."""
    keyed = find_keyed(catalog, name)
    if keyed is not None:
        base, _ = consistent_pair(catalog, keyed)
        at = base.current_snapshot_id
        return None if at is None else (keyed.base, at)
    state = catalog.of(name).load_table(name.schema, name.identifier)
    at = None if state is None else state.current_snapshot_id
    return None if at is None else (name, at)


__all__ = ["MANY", "may_be_many"]
