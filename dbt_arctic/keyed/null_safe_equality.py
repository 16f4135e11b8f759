"""SQL for the equality of two values, including types that Spark does not compare (maps, variants)."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.data_type import Array, DataType, Map, Struct, atoms, parse_type
from dbt_arctic.keyed.names import quote

FLOATS = ("double", "float")


def same_row(left: str, right: str, types: Mapping[str, str]) -> str:
    """SQL that is true if two rows are identical, so that no query can distinguish them.

    NULL equals NULL. 0.0 differs from -0.0. Maps with the same entries in another order differ, and strings
    that are only equal in their collation.

    :param left: the alias of one row.
    :param right: the alias of the other row.
    :param types: Spark type by column name.
    """
    return " AND ".join(
        same_value(f"{left}.{quote(name)}", f"{right}.{quote(name)}", type_) for name, type_ in types.items()
    )


def same_value(left: str, right: str, type_: str) -> str:
    """SQL that is true if two values are identical, as for ``same_row``."""
    return _same(left, right, type_, sorts=False)


def equal_value(left: str, right: str, type_: str) -> str:
    """SQL that is true if two values are equal. 0.0 differs from -0.0, but maps have no order."""
    return _same(left, right, type_, sorts=True)


def _same(left: str, right: str, type_: str, *, sorts: bool) -> str:
    if type_ == "string":
        # A computed string may have a collation that the stored one lacks, and Spark cannot compare the two.
        return f"CAST({left} AS STRING) <=> CAST({right} AS STRING)"
    parsed = parse_type(type_)
    equal = " <=> ".join(_form(value, parsed, sorts=sorts, exact=True) for value in (left, right))
    if not _has_floats(parsed):
        return equal
    # The two zeros are equal in Spark but have different strings, which take longer to compare.
    texts = " <=> ".join(_form(value, parsed, sorts=sorts, zeros=True, exact=True) for value in (left, right))
    return f"{equal} AND ({_has_no_zero(left, parsed)} OR {texts})"


def distinguishable(value: str, type_: str) -> str:
    """A value in a form that is equal only for identical values.

    Set operations treat the two zeros of a float as equal, and strings that are equal in their collation.

    >>> distinguishable("a", "double"), distinguishable("a", "int")
    ('CAST(a AS STRING)', 'a')
    >>> distinguishable("a", "string collate UTF8_LCASE")
    'CAST(a AS STRING)'
    """
    return _form(value, parse_type(type_), zeros=True, exact=True)


def comparable(value: str, type_: str) -> str:
    """A value in a form that is equal for equal values; the value itself if Spark can compare its type.

    >>> comparable("a", "map<string,int>")
    'sort_array(map_entries(a))'
    """
    return _form(value, parse_type(type_), sorts=True)


def _form(
    value: str,
    type_: DataType,
    depth: int = 0,
    *,
    sorts: bool = False,
    zeros: bool = False,
    exact: bool = False,
) -> str:
    """A value in a form that Spark compares.

    :param sorts: whether maps are equal if they have the same entries in any order.
    :param zeros: whether the two zeros of a float differ.
    :param exact: whether strings differ that are only equal in their collation.
    """
    if _is_compared(type_, zeros=zeros, exact=exact):
        return value
    each = f"x{depth}"

    def inner(part: str, of: DataType, below: int) -> str:
        return _form(part, of, below, sorts=sorts, zeros=zeros, exact=exact)

    match type_:
        case Array(element):
            return f"transform({value}, {each} -> {inner(each, element, depth + 1)})"
        case Map(key, item):
            entries = f"map_entries({value})"
            parts = inner(f"{each}.key", key, depth + 1), inner(f"{each}.value", item, depth + 1)
            if parts != (f"{each}.key", f"{each}.value"):
                entries = f"transform({entries}, {each} -> struct({', '.join(parts)}))"
            return f"sort_array({entries})" if sorts else entries
        case Struct(fields):
            listed = ", ".join(
                f"{inner(f'{value}.{quote(name)}', one, depth)} AS {quote(name)}" for name, one in fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({listed}) END"
    if type_.text in FLOATS or type_.kind == "string":
        return f"CAST({value} AS STRING)"
    # A variant. Its text alone does not distinguish a date from a string that looks like one.
    return f"struct(to_json({value}), schema_of_variant({value}))"


def _is_compared(type_: DataType, *, zeros: bool, exact: bool) -> bool:
    match type_:
        case Map():
            return False
        case Array(element):
            return _is_compared(element, zeros=zeros, exact=exact)
        case Struct(fields):
            return all(_is_compared(one, zeros=zeros, exact=exact) for _, one in fields)
    if type_.kind == "string" and type_.text != "string":
        return not exact
    return type_.text != "variant" and not (zeros and type_.text in FLOATS)


def _has_floats(type_: DataType) -> bool:
    return any(one.text in FLOATS for one in atoms(type_))


def _has_no_zero(value: str, type_: DataType, depth: int = 0) -> str:
    """SQL that is true if no float in a value is zero.

    For a comparison of a column with 0, Spark replaces the column by 0.
    """
    each = f"x{depth}"
    match type_:
        case Array(element):
            return f"coalesce(forall({value}, {each} -> {_has_no_zero(each, element, depth + 1)}), true)"
        case Map(key, item):
            parts = [
                _has_no_zero(f"{each}.{name}", one, depth + 1)
                for name, one in (("key", key), ("value", item))
                if _has_floats(one)
            ]
            return f"coalesce(forall(map_entries({value}), {each} -> {' AND '.join(parts)}), true)"
        case Struct(fields):
            parts = [
                _has_no_zero(f"{value}.{quote(name)}", one, depth) for name, one in fields if _has_floats(one)
            ]
            return f"({' AND '.join(parts)})"
    return f"({value} IS NULL OR abs({value}) > 0)"
