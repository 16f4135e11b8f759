"""SQL of a value in a narrower type, which fails for a value that does not fit.

``CAST`` fails in ANSI mode only. Without it, 3,000,000,000 becomes -1,294,967,296 as an INT, and a decimal
that is too large becomes NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type, type_text
from dbt_arctic.keyed.assignment import INTEGER_DIGITS, mismatches, stored_value
from dbt_arctic.keyed.checks import EXACT_JSON, raise_error_sql
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.null_safe_equality import comparable


@dataclass(frozen=True)
class TypeChange:
    """The type of a column in a query, and the other one in which the table stores it."""

    produced: str
    stored: str


def exact_cast(value: str, change: TypeChange, *, column: str, where: str) -> str:
    """SQL of a value as the table stores it. The statement fails with ``AR-305`` if the value does not fit.

    :param value: SQL of the value, with the fields of its structs in the order of the table
        (``stored_value``); it may be repeated in the result.
    :param change: its types. Each value that fits is stored unchanged.
    :param column: the name of the column, for the error.
    :param where: the model or table, for the error.

    >>> exact_cast("`n`", TypeChange("int", "bigint"), column="n", where="orders")
    'CAST(`n` AS bigint)'
    """
    produced, stored = change.produced, change.stored
    if not is_narrower(parse_type(produced), parse_type(stored)):
        return f"CAST({value} AS {stored})"
    kept, given = (
        f"TRY_CAST({value} AS {stored})",
        type_text(_shaped(parse_type(produced), parse_type(stored))),
    )
    back = comparable(f"CAST({kept} AS {given})", given)
    error = raise_error_sql(
        "AR-305",
        f"the column {column} cannot store ".replace("|", "/"),
        f"replace(left(to_json(struct({value} AS `value`), {EXACT_JSON}), 300), '|', '/')",
        where.replace("|", "/"),
        f"it is {produced} in the query and {stored} in the table, which has no such value",
        "cast the column in the query so that it fits, or rebuild the table with --full-refresh",
    )
    return f"CASE WHEN {back} <=> {comparable(value, given)} THEN {kept} ELSE CAST({error} AS {stored}) END"


def _shaped(produced: DataType, stored: DataType) -> DataType:
    """A type with the fields of its structs in the order of the table."""
    match produced, stored:
        case Struct(), Struct():
            there = ((name, produced.field(name), type_) for name, type_ in stored.fields)
            return Struct(
                tuple((name, _shaped(found[1], type_) if found else type_) for name, found, type_ in there)
            )
        case Array(one), Array(other):
            return Array(_shaped(one, other))
        case Map(), Map():
            return Map(_shaped(produced.key, stored.key), _shaped(produced.value, stored.value))
    return produced


def is_narrower(produced: DataType, stored: DataType) -> bool:
    """Whether a type has values that do not fit into another one, at any depth."""
    match produced, stored:
        case Struct(), Struct():
            there = ((type_, stored.field(name)) for name, type_ in produced.fields)
            return any(other is not None and is_narrower(type_, other[1]) for type_, other in there)
        case Array(one), Array(other):
            return is_narrower(one, other)
        case Map(), Map():
            return is_narrower(produced.key, stored.key) or is_narrower(produced.value, stored.value)
        case Atomic(), Atomic():
            return _whole_digits(produced) > _whole_digits(stored) > 0
    return False


def holds_all_values(produced: str, stored: str) -> bool:
    """Whether each value of a type is stored unchanged in a column of another one.

    Fields of a struct that the column does not have are left out, and those that only it has are NULL.

    >>> holds_all_values("int", "bigint"), holds_all_values("bigint", "int")
    (True, False)
    >>> holds_all_values("decimal(10,3)", "decimal(10,2)"), holds_all_values("struct<a:int>", "struct<b:int>")
    (False, True)
    """
    if is_narrower(parse_type(produced), parse_type(stored)):
        return False
    return not any(mismatch.stored for mismatch in mismatches("", produced, stored, fill=True))


def in_types(rows: str, then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """SQL of rows with each value unchanged in the type of a column of another state of their table.

    :param rows: SQL of the rows.
    :param then: Spark types by column of ``rows``.
    :param now: the types that the columns get, which have all values of the earlier ones
        (``holds_all_values``).
    """
    if all(then.get(name) == type_ for name, type_ in now.items()):
        return rows
    values = (
        quote(name)
        if then[name] == type_
        else f"CAST({stored_value(quote(name), then[name], type_)} AS {type_}) AS {quote(name)}"
        for name, type_ in now.items()
    )
    others = (quote(name) for name in then if name not in now)
    return f"SELECT {', '.join([*values, *others])}\nFROM (\n{rows}\n)"


def _whole_digits(type_: Atomic) -> int:
    """The decimal digits before the point; 0 for a type that is neither an integer nor a decimal."""
    if type_.kind == "decimal":
        precision, scale = type_.parameters
        return precision - scale
    return INTEGER_DIGITS.get(type_.kind, 0)


__all__ = ["TypeChange", "exact_cast", "holds_all_values", "in_types", "is_narrower"]
