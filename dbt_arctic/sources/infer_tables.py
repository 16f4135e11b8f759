"""Infers the tables of a folder: which files are one table, their columns, and a likely key. Pure."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, get_args

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.data_type import kind_of
from dbt_arctic.engine.api import FileSample
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.file_settings import ADDED_COLUMNS, FileSource, Format
from dbt_arctic.sources.infer_types import columns_of_json, type_of_texts

Sampler = Callable[[str, Format], FileSample]

SAMPLED_FILES = 10
SAMPLED_ROWS = 10_000
"""Of each sampled file."""

_EXTENSIONS: Mapping[str, Format] = {
    # Only Spark can read Avro here.
    **{f".{form}": form for form in get_args(Format) if form != "avro"},
    ".jsonl": "json",
    ".ndjson": "json",
    ".txt": "text",
}
_COMPRESSED = (".gz", ".bz2", ".zst")
"""Those that both Spark and pyarrow read. Spark runs out of memory on the usual form of ``.lz4``."""
_KEY_TYPES = ("tinyint", "smallint", "int", "bigint", "string")
_KEY_WORDS = ("id", "uuid", "guid", "key", "code", "number", "no", "nr")
_TIME_OF_CHANGE = re.compile(
    r"(updated?|modified|changed|last_?(update|change|\w+ed))(_?(at|on|time|date|ts|timestamp))?"
)


@dataclass(frozen=True)
class TableDraft:
    """A table of a folder, as its files suggest it.

    :param folder: the folder that contains all of its files.
    :param pattern: a glob for the files below the folder; empty for all.
    :param columns: Spark types by name, names of folders (``day=2026-01-01``) included.
    :param options: options of Spark's reader.
    :param key: the column that identifies a row; empty if none does in the sample.
    :param changed_at: the column with the time of a row's last change; empty if there is none.
    :param files: how many files the folder has for the table today.
    """

    name: str
    folder: str
    format: Format
    columns: Mapping[str, str]
    pattern: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    changed_at: str = ""
    files: int = 0


def draft_tables(folder: str, files: Iterable[ListedFile], sampler: Sampler) -> list[TableDraft]:
    """The tables of a folder, by name.

    Each subfolder is a table, together with the folders below it. Files next to the subfolders are one table
    for each beginning of their names (``orders_2026.csv`` and ``orders_2027.csv`` are ``orders``), or one
    table if only a number distinguishes them or if all have the same columns.

    :param sampler: reads a file's columns and first rows.
    :raises ConfigError: there are no data files, or a table has files of several kinds.
    :raises MalformedFile: a file cannot be read.
    """
    everything = FileSource("", folder.rstrip("/"), "text")
    found = sorted(file for file in files if everything.accepts(file.path) and format_of(file.path))
    if not found:
        raise ConfigError(
            f"there are no data files in {folder}",
            where=folder,
            fix=f"name a folder that has files with the extension {', '.join(sorted(_EXTENSIONS))}",
        )
    below: dict[str, list[ListedFile]] = {}
    for file in found:
        first, _, rest = os.path.relpath(file.path, folder).partition("/")
        below.setdefault(first if rest and "=" not in first else "", []).append(file)
    direct = below.pop("", [])
    tables = [
        _draft(table_name(name) or "files", os.path.join(folder, name), "", group, sampler)
        for name, group in below.items()
    ]
    tables += _direct_tables(folder, direct, bool(below), sampler)
    names = [table.name for table in tables]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(
            f"{folder} has two tables with the name {twice}",
            where=folder,
            why="one is a subfolder, and the other one comes from the names of files",
            fix="rename the subfolder, or run the command for each subfolder",
        )
    return sorted(tables, key=lambda table: table.name)


def format_of(path: str) -> Format | None:
    """The format of a file by its extension.

    >>> format_of("a/b.jsonl.gz"), format_of("README")
    ('json', None)
    """
    extension = _split(path).extension
    return _EXTENSIONS.get(extension.removesuffix(_compression(extension)))


def _compression(extension: str) -> str:
    return next((ending for ending in _COMPRESSED if extension.endswith(ending)), "")


class _FileName(NamedTuple):
    """The name of a file without its folder."""

    stem: str
    extension: str


def _split(path: str) -> _FileName:
    """The name of a file without and with only its extension, of which the compression is a part.

    >>> _split("in/orders_1.csv.gz")
    _FileName(stem='orders_1', extension='.csv.gz')
    """
    stem, extension = os.path.splitext(os.path.basename(path))
    if extension.lower() in _COMPRESSED:
        stem, inner = os.path.splitext(stem)
        extension = inner + extension
    return _FileName(stem, extension.lower())


def _direct_tables(
    folder: str, files: Sequence[ListedFile], has_subfolders: bool, sampler: Sampler
) -> list[TableDraft]:
    """The tables of the files that are in no subfolder, except those of partitions."""
    if not files:
        return []
    groups: dict[str, list[ListedFile]] = {}
    for file in files:
        groups.setdefault(_beginning(file.path), []).append(file)
    if len(groups) > 1 and not has_subfolders and len({format_of(file.path) for file in files}) == 1:
        columns = {tuple(_sample(group[-1], sampler).columns) for group in groups.values()}
        if len(columns) == 1:
            groups = {"": list(files)}
    if len(groups) == 1 and not has_subfolders:
        [(beginning, group)] = groups.items()
        return [_draft(beginning or table_name(os.path.basename(folder)), folder, "", group, sampler)]
    return [
        _draft(
            beginning or table_name(os.path.basename(folder)),
            folder,
            _pattern(group, files, folder),
            group,
            sampler,
        )
        for beginning, group in groups.items()
    ]


def _beginning(path: str) -> str:
    """The name of a table that the name of a file begins with: without numbers at its end.

    >>> _beginning("in/Order-Items_2026-01-01.csv"), _beginning("in/2026-01-01.csv")
    ('order_items', '')
    """
    return table_name(_without_number(_split(path).stem))


def _without_number(stem: str) -> str:
    return re.sub(r"[\W\d_]+$", "", stem)


def table_name(text: str) -> str:
    """A name that dbt and Spark accept without quotes."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    return f"t_{name}" if name[:1].isdigit() else name


