"""Files as a temporary view, in any kind of PySpark session.

Spark's SQL cannot name a list of files together with their columns, so this uses the DataFrame API.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from dbt_arctic.engine.api import ColumnInfo, FileRead
from dbt_arctic.engine.type_text import type_text

_EXACTLY = {
    # A path is that of one file, whatever brackets and asterisks it contains.
    "__globPaths__": "false",
    # The session's settings may say otherwise, and rows would be lost without notice.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


def create_file_view(session: Any, name: str, files: FileRead) -> None:
    """A temporary view over exactly these files, with their paths and times as additional columns."""
    # The path in _metadata is a URL, in which a plus sign is not a space. Local paths are listed without a
    # scheme.
    decoded = "url_decode(replace(_metadata.file_path, '+', '%2B'))"
    path = f"regexp_replace({decoded}, '^file:/+', '/') AS `_source_file`"
    modified = "_metadata.file_modification_time AS `_source_modified`"
    order = (
        "_metadata.file_block_start AS `_arctic_block`",
        "monotonically_increasing_id() AS `_arctic_order`",
    )
    columns = ("*", path, modified, *(order if files.positions else ()))
    frames = [_reader(session, files).load(alike).selectExpr(*columns) for alike in alike_folders(files)]
    frame = frames[0] if len(frames) == 1 else _union(frames)
    frame.createOrReplaceTempView("`" + name.replace("`", "``") + "`")


def alike_folders(files: FileRead) -> list[list[str]]:
    """The paths in groups whose folders have the same columns (``day=2026-01-01``).

    Spark looks for these columns in all paths of a read together. If only some have them, it silently reads
    no rows of the others. If the columns differ, or begin below different folders, it fails.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in files.paths:
        folders = path.removeprefix(files.base).strip("/").split("/")[:-1]
        while folders and "=" not in folders[-1]:  # folders below those with columns
            folders.pop()
        first = next((at for at in range(len(folders), 0, -1) if "=" not in folders[at - 1]), 0)
        names = (folder.partition("=")[0] for folder in folders[first:])
        key = ("/".join(folders[:first]), *names) if folders else ()
        groups.setdefault(key, []).append(path)
    return list(groups.values())


def _union(frames: Sequence[Any]) -> Any:
    """The rows of all frames, with the columns that each of them has: all but undeclared ones of folders."""
    names = [{column.lower() for column in frame.columns} for frame in frames]
    shared = set.intersection(*names)
    kept = ["`" + column.replace("`", "``") + "`" for column in frames[0].columns if column.lower() in shared]
    return reduce(lambda left, right: left.unionAll(right), (frame.select(*kept) for frame in frames))


def file_columns(session: Any, files: FileRead) -> list[ColumnInfo]:
    """The columns that Spark infers from files."""
    schema = _reader(session, files).load(list(files.paths)).schema
    return [ColumnInfo(field.name, type_text(field.dataType)) for field in schema.fields]


def _reader(session: Any, files: FileRead) -> Any:
    reader = (
        session.read.format(files.format).options(**files.options).options(**_EXACTLY, basePath=files.base)
    )
    return reader.schema(files.schema) if files.schema else reader


__all__ = ["alike_folders", "create_file_view", "file_columns"]
