"""The config ``grants``, which nothing below this adapter can carry out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.errors import ConfigError


def refuse_grants(model: Mapping[str, Any]) -> None:
    """A model with grants is not built: better no table than one less protected than it seems.

    :raises ConfigError: a privilege is granted to somebody.
    """
    grants = model["config"].get("grants") or {}
    asked = [str(privilege) for privilege, grantees in grants.items() if grantees]
    if asked:
        raise ConfigError(
            f"grants contains {', '.join(asked)}, but Spark has no GRANT for Iceberg tables",
            where=str(model["name"]),
            why="the catalog's server or the storage controls access, not SQL",
            fix="remove grants, at least for this target, and set privileges in the catalog or the storage",
        )
