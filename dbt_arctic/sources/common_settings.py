"""Reads the parts of a source's settings that have the same form for every kind of source. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

from dbt_arctic.data_type import written_kind
from dbt_arctic.errors import ConfigError

OnBadRow = Literal["fail", "quarantine", "drop"]

_USUAL_TYPES = (
    *("string", "boolean", "int", "bigint", "double", "decimal(10, 2)", "date", "timestamp", "binary"),
    *("array<string>", "struct<a: int>", "map<string, int>"),
)
_TYPES = frozenset(written_kind(one) for one in _USUAL_TYPES) | {
    *("byte", "tinyint", "short", "smallint", "integer", "long", "float", "real", "dec", "numeric"),
    *(
        "char",
        "character",
        "varchar",
        "time",
        "timestamp_ltz",
        "timestamp_ntz",
        "interval",
        "variant",
        "void",
    ),
    *("geography", "geometry"),
}
"""The names of Spark's types, without their parameters."""


def reject_unknown(name: str, settings: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Refuse a setting that the kind of source does not have.

    :param name: of the source, ``<source>.<table>``.
    :param where: the file that declares the source.
    :raises ConfigError: names the setting that was probably meant.
    """
    for key in settings:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            raise ConfigError(
                f"the source {name} has the unknown setting {key!r}",
                where=where,
                fix=f"use {close[0]!r}" if close else f"use {', '.join(known)}",
            )


def one_of(known: tuple[str, ...], setting: str, given: Any, name: str, where: str) -> Any:
    """The value of a setting that has a fixed set of values.

    :raises ConfigError: it is another one.
    """
    if given not in known:
        raise ConfigError(
            f"the source {name} has {setting}: {given}", where=where, fix=f"use one of {', '.join(known)}"
        )
    return given


def flag(setting: str, settings: Mapping[str, Any], default: bool, name: str, where: str) -> bool:
    """The value of a setting that is true or false.

    :raises ConfigError: it is neither.
    """
    given = settings.get(setting, default)
    if not isinstance(given, bool):
        raise ConfigError(f"the source {name} has {setting}: {given}", where=where, fix="write true or false")
    return given


def columns_of(given: Any, added: Collection[str], name: str, where: str) -> dict[str, str]:
    """The declared columns: Spark types by name.

    :param added: what a pull adds to each row; a declared column cannot have such a name.
    :raises ConfigError: it is no mapping, or a name is taken.
    """
    columns = texts(given, name, "columns", where)
    for column in columns:
        if column.lower() in added:
            raise ConfigError(
                f"the source {name} has a column {column}",
                where=where,
                why="each row of the source gets a column of that name",
                fix="declare the column with another name, or leave it out",
            )
        _check_type(column, columns[column], name, where)
    return columns


def _check_type(column: str, kind: str, name: str, where: str) -> None:
    """Refuse a type that Spark does not have. Types inside of others are left to Spark."""
    written = written_kind(kind)
    if not written or written in _TYPES:  # without one, a column of a database has its own type
        return
    meant = difflib.get_close_matches(written, sorted(_TYPES), 1)
    raise ConfigError(
        f"the column {column} of the source {name} has the unknown type {kind}",
        where=where,
        fix=f"did you mean {meant[0]}?" if meant else f"use a type of Spark: {', '.join(_USUAL_TYPES)}",
    )


def on_bad_row_of(settings: Mapping[str, Any], name: str, where: str) -> OnBadRow:
    """What to do about a row that does not fit.

    :raises ConfigError: it is another value than those of ``OnBadRow``.
    """
    given = settings.get("on_bad_row", "fail")
    policy: OnBadRow = one_of(get_args(OnBadRow), "on_bad_row", given, name, where)
    return policy


def required_of(given: Any, declared: Mapping[str, str], name: str, where: str) -> tuple[str, ...]:
    """The columns in which a row that fits is not NULL, as they are declared.

    :param declared: types by column name.
    :raises ConfigError: one of them is not declared.
    """
    by_name = {column.lower(): column for column in declared}
    columns = [given] if isinstance(given, str) else list(given or ())
    unknown = [str(column) for column in columns if str(column).lower() not in by_name]
    if unknown:
        raise ConfigError(
            f"the source {name} requires {unknown[0]}, which is none of its columns",
            where=where,
            fix=f"use some of {', '.join(declared)}" if declared else "declare the columns of the source",
        )
    return tuple(by_name[str(column).lower()] for column in columns)


def refuse_inferred(given: Any, fix: str, name: str, where: str) -> None:
    """Refuse ``columns: infer``.

    :param fix: how to see the columns that the data has.
    :raises ConfigError: says it.
    """
    if given == "infer":
        raise ConfigError(
            f"the source {name} has columns: infer",
            where=where,
            why="types that depend on the data of one day could change from run to run, so they are inferred "
            "once and reviewed",
            fix=fix,
        )


def texts(given: Any, name: str, setting: str, where: str) -> dict[str, str]:
    """A mapping of texts, with numbers and truth values as Spark writes them.

    :raises ConfigError: it is no mapping.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"{setting} of the source {name} is not a mapping",
            where=where,
            fix=f"write {setting}: {{name: value}}",
        )
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in given.items()
    }


__all__ = [
    "OnBadRow",
    "columns_of",
    "on_bad_row_of",
    "one_of",
    "refuse_inferred",
    "reject_unknown",
    "required_of",
    "texts",
]
