"""How a table stores a value of another type: as it is, or not at all.

Written from the section "Values are stored as they are" of ``docs/reference/models.md``.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type, type_text
from tests.dbt.random.values import INTEGERS, Pairs, instant, single


class NotExact(Exception):
    """The column could hold another value only. Refused before anything is written."""


class TooLarge(Exception):
    """The column's type holds values of this type, but not this one. Spark's own error while it writes."""


def stored_type(type_: str) -> str:
    """The type of a new column: Iceberg knows no integers of less than 32 bits, and no collations."""
    return type_text(_stored(parse_type(type_)))


def _stored(type_: DataType) -> DataType:
    match type_:
        case Struct(fields):
            return Struct(tuple((name, _stored(one)) for name, one in fields))
        case Array(element):
            return Array(_stored(element))
        case Map(key, value):
            return Map(_stored(key), _stored(value))
    if type_.kind in ("tinyint", "smallint"):
        return Atomic("int")
    return Atomic("string") if type_.kind == "string" else type_


class NotAllowed(Exception):
    """``on_schema_change`` does not allow that a type becomes another. Refused before anything changes."""


def evolved_type(stored: str, produced: str, mode: str) -> str:
    """The type of a column whose query has another one, at every depth.

    Written from the section "Columns and fields that change".

    :param mode: ``on_schema_change``, or ``snapshot``.
    :raises NotAllowed: the run is refused.
    """
    return type_text(_evolved(parse_type(stored), parse_type(stored_type(produced)), mode))


def _evolved(stored: DataType, produced: DataType, mode: str) -> DataType:
    match stored, produced:
        case Struct(), Struct():
            return _evolved_struct(stored, produced, mode)
        case Array(one), Array(other):
            return Array(_evolved(one, other, mode))
        case Map(), Map():
            return Map(
                _evolved(stored.key, produced.key, "fail"),
                _evolved(stored.value, produced.value, mode),
            )
        case _ if stored == produced or produced == Atomic("void"):
            return stored
        case Atomic("void"), _:
            return produced
        case Atomic(one), Atomic(other):
            return _evolved_atom(one, other, mode)
    raise NotAllowed(f"{type_text(stored)} is now {type_text(produced)}")


def _evolved_struct(stored: Struct, produced: Struct, mode: str) -> Struct:
    there = {name.lower(): one for name, one in produced.fields}
    names = {name.lower() for name, _ in stored.fields}
    gone, new = names - there.keys(), there.keys() - names
    if (gone or new) and mode in ("ignore", "fail"):
        raise NotAllowed(f"fields that are gone: {sorted(gone)}, new: {sorted(new)}")
    fields = [
        (name, _evolved(one, there[name.lower()], mode) if name.lower() in there else one)
        for name, one in stored.fields
        if name.lower() in there or mode != "sync_all_columns"
    ]
    return Struct((*fields, *((name, one) for name, one in produced.fields if name.lower() in new)))


def _evolved_atom(stored: str, produced: str, mode: str) -> Atomic:
    if can_widen(stored, produced) and mode in ("sync_all_columns", "snapshot", "fail"):
        if mode == "fail":
            raise NotAllowed(f"{stored} is now {produced}")
        return Atomic(produced)
    try:
        require_exact(produced, stored)
    except NotExact as error:
        raise NotAllowed(str(error)) from error
    if mode == "sync_all_columns" and not can_widen(produced, stored):
        raise NotAllowed(f"{stored} is now {produced}")
    return Atomic(stored)


def can_widen(old: str, new: str) -> bool:
    """Whether Iceberg promotes a column from one type to another in place."""
    if (old, new) in {("int", "bigint"), ("float", "double")}:
        return True
    one, other = parse_type(old), parse_type(new)
    if not (isinstance(one, Atomic) and isinstance(other, Atomic) and one.kind == other.kind == "decimal"):
        return False
    return one.parameters[1] == other.parameters[1] and one.parameters[0] <= other.parameters[0]


def keep(value: Any, produced: str, stored: str) -> Any:
    """The value as a column of type ``stored`` holds it.

    :raises NotExact: / :raises TooLarge: it cannot.
    """
    return _keep(value, parse_type(produced), parse_type(stored))


def require_exact(produced: str, stored: str) -> None:
    """:raises NotExact: of values of one type, a column of the other holds only others."""
    _require(parse_type(produced), parse_type(stored))


def require_carried_over(written: str, now: str) -> None:
    """:raises NotExact: a column of a rebuilt table does not hold what was written to the earlier column.

    Written from the table on rows that are committed during a full refresh, in ``keyed-table.md``.
    """
    require_exact(written, now)
    _require_fields(parse_type(written), parse_type(now))


def _require_fields(written: DataType, now: DataType) -> None:
    match written, now:
        case Struct(), Struct():
            there = {name.lower(): one for name, one in now.fields}
            for name, one in written.fields:
                if name.lower() not in there:
                    raise NotExact(f"the field {name} is gone")
                _require_fields(one, there[name.lower()])
        case Array(one), Array(other):
            _require_fields(one, other)
        case Map(), Map():
            _require_fields(written.key, now.key)
            _require_fields(written.value, now.value)


def _require(produced: DataType, stored: DataType) -> None:
    match produced, stored:
        case Struct(), Struct():
            there = {name.lower(): one for name, one in stored.fields}
            for name, one in produced.fields:
                if name.lower() in there:
                    _require(one, there[name.lower()])
        case Array(one), Array(other):
            _require(one, other)
        case Map(), Map():
            _require(produced.key, stored.key)
            _require(produced.value, stored.value)
        case Atomic(), Atomic() if _is_exact(produced, stored):
            return
        case Atomic("void"), _:
            return
        case _:
            raise NotExact(f"{type_text(produced)} is not stored in {type_text(stored)}")


_SHOWN = frozenset({*INTEGERS, "decimal", "boolean", "date", "timestamp_ntz", "float", "double", "string"})


def _is_exact(produced: Atomic, stored: Atomic) -> bool:
    one, other = produced.kind, stored.kind
    if one == "void" or produced == stored:
        return True
    if other == "string":
        return one in _SHOWN
    if one in INTEGERS:
        return other in INTEGERS or other == "decimal" or other in _floats(one)
    if one == "decimal":
        precision, scale = produced.parameters
        if other == "decimal":
            return scale <= stored.parameters[1]
        if other in INTEGERS:
            return scale == 0
        return (other == "double" and precision <= 15) or (other == "float" and precision <= 6)
    return (one, other) in {("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz")}


def _floats(integer: str) -> tuple[str, ...]:
    """What holds each integer of a type as a floating-point number."""
    return {"tinyint": ("float", "double"), "smallint": ("float", "double"), "int": ("double",)}.get(
        integer, ()
    )


def _keep(value: Any, produced: DataType, stored: DataType) -> Any:
    _require(produced, stored)
    if value is None:
        return None
    match produced, stored:
        case Struct(), Struct():
            there = {name.lower(): (name, one) for name, one in produced.fields}
            return {
                name: _keep(value[there[name.lower()][0]], there[name.lower()][1], one)
                if name.lower() in there
                else None
                for name, one in stored.fields
            }
        case Array(one), Array(other):
            return [_keep(element, one, other) for element in value]
        case Map(), Map():
            return Pairs(
                (_keep(one, produced.key, stored.key), _keep(other, produced.value, stored.value))
                for one, other in value
            )
    assert isinstance(produced, Atomic)
    assert isinstance(stored, Atomic)
    return _keep_atom(value, produced, stored)


def _keep_atom(value: Any, produced: Atomic, stored: Atomic) -> Any:
    kind = stored.kind
    if produced.kind == kind and kind != "decimal":
        return value
    if kind == "string":
        return _shown(value, produced)
    if kind in INTEGERS:
        number = int(value)
        if not -(2 ** INTEGERS[kind]) <= number < 2 ** INTEGERS[kind]:
            raise TooLarge(f"{number} is no {kind}")
        return number
    if kind == "decimal":
        precision, scale = stored.parameters
        number = Decimal(value)
        if abs(number) >= Decimal(10) ** (precision - scale):
            raise TooLarge(f"{number} is no {stored.text}")
        return number
    if kind in ("float", "double"):
        return single(float(value)) if kind == "float" else float(value)
    midnight = dt.datetime(value.year, value.month, value.day)
    return instant(midnight) if kind == "timestamp" else midnight


def _shown(value: Any, type_: Atomic) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return re.sub(r"(\.\d*?)0+$", r"\1", str(value))
    if isinstance(value, Decimal):
        return format(value, f".{type_.parameters[1]}f")
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return str(value)
