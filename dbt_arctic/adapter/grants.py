"""The config ``grants``, which is not supported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.errors import ConfigError


def refuse_grants(model: Mapping[str, Any]) -> None:
    """Refuse a model with grants, because its table would be less protected than expected.

    :raises ConfigError: the model has grants.
    """
    grants = model["config"].get("grants") or {}
    requested = [str(privilege) for privilege, grantees in grants.items() if grantees]
    if requested:
        raise ConfigError(
            f"grants contains {', '.join(requested)}, but Spark has no GRANT for Iceberg tables",
            where=str(model["name"]),
            why="the catalog's server or the storage controls access, not SQL",
            fix="remove grants, at least for this target, and set privileges in the catalog or the storage",
        )
