"""The columns of a seed: which of them remain strings, and the type of a numeric column.

dbt reads a CSV file with agate, which parses ``00501`` as 501, ``29051_00040`` as 2905100040, ``1,5`` as 15,
and ``50%`` as 50, unless a column is declared as a string. Pure functions over a file and its values.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from agate.exceptions import CastError
from dbt_common.clients.agate_helper import Number

from dbt_arctic.data_type import written_kind
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import raise_error_sql
from dbt_arctic.keyed.names import quote

_PLAIN = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+|[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_READER = Number(null_values=("null", ""))
"""dbt's type of numeric columns."""
_DIGIT = re.compile(r"\d")
_PARSED = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "integer", "bigint"),
        *("float", "double", "decimal", "numeric", "date", "timestamp", "timestamp_ntz"),
    }
)
"""Types whose values are parsed from a text."""
_DIGITS_OF_BIGINT = 18
_DIGITS_OF_DOUBLE = 15
_DIGITS_OF_DECIMAL = 38


def seed_path(node: Mapping[str, Any], project: Any) -> Path:
    """The CSV file of a seed of the project or a package, at dbt's location."""
    package = node["package_name"]
    inside = "." if package == project.project_name else os.path.join(project.packages_install_path, package)
    path = Path(project.project_root, inside, node["original_file_path"])
    return path if path.exists() else Path(node["root_path"], node["original_file_path"])


def column_types(seed: str, path: Path, delimiter: str, declared: Mapping[str, str]) -> dict[str, str]:
    """The types of columns by their names in the file.

    Includes declared types, whose names are case-insensitive, and string for columns with a text that dbt
    would read as another number.

    :raises ConfigError: a type is declared for a column that the file does not have.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=delimiter or ",")
        header = next(rows, [])
        misread: set[int] = set()
        for row in rows:
            misread |= {at for at, text in enumerate(row) if at not in misread and _is_misread(text)}
    by_lower = {name.strip().lower(): name for name in header}
    unknown = [name for name in declared if name.lower() not in by_lower]
    if unknown:
        raise ConfigError(
            f"column_types contains {', '.join(unknown)}, which the file does not have",
            where=f"{seed}: {path.name}",
            why=f"its columns are: {', '.join(header)}",
            fix="correct the name in column_types, or remove it",
        )
    kept = {header[at]: "string" for at in misread if at < len(header)}
    return kept | {by_lower[name.lower()]: type_ for name, type_ in declared.items()}


def _is_misread(text: str) -> bool:
    """Whether dbt reads a text as a number that it does not stand for.

    >>> [text for text in ("1,500.25", "-1e3", "1,5", "5_0", "50%", "$50", "x5") if _is_misread(text)]
    ['1,5', '5_0', '50%', '$50']
    """
    if not _DIGIT.search(text) or _PLAIN.fullmatch(text.strip()):
        return False
    try:
        return _READER.cast(text) is not None  # type: ignore[no-untyped-call] # dbt's
    except CastError:
        return False


def number_type(seed: str, column: str, values: Iterable[Decimal | None]) -> str:
    """The type that represents every number of a column exactly: ``bigint``, ``double`` or ``decimal``.

    >>> number_type("s", "c", [Decimal("0.1"), None]), number_type("s", "c", [Decimal(10**19)])
    ('double', 'decimal(20,0)')

    :raises ConfigError: there is none.
    """
    found = [value for value in values if value is not None]
    finite = [value.normalize() for value in found if value.is_finite()]
    scale = max((_scale(value) for value in finite), default=0)
    whole = max((_digits(value) - _scale(value) for value in finite), default=1)
    exact = max((_digits(value) for value in finite), default=1)
    if len(finite) < len(found):
        if exact <= _DIGITS_OF_DOUBLE:
            return "double"
    elif not scale and whole <= _DIGITS_OF_BIGINT:
        return "bigint"
    elif scale and exact <= _DIGITS_OF_DOUBLE:
        return "double"
    elif whole + scale <= _DIGITS_OF_DECIMAL:
        return f"decimal({whole + scale},{scale})"
    raise ConfigError(
        f"no numeric type can store every value of the column {column}",
        where=seed,
        why=f"they have up to {whole} digits before and {scale} after the decimal point",
        fix=f"use a string: column_types: {{{column}: string}}",
    )


def _scale(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def _digits(value: Decimal) -> int:
    """The number of digits of a number without an exponent."""
    parts = value.as_tuple()
    return max(len(parts.digits) + max(0, int(parts.exponent)), _scale(value) + 1)


def file_of(agate_table: Any) -> str:
    """The file from which dbt has read a table."""
    return str(getattr(agate_table, "original_abspath", "a seed"))


def seed_value(seed: str, column: str, type_: str) -> str:
    """SQL of a value of a seed, from its text. A text that the type cannot store is an error.

    ``CAST`` alone would make it NULL, or cut it off, if a profile sets ``spark.sql.ansi.enabled`` to false.
    """
    name = quote(column)
    kind = written_kind(type_)
    if kind not in _PARSED:
        return f"cast({name} as {type_})"
    error = raise_error_sql(
        "AR-311",
        f"the column {column.replace('|', '/')} of the seed is {type_.upper()}, and a row has the value ",
        f"replace(left({name}, 200), '|', '/')",
        seed,
        "the type cannot store this text; nothing was written",
        "correct the file, or give the column another type in column_types",
    )
    return f"if({name} is null, null, coalesce(try_cast({name} as {type_}), {error}))"


def seed_text(value: Any) -> str | None:
    """A value of a CSV file, as parsed by agate, in the spelling that Spark can cast.

    >>> seed_text(Decimal("1E+3")), seed_text(Decimal("10.00")), seed_text(True), seed_text(None)
    ('1000', '10', 'true', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        # agate treats 10.00 as an integer, but Spark cannot cast a string with a decimal point to one.
        is_whole = value.is_finite() and value == value.to_integral_value()
        return f"{value.to_integral_value() if is_whole else value:f}"
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return str(value)
