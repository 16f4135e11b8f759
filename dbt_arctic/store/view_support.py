"""Refuses what needs a view on a catalog without views, before anything is written."""

from __future__ import annotations

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context

_NEEDS = {
    "a keyed table": "A keyed table is a base table, a change table, and a view that merges them.",
    "a clone": "A clone is a view over its source.",
    "a view": "The model has materialized: view.",
}


def require_views(context: Context, name: Name, where: str, what: str = "a keyed table") -> None:
    """Check that the catalog can store a view.

    :param what: ``a keyed table``, ``a clone`` or ``a view``.
    :raises ConfigError: the catalog has no views.
    """
    if context.catalog.of(name).has_views():
        return
    raise ConfigError(
        f"{name} cannot be {what}, because the catalog `{name.catalog}` has no views",
        where=where,
        why=_NEEDS[what],
        fix="Use materialized: table, or incremental_strategy: merge, append, delete+insert or "
        "insert_overwrite; or use a catalog with views, such as postgres, rest or hive. `dbt debug` shows "
        "what the catalog can do.",
    )