def is_time_of_change(column: str) -> bool:
    """Whether the name of a column suggests the time of a row's last change.

    >>> [is_time_of_change(name) for name in ("updated_at", "lastModified", "last_update", "created_at")]
    [True, True, True, False]
    """
    return _TIME_OF_CHANGE.fullmatch(column.lower()) is not None


def _pattern(group: Sequence[ListedFile], files: Sequence[ListedFile], folder: str) -> str:
    """A glob that matches the files of a group and no others.

    :raises ConfigError: there is none.
    """
    beginnings = {_without_number(_split(file.path).stem) for file in group}
    beginning = glob.escape(min(beginnings))
    endings = {_split(file.path).extension for file in group}
    ending = glob.escape(endings.pop()) if len(endings) == 1 else ".*"
    wanted = {file.path for file in group}
    for middle in ("*", "[-_.0-9]*", "[-_.][0-9]*", "[0-9]*", ""):
        pattern = f"{beginning}{middle}{ending}"
        if {
            file.path for file in files if fnmatchcase(os.path.relpath(file.path, folder), pattern)
        } == wanted:
            return pattern
    raise ConfigError(
        f"the files of one table cannot be distinguished from the others by their names: {group[0].path}",
        where=folder,
        fix="move the files of each table to a folder of its own",
    )


def _sample(file: ListedFile, sampler: Sampler) -> FileSample:
    form = format_of(file.path)
    assert form is not None
    return sampler(file.path, form)


