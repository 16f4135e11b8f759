"""Refuses a catalog that stores tables in an older format version than the one that was requested.

Row lineage and deletion vectors need version 3. A server that does not know it may create a table of version
2 without an error, and a keyed table would then miss changes.
"""

from __future__ import annotations

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context

_FORMAT = "format-version"
_NEEDED = 3


def require_format_version(context: Context, side: Name, where: str) -> None:
    """Check the format version of a side table that was just created.

    :raises ConfigError: the catalog has stored an older one.
    """
    state = context.catalog.of(side).load_table(side.schema, side.identifier)
    stored = "" if state is None else state.properties.get(_FORMAT, "")
    if stored.isdigit() and int(stored) < _NEEDED:
        raise ConfigError(
            f"the catalog `{side.catalog}` stores tables in format version {stored}",
            where=where,
            why=f"a keyed table needs version {_NEEDED}, for row lineage and deletion vectors. {side} was "
            f"created with format-version={_NEEDED}; nothing was published",
            fix="update the catalog's server, or use another catalog, such as postgres, rest or hive; or "
            "use plain tables, without a unique_key. `dbt debug` shows what the catalog can do",
        )


__all__ = ["require_format_version"]
