"""Reads and checks the ``meta.arctic`` of a file source, and sets strict options of Spark's reader."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import quote
from dbt_arctic.sources.change_settings import (
    CHANGE_FORMATS,
    ChangeEvents,
    ChangeFormat,
    known_settings,
    parse_changes,
)
from dbt_arctic.sources.common_settings import (
    OnBadRow,
    columns_of,
    flag,
    on_bad_row_of,
    one_of,
    refuse_inferred,
    reject_unknown,
    required_of,
    texts,
)

Format = Literal["json", "csv", "parquet", "orc", "avro", "text", ChangeFormat]
ChangedFiles = Literal["fail", "reread", "ignore"]

_OF_ALL = ("from", "path", "format", "pattern", "columns", "changed_files")
_SETTINGS = (*_OF_ALL, "options", "on_bad_row", "required", "positions")
TEXT, BLOCK, ORDER = "_arctic_text", "_arctic_block", "_arctic_order"
"""Columns for ``on_bad_row``: the text of a row that does not fit, the block of the file that a row is in,
and a number that orders the rows of a block."""
FILE_COLUMNS = {"_source_file": "STRING", "_source_modified": "TIMESTAMP"}
POSITION = "_source_position"
"""The position of a row among the rows of its file, from 1."""
ADDED_COLUMNS = (*FILE_COLUMNS, POSITION, "_action", TEXT, BLOCK, ORDER)
"""What a pull adds to the declared columns."""
ROWS_WITH_TEXT = ("json", "csv")
"""Formats whose rows are parsed one by one, so that a single one can fail."""
_STRICT = {"mode": "FAILFAST"}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "json": _STRICT,
    # The header of each file is compared with the columns. Otherwise Spark assigns values by position only.
    # Without pruning, a malformed value is found in columns that a query does not read as well.
    "csv": {**_STRICT, "header": "true", "enforceSchema": "false", "columnPruning": "false"},
}
"""Options of Spark's reader, by format. The user's options override all but ``mode``."""


@dataclass(frozen=True)
class FileSource:
    """A dbt source whose rows are in files.

    :param name: ``<source>.<table>``, as in ``source('<source>', '<table>')``.
    :param path: the folder, without a slash at its end; files in its subfolders belong to the source as well.
    :param pattern: a glob that the path of a file below the folder must match; empty for all files.
    :param columns: Spark types by column name, names of folders (``day=2026-01-01``) included.
    :param options: of Spark's reader.
    :param changed_files: what to do about a file that has changed since a model read it.
    :param on_bad_row: what to do about a row that does not fit.
    :param required: columns in which a row that fits is not NULL.
    :param positions: whether each row has the column ``POSITION``.
    :param changes: how the lines are read, if they are change events.
    """

    name: str
    path: str
    format: Format
    pattern: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    changed_files: ChangedFiles = "fail"
    on_bad_row: OnBadRow = "fail"
    required: tuple[str, ...] = ()
    positions: bool = False
    changes: ChangeEvents | None = None

    @property
    def added(self) -> dict[str, str]:
        """The columns that each row has in addition to the declared ones, and their types."""
        made = {"_action": "STRING"} if self.changes is None else self.changes.added
        return {**FILE_COLUMNS, **({POSITION: "BIGINT"} if self.positions else {}), **made}

    @property
    def ddl(self) -> str:
        """The columns as Spark's DDL; empty if none are declared."""
        return ", ".join(f"{quote(name)} {kind}" for name, kind in self.columns.items())

    def accepts(self, path: str) -> bool:
        """Whether a file below the folder belongs to the source.

        As in Spark, a file or folder whose name begins with a dot or an underscore does not: writers use such
        names for files that are not complete.
        """
        below = path.removeprefix(self.path).lstrip("/")
        if not self.pattern and "/." not in (rooted := f"/{below}") and "/_" not in rooted:
            return True
        hidden = any(part.startswith(".") or _is_private(part) for part in below.split("/"))
        return not hidden and (not self.pattern or fnmatchcase(below, self.pattern))


def _is_private(part: str) -> bool:
    return part.startswith("_") and "=" not in part


def parse_source(
    name: str, settings: Mapping[str, Any], columns: Mapping[str, str], where: str = ""
) -> FileSource:
    """Read the settings of a file source.

    :param name: ``<source>.<table>``.
    :param settings: the source's ``meta.arctic``.
    :param columns: types by name from the source's own ``columns``, used if the settings have none.
    :param where: the file that declares the source.
    :raises ConfigError: a setting is unknown, missing or wrong.
    """
    where = where or name
    is_changes = settings.get("format") in CHANGE_FORMATS
    known = (*_OF_ALL, *known_settings(settings["format"])) if is_changes else _SETTINGS
    reject_unknown(name, settings, known, where)
    path = settings.get("path")
    if not isinstance(path, str) or not path.strip("/ "):
        raise ConfigError(
            f"the source {name} has no path", where=where, fix="add path: the folder that contains the files"
        )
    form: Format = one_of(get_args(Format), "format", settings.get("format"), name, where)
    refuse_inferred(settings.get("columns"), _columns_from(form, path), name, where)
    changed: ChangedFiles = one_of(
        get_args(ChangedFiles), "changed_files", settings.get("changed_files", "fail"), name, where
    )
    if is_changes:
        changes = parse_changes(name, form, settings, columns, ADDED_COLUMNS, where)
        _refuse_delivery(changes, name, where)
        pattern = str(settings.get("pattern") or "")
        return FileSource(
            name, path.rstrip("/"), form, pattern, changes.columns, changed_files=changed, changes=changes
        )
    declared = columns_of(settings.get("columns") or columns, ADDED_COLUMNS, name, where)
    options = texts(settings.get("options") or {}, name, "options", where)
    if form == "text" and not declared:
        declared = {"value": "string"}
    on_bad_row = on_bad_row_of(settings, name, where)
    required = required_of(settings.get("required"), declared, name, where)
    if on_bad_row != "fail" and form not in ROWS_WITH_TEXT and not required:
        raise ConfigError(
            f"on_bad_row of the source {name} has no effect",
            where=where,
            why=f"a {form} file is readable as a whole or not at all",
            fix="remove the setting, or list the columns that each row must have: required: [...]",
        )
    return FileSource(
        name,
        path.rstrip("/"),
        form,
        str(settings.get("pattern") or ""),
        declared,
        {**_OPTIONS.get(form, {}), **options, **(_STRICT if form in _OPTIONS else {})},
        changed,
        on_bad_row,
        required,
        flag("positions", settings, False, name, where),
    )


def _columns_from(form: Format, path: str) -> str:
    """How to see the columns that files have."""
    if form == "avro":
        return (
            "remove columns, which is an error that lists the types that Spark finds; review and declare them"
        )
    command = f"dbt-arctic ingest init {shlex.quote(path)} --dry-run"
    return f"copy the columns that this command prints, and review them: {command}"


def _refuse_delivery(changes: ChangeEvents, name: str, where: str) -> None:
    if changes.order == "delivery":
        raise ConfigError(
            f"the source {name} has order: delivery and is read from files",
            where=where,
            why="files are not delivered in an order",
            fix="remove order, or read the events from a Kafka topic",
        )


__all__ = [
    "BLOCK",
    "FILE_COLUMNS",
    "ORDER",
    "POSITION",
    "ROWS_WITH_TEXT",
    "TEXT",
    "ChangedFiles",
    "FileSource",
    "Format",
    "parse_source",
]