def _draft(name: str, folder: str, pattern: str, files: Sequence[ListedFile], sampler: Sampler) -> TableDraft:
    formats = sorted({form for file in files if (form := format_of(file.path))})
    if len(formats) > 1:
        raise ConfigError(
            f"the table {name} has files of several formats: {', '.join(formats)}",
            where=folder,
            why="a source has one format",
            fix="move the files of each format to a folder of its own",
        )
    samples = [(file, _sample(file, sampler)) for file in _spread(files)]
    first_file, first = samples[0]
    options: dict[str, str] = {}
    for file, sample in samples:
        if formats[0] == "csv" and sample.columns != first.columns:
            raise ConfigError(
                f"the files of the table {name} have different columns",
                where=folder,
                why=f"{first_file.path} has {', '.join(first.columns)}; "
                f"{file.path} has {', '.join(sample.columns)}",
                fix="move the files of each table to a folder of its own",
            )
        options |= sample.options
    columns = _columns([sample for _, sample in samples], formats[0])
    columns |= {name: kind for name, kind in _partitions(folder, files).items() if name not in columns}
    if taken := next((column for column in columns if column.lower() in ADDED_COLUMNS), None):
        raise ConfigError(
            f"the files of the table {name} have a column {taken}",
            where=folder,
            why="each row of a file gets a column of that name",
            fix="rename the column in the files",
        )
    return TableDraft(
        name,
        folder,
        formats[0],
        columns,
        pattern,
        options,
        _key(name, columns, [sample for _, sample in samples]),
        next(
            (
                column
                for column, kind in columns.items()
                if kind_of(kind) in ("timestamp", "timestamp_ntz") and is_time_of_change(column)
            ),
            "",
        ),
        len(files),
    )


def _spread(files: Sequence[ListedFile]) -> list[ListedFile]:
    """Some files of those given, from the oldest to the newest."""
    by_age = sorted(files, key=lambda file: (file.modified_ms, file.path))
    last = len(by_age) - 1
    count = min(SAMPLED_FILES, len(by_age))
    return [by_age[round(place * last / max(count - 1, 1))] for place in range(count)]


def _columns(samples: Sequence[FileSample], form: Format) -> dict[str, str]:
    if form == "json":
        return columns_of_json(row for sample in samples for row in sample.rows)
    if form == "csv":
        names = samples[0].columns
        return {name: type_of_texts(row[name] for sample in samples for row in sample.rows) for name in names}
    columns: dict[str, str] = {}
    for sample in samples:
        for name, kind in sample.types.items():
            if columns.setdefault(name, kind) != kind:
                raise ConfigError(
                    f"the column {name} has the type {columns[name]} in one file and {kind} in another",
                    where=name,
                    why="a source has one type for each column",
                    fix="write the files with the same type, or move them to a folder of their own",
                )
    return columns


def _partitions(folder: str, files: Sequence[ListedFile]) -> dict[str, str]:
    """Types by name of the columns that names of folders give, as ``day=2026-01-01``."""
    values: dict[str, list[str]] = {}
    for file in files:
        for part in os.path.relpath(os.path.dirname(file.path), folder).split("/"):
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, []).append(value)
    return {name: type_of_texts(column) for name, column in values.items()}


def _key(table: str, columns: Mapping[str, str], samples: Sequence[FileSample]) -> str:
    """The first column whose name is that of a key, and that has each value once in each sampled file."""
    others = [name.lower() for name in columns if re.split(r"[_\W]", name.lower())[-1] in _KEY_WORDS]
    by_name = {name.lower(): name for name in columns}
    for candidate in (*_names_of_keys(table), *others):
        name = by_name.get(candidate, "")
        if name and columns[name] in _KEY_TYPES and all(_is_unique(name, sample.rows) for sample in samples):
            return name
    return ""


def is_key_of(column: str, table: str) -> bool:
    """Whether the name of a column suggests that it identifies the rows of a table.

    >>> [is_key_of(name, "orders") for name in ("id", "Order_ID", "ordersKey", "customer_id")]
    [True, True, True, False]
    """
    return column.lower() in _names_of_keys(table)


def _names_of_keys(table: str) -> tuple[str, ...]:
    singular = table.removesuffix("s")
    named = (f"{name}{mark}{word}" for name in (table, singular) for word in _KEY_WORDS for mark in ("_", ""))
    return (*_KEY_WORDS, *named)


def _is_unique(column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    values = [row.get(column) for row in rows]
    return None not in values and len(set(values)) == len(values)


__all__ = [
    "SAMPLED_FILES",
    "SAMPLED_ROWS",
    "TableDraft",
    "draft_tables",
    "format_of",
    "is_key_of",
    "is_time_of_change",
    "table_name",
]
