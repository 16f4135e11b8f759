"""Reads the first rows of a local data file without Spark."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from dbt_arctic.engine.api import FileSample
from dbt_arctic.engine.type_text import type_text
from dbt_arctic.errors import MalformedFile
from dbt_arctic.human_readable import counted

if TYPE_CHECKING:
    import pyarrow

_DELIMITERS = ",;\t|"
_UTF_8 = "utf-8-sig"
_OTHER_ENCODING = "iso-8859-1"
"""The only one of Spark's that can be taken for UTF-8 by mistake. Every text is valid in it."""
_CONTROLS = re.compile("[\x80-\x9f]")
"""Characters of ISO-8859-1 that no text has. Windows-1252, which Spark cannot read, has letters there."""
_SNIFFED_CHARACTERS = 20_000


def sample_file(path: str, form: str, rows: int) -> FileSample:
    """The columns and the first rows of a file.

    :param path: a local file; ``.gz``, ``.bz2`` and other compressed files are read by their extension.
    :param form: ``json``, ``csv``, ``parquet``, ``orc`` or ``text``.
    :raises MalformedFile: the file does not have this format.
    """
    try:
        if form in ("parquet", "orc"):
            return _with_schema(path, form, rows)
        return (
            _csv(path, rows) if form == "csv" else _json(path, rows) if form == "json" else _text(path, rows)
        )
    except (ValueError, csv.Error, OSError) as error:
        raise MalformedFile(
            f"the file {path} cannot be read as {form}",
            where=path,
            why=str(error),
            fix="correct the file, or move it to another folder",
        ) from error


def _open(path: str, encoding: str) -> io.TextIOWrapper:
    import pyarrow

    return io.TextIOWrapper(pyarrow.input_stream(path, compression="detect"), encoding=encoding, newline="")


def _encoding(path: str) -> str:
    """The encoding of a file.

    The whole file is read, because Spark replaces bytes that are invalid in the encoding without an error.

    :raises ValueError: Spark reads none that the file could have.
    """
    try:
        for _ in _pieces(path, _UTF_8):
            pass
    except UnicodeDecodeError:
        if any(_CONTROLS.search(piece) for piece in _pieces(path, _OTHER_ENCODING)):
            raise ValueError("its encoding is neither UTF-8 nor ISO-8859-1; convert it to UTF-8") from None
        return _OTHER_ENCODING
    return _UTF_8


def _pieces(path: str, encoding: str) -> Iterator[str]:
    with _open(path, encoding) as text:
        while piece := text.read(1 << 20):
            yield piece


def _csv(path: str, rows: int) -> FileSample:
    encoding = _encoding(path)
    with _open(path, encoding) as text:
        start = text.read(_SNIFFED_CHARACTERS)
    try:
        delimiter = csv.Sniffer().sniff(start, _DELIMITERS).delimiter
    except csv.Error:  # one column has no delimiter
        delimiter = ","
    with _open(path, encoding) as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        lines = [line for line in islice(reader, rows + 1) if line]
    first = lines[0] if lines else []
    has_header = _is_header(first)
    names = first if has_header else [f"column_{place}" for place in range(1, len(first) + 1)]
    values = lines[1:] if has_header else lines
    wrong = next((line for line in lines if len(line) != len(names)), None)
    if wrong is not None:
        columns = counted(len(names), "column")
        raise ValueError(f"the first line has {columns}, and another has {len(wrong)}: {wrong}")
    options: dict[str, str] = {}
    if delimiter != ",":
        options["sep"] = delimiter
    if not has_header:
        options["header"] = "false"
    if encoding != _UTF_8:
        options["encoding"] = encoding
    if any("\n" in value or "\r" in value for line in values for value in line):
        options["multiLine"] = "true"
    if any('"' in value for line in lines for value in line):
        # Spark's own default is a backslash. Python's reader, as RFC 4180, takes a doubled quotation mark.
        options["escape"] = '"'
    return FileSample(
        tuple(names),
        [dict(zip(names, (value or None for value in line), strict=True)) for line in values],
        options=options,
    )


def _is_header(first: list[str]) -> bool:
    """Whether a line has names: each is there, differs from the others and is not a number."""
    names = [name.strip().lower() for name in first]
    return all(names) and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json(path: str, rows: int) -> FileSample:
    with _open(path, "utf-8-sig") as text:
        is_array = text.read(1000).lstrip().startswith("[")
    with _open(path, "utf-8-sig") as text:
        found = json.load(text)[:rows] if is_array else list(islice(_lines(text), rows))
    wrong = next((value for value in found if not isinstance(value, dict)), None)
    if wrong is not None:
        raise ValueError(f"a value is not an object: {wrong!r:.100}")
    names = dict.fromkeys(name for row in found for name in row)
    return FileSample(tuple(names), found, options={"multiLine": "true"} if is_array else {})


def _lines(text: io.TextIOWrapper) -> Iterator[Any]:
    return (json.loads(line) for line in text if line.strip())


def _text(path: str, rows: int) -> FileSample:
    with _open(path, _encoding(path)) as text:
        lines = [{"value": line.rstrip("\r\n")} for line in islice(text, rows)]
    return FileSample(("value",), lines, types={"value": "string"})


def _with_schema(path: str, form: str, rows: int) -> FileSample:
    import pyarrow.dataset

    data: pyarrow.dataset.Dataset = pyarrow.dataset.dataset(path, format=form)
    types = {column.name: _spark_type(column) for column in data.schema}
    # Only these can be keys, and Python has no value for some others (nanoseconds).
    keys = [
        name for name, kind in types.items() if kind in ("tinyint", "smallint", "int", "bigint", "string")
    ]
    return FileSample(tuple(types), data.head(rows, columns=keys).to_pylist(), types=types)


def _spark_type(column: pyarrow.Field) -> str:
    import pyarrow
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_type

    signed = {
        pyarrow.uint8(): pyarrow.int16(),
        pyarrow.uint16(): pyarrow.int32(),
        pyarrow.uint32(): pyarrow.int64(),
        pyarrow.uint64(): pyarrow.decimal128(20, 0),
    }
    try:
        return type_text(from_arrow_type(signed.get(column.type, column.type), prefer_timestamp_ntz=True))
    except PySparkTypeError as error:
        raise ValueError(
            f"the column {column.name} has the type {column.type}, which Spark cannot read"
        ) from error


__all__ = ["sample_file"]
