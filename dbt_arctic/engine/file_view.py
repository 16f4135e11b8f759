"""Files as a temporary view, in any kind of PySpark session.

Spark's SQL cannot name a list of files together with their columns, so this uses the DataFrame API.
"""

from __future__ import annotations

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
    frame = _reader(session, files).load(list(files.paths))
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
    frame.selectExpr(*columns).createOrReplaceTempView("`" + name.replace("`", "``") + "`")


def file_columns(session: Any, files: FileRead) -> list[ColumnInfo]:
    """The columns that Spark infers from files."""
    schema = _reader(session, files).load(list(files.paths)).schema
    return [ColumnInfo(field.name, type_text(field.dataType)) for field in schema.fields]


def _reader(session: Any, files: FileRead) -> Any:
    reader = (
        session.read.format(files.format).options(**files.options).options(**_EXACTLY, basePath=files.base)
    )
    return reader.schema(files.schema) if files.schema else reader


__all__ = ["create_file_view", "file_columns"]
