"""dbt sources whose rows are in files: from a source's declaration to its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.files import local_path
from dbt_arctic.sources.settings import FileSource, parse_source


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


__all__ = ["file_source"]
