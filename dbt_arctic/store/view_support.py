"""Refuses views that a catalog cannot store, or that other clients could not read.

A keyed table needs no view: in a catalog without views, it has a record (``keyed.without_views``).

Nothing has been written before.
"""

from __future__ import annotations

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context
from dbt_arctic.store.other_catalogs import require_same_name

_NEEDS = {
    "a clone": "A clone is a view over its source.",
    "a view": "The model has materialized: view.",
}


def require_views(context: Context, name: Name, where: str, what: str = "a keyed table") -> None:
    """Check that the catalog can store what describes a relation, and that other clients can read it.

    :param what: ``a keyed table``, ``a clone`` or ``a view``.
    :raises ConfigError: the catalog has no views, or another client has stored the view with another name
        for the catalog.
    """
    if what == "a keyed table" or context.catalog.of(name).has_views():
        require_same_name(context.catalog, name, where)
        return
    raise ConfigError(
        f"{name} cannot be {what}, because the catalog `{name.catalog}` has no views",
        where=where,
        why=_NEEDS[what],
        fix="use materialized: table, ephemeral or incremental; or a catalog with views, such as postgres, "
        "rest or hive. `dbt debug` shows what the catalog can do",
    )
