"""SQL for the rows of a source's files, and the request with which Spark reads them."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.engine.api import FileRead
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.sources.bad_rows import is_bad, position_in_file, require, tolerant_request
from dbt_arctic.sources.change_sql import Delivery
from dbt_arctic.sources.file_settings import BLOCK, FILE_COLUMNS, ORDER, POSITION, FileSource


def read_request(source: FileSource, files: Iterable[ListedFile]) -> FileRead:
    """How Spark reads files of a source."""
    paths = [file.path for file in files]
    if source.changes is not None:
        return FileRead("text", paths, source.path, "`value` STRING", {}, positions=True)
    if source.on_bad_row != "fail":
        return tolerant_request(source, files)
    positions = source.positions
    return FileRead(source.format, paths, source.path, source.ddl, source.options, positions=positions)


def delivery_of(source: FileSource) -> Delivery:
    """The lines of files of change events."""
    position = ", ".join(f"lpad(CAST({quote(name)} AS STRING), 20, '0')" for name in (BLOCK, ORDER))
    return Delivery(
        source.name,
        "IF(is_valid_utf8(`value`), `value`, concat('not UTF-8: ', make_valid_utf8(`value`)))",
        f"concat_ws('.', `_source_file`, {position})",
        "`_source_file`",
        {name: quote(name) for name in FILE_COLUMNS},
    )


def rows_of(source: FileSource, view: str) -> str:
    """SQL of a pull: the declared columns, those of the file, and ``_action``.

    Rows that do not fit are left out, or raise an error.
    """
    columns = quote_all((*source.columns, *FILE_COLUMNS, *((POSITION,) if source.positions else ())))
    if source.on_bad_row == "fail":
        fits = require(source) if source.required else ""
    else:
        fits = f"NOT ({is_bad(source)})"
    where = f"\nWHERE {fits}" if fits else ""
    rows = f"(\nSELECT *, CAST({position_in_file()} AS BIGINT) AS {quote(POSITION)}\nFROM {quote(view)}\n)"
    return f"SELECT {columns}, 'U' AS `_action`\nFROM {rows if source.positions else quote(view)}{where}"


__all__ = ["delivery_of", "read_request", "rows_of"]
