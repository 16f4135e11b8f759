"""dbt sources whose rows are in files: from a source's node to its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.files import local_path
from dbt_arctic.sources.settings import FileSource, parse_source


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


__all__ = ["declared_source", "file_source"]
