"""SQL that separates the rows of files that do not fit their source from the others. Pure.

A row does not fit if it cannot be parsed, if a value does not have the declared type, or if a required
column is NULL. Only JSON and CSV have rows of the first two kinds. In the mode ``PERMISSIVE``, Spark's reader
returns the text of such a row in a column of its own, but not what is wrong with it. So the columns of the
rejected rows are parsed once more, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.engine.api import FileRead
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.checks import raise_error_sql, shown_row
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.sources.file_settings import BLOCK, ORDER, ROWS_WITH_TEXT, TEXT, FileSource
from dbt_arctic.store.rejected_table import COLUMNS

_POSITION = "_arctic_position"
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": TEXT}
_OF_FILES = ("header", "enforceSchema", "encoding", "charset", "lineSep", "multiLine", "columnPruning")
"""Options that describe files, and not the text of one row."""
NO_FIELD: Mapping[str, str] = {"_arctic_no_field": "STRING"}
"""Columns that each JSON object fits."""
_NO_MESSAGE = f"CAST(NULL AS {COLUMNS['message']}) AS `message`, CAST(NULL AS STRING) AS `key`"
_FOLDER = re.compile(r"/([^/=]+)=[^/]*(?=/)")


def tolerant_request(source: FileSource, files: Iterable[ListedFile]) -> FileRead:
    """How Spark reads files so that rows that do not fit can be found, with their order in the file."""
    paths = [file.path for file in files]
    if source.format not in ROWS_WITH_TEXT:
        return FileRead(source.format, paths, source.path, source.ddl, source.options, positions=True)
    ddl, options = f"{source.ddl}, {quote(TEXT)} STRING", {**source.options, **_PERMISSIVE}
    return FileRead(source.format, paths, source.path, ddl, options, positions=True)


def is_bad(source: FileSource) -> str:
    """SQL condition on a row of ``tolerant_request``: it does not fit. Never NULL."""
    parts = [f"{quote(TEXT)} IS NOT NULL"] if source.format in ROWS_WITH_TEXT else []
    return " OR ".join([*parts, *(f"{quote(column)} IS NULL" for column in source.required)]) or "false"


def count_bad(source: FileSource, view: str) -> str:
    """SQL of the files with rows that do not fit: the path, and their number."""
    bad = f"FROM {quote(view)}\nWHERE {is_bad(source)}"
    return f"SELECT `_source_file`, count(*)\n{bad}\nGROUP BY `_source_file`"


def rejected_rows(source: FileSource, view: str, folders: Collection[str]) -> str:
    """SQL of the rows of a view over ``tolerant_request`` that do not fit, as rows of the rejected table.

    With the policy ``drop``, one row for each file and error, without their text.

    :param folders: the columns that are names of folders.
    """
    error, name = error_text(source, _text(source), folders), literal(source.name)
    if source.on_bad_row == "drop":
        return (
            f"SELECT {name} AS `source`, `_source_file` AS `location`, "
            "max(`_source_modified`) AS `modified`, "
            "CAST(NULL AS BIGINT) AS `position`, `error`, CAST(NULL AS STRING) AS `raw`, "
            f"count(*) AS `row_count`, current_timestamp() AS `rejected_at`, {_NO_MESSAGE}\n"
            f"FROM (\nSELECT `_source_file`, `_source_modified`, {error} AS `error`\n"
            f"FROM {quote(view)}\nWHERE {is_bad(source)}\n)\nGROUP BY `_source_file`, `error`"
        )
    return (
        f"SELECT {name} AS `source`, `_source_file` AS `location`, `_source_modified` AS `modified`, "
        f"CAST({quote(_POSITION)} AS BIGINT) AS `position`, {error} AS `error`, "
        f"{_raw_text(source, folders)} AS `raw`, CAST(1 AS BIGINT) AS `row_count`, "
        f"current_timestamp() AS `rejected_at`, {_NO_MESSAGE}\nFROM (\n{_with_positions(source, view)}\n)\n"
        f"WHERE {is_bad(source)}"
    )


def first_bad(source: FileSource, view: str, folders: Collection[str]) -> str:
    """SQL of the position, the error and the text of the first row that does not fit."""
    return (
        f"SELECT {quote(_POSITION)}, {error_text(source, _text(source), folders)}, "
        f"left({_raw_text(source, folders)}, 300)\n"
        f"FROM (\n{_with_positions(source, view)}\n)\n"
        f"WHERE {is_bad(source)}\nORDER BY {quote(_POSITION)}\nLIMIT 1"
    )


def _with_positions(source: FileSource, view: str) -> str:
    """SQL of all rows of the files with bad rows, with their position in the file."""
    return (
        f"SELECT *, {position_in_file()} AS {quote(_POSITION)}\n"
        f"FROM {quote(view)}\nWHERE `_source_file` IN (\n"
        f"SELECT `_source_file` FROM {quote(view)} WHERE {is_bad(source)}\n)"
    )


def position_in_file() -> str:
    """SQL of the position of a row among the rows of its file, from 1. The view must have positions.

    Spark reads a file in blocks, and the rows of a block in their order. Blank lines are no rows.
    """
    return f"row_number() OVER (PARTITION BY `_source_file` ORDER BY {quote_all((BLOCK, ORDER))})"


def require(source: FileSource) -> str:
    """SQL condition for the policy ``fail``: an error for a row without a value in a required column."""
    if not source.required:
        return "true"
    branches = " ".join(
        f"WHEN {quote(column)} IS NULL THEN "
        + raise_error_sql(
            "AR-311",
            f"a row of the source {source.name} has NULL in the required column {column}: ",
            # With the next part of the error, which is where it is.
            f"concat({shown_row(tuple(source.columns))}, '|', replace(`_source_file`, '|', '/'))",
            "the source requires a value; nothing was written",
            "correct the file, or set on_bad_row: quarantine in the source's meta.arctic",
            "",
        )
        for column in source.required
    )
    return f"CASE {branches} ELSE true END"


def parsed(source: FileSource, text: str, columns: Mapping[str, str]) -> str:
    """SQL of the text of a row as a struct of some columns, and of ``TEXT`` if it does not fit."""
    schema = ", ".join(f"{quote(name)} {kind}" for name, kind in {**columns, TEXT: "STRING"}.items())
    listed = _map({**_row_options(source), **_PERMISSIVE})
    return f"from_{_row_format(source)}({text}, {literal(schema)}, {listed})"


def _row_format(source: FileSource) -> str:
    """The format of the text of a rejected row. Rows of files that have no text are stored as JSON."""
    return "csv" if source.format == "csv" else "json"


def _row_options(source: FileSource) -> dict[str, str]:
    if source.format not in ROWS_WITH_TEXT:
        return {}
    return {key: value for key, value in source.options.items() if key not in (*_OF_FILES, "mode")}


def _map(options: Mapping[str, str]) -> str:
    return f"map({', '.join(literal(part) for pair in options.items() for part in pair)})"


def error_text(
    source: FileSource, text: str, folders: Collection[str], value: Callable[[str], str] = quote
) -> str:
    """SQL of what is wrong with a row.

    :param text: SQL of its text; NULL if it could be parsed.
    :param value: gives the SQL of a column.
    """
    missing = " ".join(
        f"WHEN {value(column)} IS NULL THEN {literal(f'the required column {column} is missing or NULL')}"
        for column in source.required
    )
    missing = f"CASE {missing} END" if missing else "CAST(NULL AS STRING)"
    columns = data_columns(source, folders)

    def fails(types: Mapping[str, str]) -> str:
        return f"{parsed(source, text, types)}.{quote(TEXT)} IS NOT NULL"

    # Fields of JSON have names, so others need not be parsed. Values of CSV are found by their position.
    is_csv = source.format == "csv"
    of_csv = f"the row is not a valid line of {counted(len(columns), 'value')}"
    broken = of_csv if is_csv else "the row is not a valid JSON object"
    as_text = dict.fromkeys(columns, "STRING") if is_csv else NO_FIELD
    found = reasons(columns, fails, broken, as_text, as_text if is_csv else {})
    return f"CASE WHEN {text} IS NULL THEN {missing} ELSE {found} END"


def reasons(
    columns: Mapping[str, str],
    fails: Callable[[Mapping[str, str]], str],
    broken: str,
    least: Mapping[str, str],
    rest: Mapping[str, str] | None = None,
) -> str:
    """SQL of why a text does not fit some columns.

    :param fails: gives the SQL condition that the text does not fit other columns.
    :param broken: what is wrong if it does not fit any.
    :param least: columns that each valid text fits.
    :param rest: columns with which each of the columns is tried; ``None`` for none.
    """
    values = ", ".join(
        f"CASE WHEN {fails({**(rest or {}), name: kind})} "
        f"THEN {literal(f'the value of {name} is not a {kind}')} END"
        for name, kind in columns.items()
        if kind.lower() != "string"
    )
    several = f"nullif(concat_ws('; ', {values}), '')" if values else "CAST(NULL AS STRING)"
    return (
        f"CASE WHEN {fails(least)} THEN {literal(broken)} "
        f"ELSE coalesce({several}, 'the row does not fit the columns') END"
    )


def data_columns(source: FileSource, folders: Collection[str]) -> dict[str, str]:
    """The declared columns that are in the files themselves."""
    taken = {name.lower() for name in folders}
    return {name: kind for name, kind in source.columns.items() if name.lower() not in taken}


def folder_columns(source: FileSource, paths: Iterable[str]) -> frozenset[str]:
    """The columns that names of folders give, as ``day=2026-01-01``.

    >>> source = FileSource("a.b", "/data", "json")
    >>> sorted(folder_columns(source, ["/data/day=1/hour=2/a=3.json"]))
    ['day', 'hour']
    """
    return frozenset(
        name for path in paths for name in _FOLDER.findall("/" + path.removeprefix(source.path).lstrip("/"))
    )


def _text(source: FileSource) -> str:
    return quote(TEXT) if source.format in ROWS_WITH_TEXT else "CAST(NULL AS STRING)"


def _raw_text(source: FileSource, folders: Collection[str]) -> str:
    """SQL of the text of a row. Spark returns none for a row that it could parse."""
    columns = data_columns(source, folders)
    if not columns:
        return _text(source)
    options = _row_options(source)
    arguments = f"struct({quote_all(columns)})" + (f", {_map(options)}" if options else "")
    written = f"to_{_row_format(source)}({arguments})"
    return f"coalesce({_text(source)}, {written})"


__all__ = [
    "NO_FIELD",
    "count_bad",
    "data_columns",
    "error_text",
    "first_bad",
    "folder_columns",
    "is_bad",
    "parsed",
    "position_in_file",
    "reasons",
    "rejected_rows",
    "require",
    "tolerant_request",
]
