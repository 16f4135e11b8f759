"""dbt sources whose rows are in files: from a source's node to its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.files import local_path
from dbt_arctic.errors import ArcticError, StatementError, UnknownRelation
from dbt_arctic.sources.settings import FileSource, parse_source

_READ_AS: dict[str, tuple[str, str]] = {}
"""The names of sources of files, by the SQL that ``source()`` gives where it is not pulled."""


def remember(sql: str, declared: Mapping[str, Any]) -> None:
    """Remember the SQL name of a source of files, which names no table."""
    schema, _, table = str(declared["name"]).partition(".")
    _READ_AS[sql] = schema, table


def explained(error: StatementError) -> ArcticError:
    """The error of a statement, with advice if the statement reads a source of files like a table."""
    if "[TABLE_OR_VIEW_NOT_FOUND]" not in error.why:
        return error
    found = next((source for sql, source in _READ_AS.items() if sql in error.why), None)
    if found is None:
        return error
    schema, table = found
    return UnknownRelation(
        f"the source {schema}.{table} is a folder of files, and not a table",
        where=error.where,
        fix=f"read it with {{{{ incremental_pull(source('{schema}', '{table}')) }}}}; to read all rows in "
        "other models, build a model from it",
    )


def declared_source(node: Any) -> Mapping[str, Any] | None:
    """The ``meta.arctic`` of a source's node with ``from``, and what else describes the source.

    :returns: ``name``, ``where``, ``settings``, and ``columns`` (types by name); ``None`` for any other node.
    """
    if getattr(node, "resource_type", None) != "source":
        return None
    config = getattr(node, "config", None)
    meta = {**(getattr(config, "meta", None) or {}), **(getattr(node, "meta", None) or {})}
    settings = meta.get("arctic")
    if not isinstance(settings, Mapping) or "from" not in settings:
        return None
    columns = {column.name: column.data_type for column in node.columns.values() if column.data_type}
    return {
        "name": f"{node.source_name}.{node.name}",
        "where": str(node.original_file_path),
        "settings": dict(settings),
        "columns": columns,
    }


def file_source(declared: Mapping[str, Any], project_root: str | None) -> FileSource:
    """The settings of a declared source. A relative local path is relative to the project's folder.

    :raises ConfigError: a setting is unknown, missing or wrong.
    """
    settings = dict(declared["settings"])
    path = settings.get("path")
    if isinstance(path, str) and path.strip():
        local = local_path(path)
        if local is not None:
            settings["path"] = str(Path(project_root or ".", local).absolute())
    return parse_source(declared["name"], settings, declared["columns"], declared["where"])


__all__ = ["declared_source", "explained", "file_source", "remember"]
