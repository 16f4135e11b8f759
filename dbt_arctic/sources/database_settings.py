"""Reads and checks the ``meta.arctic`` of a source that is a table of a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.common_settings import OnBadRow, columns_of, on_bad_row_of, one_of, reject_unknown

NullCursor = Literal["fail", "read", "skip"]
OnRecreated = Literal["fail", "continue"]

ADDED: Mapping[str, str] = {"_action": "STRING"}
"""What a pull adds to the columns of the table, and the types."""

_SETTINGS = (
    *("from", "url", "connection", "table", "columns", "cursor", "overlap", "null_cursor", "deletes"),
    *("partitions", "partition_column", "on_recreated", "on_bad_row", "required"),
)
_MOST_PARTITIONS = 1000


@dataclass(frozen=True)
class DatabaseSource:
    """A dbt source whose rows are in a table of a database.

    :param name: ``<source>.<table>``, as in ``source('<source>', '<table>')``.
    :param table: in the database.
    :param columns: Spark types by column name, empty for the usual type; an empty mapping for all columns.
    :param cursor: the column whose value grows when a row is added or changed; empty for none.
    :param overlap: how far below the last value of the cursor a run begins; ``None`` for the default.
    :param compares_keys: whether keys that are no longer in the table are deleted.
    :param partitions: how many statements read the whole table; ``None`` for the default.
    :param on_bad_row: what to do about a row that does not fit.
    :param required: columns in which a row that fits is not NULL.
    """

    name: str
    table: str
    columns: Mapping[str, str] = field(default_factory=dict)
    cursor: str = ""
    overlap: int | str | None = None
    null_cursor: NullCursor = "fail"
    compares_keys: bool = False
    partitions: int | None = None
    partition_column: str = ""
    on_recreated: OnRecreated = "fail"
    on_bad_row: OnBadRow = "fail"
    required: tuple[str, ...] = ()


def parse_database(name: str, settings: Mapping[str, Any], where: str = "") -> DatabaseSource:
    """Read the settings of a source, apart from how to connect.

    :param name: ``<source>.<table>``.
    :param settings: the source's ``meta.arctic``.
    :param where: the file that declares the source.
    :raises ConfigError: a setting is unknown or wrong.
    """
    where = where or name
    reject_unknown(name, settings, _SETTINGS, where)
    cursor = str(settings.get("cursor") or "")
    overlap = settings.get("overlap")
    if overlap is not None and (isinstance(overlap, bool) or not isinstance(overlap, int | str)):
        raise ConfigError(
            f"the source {name} has overlap: {overlap}",
            where=where,
            fix="write overlap: '5 minutes' for a cursor that is a time, or overlap: 1000 for numbers",
        )
    for setting in ("overlap", "null_cursor"):
        if settings.get(setting) is not None and not cursor:
            raise ConfigError(
                f"the source {name} has {setting} and no cursor",
                where=where,
                why="without a cursor, a run reads all rows",
                fix=f"add cursor: and a column that grows with each change, or remove {setting}",
            )
    return DatabaseSource(
        name,
        str(settings.get("table") or name.partition(".")[2]),
        _columns(settings.get("columns"), name, where),
        cursor,
        overlap,
        one_of(get_args(NullCursor), "null_cursor", settings.get("null_cursor", "fail"), name, where),
        one_of(("ignore", "compare"), "deletes", settings.get("deletes", "ignore"), name, where) == "compare",
        _partitions(settings.get("partitions"), name, where),
        str(settings.get("partition_column") or ""),
        one_of(get_args(OnRecreated), "on_recreated", settings.get("on_recreated", "fail"), name, where),
        on_bad_row_of(settings, name, where),
        _required(settings.get("required"), name, where),
    )


def _required(given: Any, name: str, where: str) -> tuple[str, ...]:
    """The names of columns. Only the database knows whether it has them."""
    listed = [given] if isinstance(given, str) else given or []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ConfigError(
            f"the source {name} has required: {given}",
            where=where,
            fix="list the columns that each row must have: required: [id, name]",
        )
    return tuple(listed)


def _columns(given: Any, name: str, where: str) -> dict[str, str]:
    if not given:
        return {}
    if isinstance(given, list):
        given = dict.fromkeys(map(str, given))
    named = (
        {key: "" if kind is None else kind for key, kind in given.items()}
        if hasattr(given, "items")
        else given
    )
    return columns_of(named, ADDED, name, where)


def _partitions(given: Any, name: str, where: str) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= _MOST_PARTITIONS:
        raise ConfigError(
            f"the source {name} has partitions: {given}",
            where=where,
            fix=f"write a number from 1 to {_MOST_PARTITIONS}",
        )
    return int(given)


__all__ = ["ADDED", "DatabaseSource", "parse_database"]
