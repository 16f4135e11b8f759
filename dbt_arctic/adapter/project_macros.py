"""Finds out whether a project writes the rows of a plain table by macros of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_INTERNAL = frozenset({"dbt", "dbt_spark", "dbt_arctic"})
_OF_STRATEGIES = {"delete+insert": ("delete_sql",), "merge": ("get_merge_sql", "get_merge_update_columns")}
"""The macros that a strategy uses in addition to its own one."""
_OF_ALL = ("insert_sql", "stored_columns", "batch_as_stored", "incremental_statements")


def is_written_by_project(strategy: str, macros: Mapping[str, Any]) -> bool:
    """Whether a macro of a project or package writes the rows of a strategy, instead of one of the adapter.

    :param macros: the macros that a model may call, by name. Those of a project take precedence.
    """
    own = f"get_incremental_{strategy.replace('+', '_')}_sql"
    names = (own, *_OF_ALL, *_OF_STRATEGIES.get(strategy, ()))
    return any(
        _package(macros.get(f"{prefix}{name}")) not in _INTERNAL
        for name in names
        for prefix in ("", "arctic__", "spark__", "default__")
    )


def _package(macro: Any) -> str:
    """The package of a macro of dbt; that of dbt itself if there is no such macro."""
    return str(getattr(getattr(macro, "macro", None), "package_name", "dbt"))
