"""The columns of a seed: which of them remain strings, and the type of a numeric column.

dbt reads a CSV file with agate, which parses ``00501`` as 501, ``29051_00040`` as 2905100040, ``1,5`` as 15,
``50%`` as 50, and ``12T10`` as the year 1201, unless a column is declared as a string. Pure functions over a
file and its values.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from agate.exceptions import CastError
from dbt_common.clients.agate_helper import ISODateTime, Number

from dbt_arctic.errors import ConfigError

_PLAIN = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+|[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLAIN_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8})T[0-9]{2}(:?[0-9]{2}(:?[0-9]{2}([.,][0-9]{1,6}0*)?)?)?"
    r"(Z|[-+][0-9]{2}(:?[0-9]{2})?)?"
)
_READER = Number(null_values=("null", ""))
"""dbt's type of numeric columns."""
_TIME_READER = ISODateTime(null_values=("null", ""))
"""dbt's type of columns of times in ISO 8601."""
_DIGIT = re.compile(r"\d")
_DIGITS_OF_READER = 28
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
    would read as another number or time.

    :raises ConfigError: a type is declared for a column that the file does not have, or its header does not
        name each column.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=delimiter or ",")
        header = next(rows, [])
        misread: set[int] = set()
        for row in rows:
            misread |= {at for at, text in enumerate(row) if at not in misread and _is_misread(text)}
    _require_names(seed, path, header)
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


def _require_names(seed: str, path: Path, header: Sequence[str]) -> None:
    """Refuse a header that has a name twice or not at all. dbt would make up another name."""
    names = [name.strip().lower() for name in header]
    several = [name for at, name in enumerate(header) if name.strip() and names.count(names[at]) > 1]
    unnamed = [str(at) for at, name in enumerate(names, 1) if not name]
    if several or unnamed:
        what = (
            f"names several columns {' and '.join(several)}"
            if several
            else f"has no name for column {unnamed[0]}"
        )
        raise ConfigError(
            f"the header of the file {what}",
            where=f"{seed}: {path.name}",
            why=f"each column needs a name, and case does not distinguish names: {', '.join(header)}",
            fix="give each column a name of its own in the first line of the file",
        )


def _is_misread(text: str) -> bool:
    """Whether dbt reads a text as a number or a time that it does not stand for.

    dbt rounds a number to 28 digits, and keeps six digits of the fraction of a second.

    >>> [text for text in ("1,500.25", "-1e3", "1,5", "5_0", "50%", "x5", "1" * 29) if _is_misread(text)]
    ['1,5', '5_0', '50%', '11111111111111111111111111111']
    >>> [text for text in ("2024-01-01T10:00Z", "2024-01-01T10:00:00.1234567", "12T10") if _is_misread(text)]
    ['2024-01-01T10:00:00.1234567', '12T10']
    """
    if not _DIGIT.search(text):
        return False
    plain = _PLAIN.fullmatch(text.strip()) is not None
    if plain and len(text) <= _DIGITS_OF_READER:
        return False
    number = _read(_READER, text)
    if number is not None:
        return not plain or number != Decimal(text.replace(",", ""))
    is_time = "T" in text and _read(_TIME_READER, text) is not None
    return is_time and _PLAIN_TIME.fullmatch(text.strip()) is None


def _read(reader: Any, text: str) -> Any:
    """A text as dbt reads it; ``None`` if the type does not fit."""
    try:
        return reader.cast(text)
    except CastError:
        return None


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
