"""dbt sources whose rows are in files: from a source's declaration to its settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.files import local_path
from dbt_arctic.errors import MalformedFile
from dbt_arctic.sources.file_settings import FileSource, parse_source
from dbt_arctic.sources.first_bad_row import BadRow

_LOCATORS = threading.local()


def locate_with(find: Callable[[str], BadRow | None] | None) -> None:
    """Set how the row of a file is found that makes a statement of this thread fail."""
    _LOCATORS.find = find


def located(error: MalformedFile) -> MalformedFile:
    """The error of a file, with the position of the row and what is wrong with it."""
    find: Callable[[str], BadRow | None] | None = getattr(_LOCATORS, "find", None)
    locate_with(None)
    if find is None or not error.where:
        return error
    try:
        row = find(error.where)
    except Exception:  # the file cannot be read, which is what the error says
        return error
    if row is None:
        return error
    return MalformedFile(
        f"row {row.position} of {error.where} does not fit the columns of its source: {row.error}",
        where=f"{error.where}, row {row.position}, without the header and blank lines",
        why=f"the row is {row.text}",
        fix="correct the file, or the columns of the source; or take the other rows only, with on_bad_row: "
        "quarantine in its meta.arctic. Nothing was written",
    )


def file_source(declared: Mapping[str, Any], project_root: str | None) -> FileSource:
    """The settings of a declared source. A relative local path is relative to the project's folder.

    A folder has one path, with and without ``..``: its files are known by their paths.

    :raises ConfigError: a setting is unknown, missing or wrong.
    """
    settings = dict(declared["settings"])
    path = settings.get("path")
    if isinstance(path, str) and path.strip():
        local = local_path(path)
        if local is not None:
            folder = Path(project_root or ".", local).absolute()
            settings["path"] = str(folder.resolve() if ".." in folder.parts else folder)
    return parse_source(declared["name"], settings, declared["columns"], declared["where"])


__all__ = ["file_source", "locate_with", "located"]
