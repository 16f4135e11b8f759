"""SQL for the equality of two values, including types that Spark does not compare (maps, variants)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type
from dbt_arctic.keyed.names import quote

FLOATS = ("double", "float")


_Leaf = Callable[[str, Atomic], str]
"""The form of a value without nested values."""


def same_row(left: str, right: str, types: Mapping[str, str]) -> str:
    """SQL that is true if two rows are identical. NULL equals NULL, and 0.0 differs from -0.0 at every depth.

    :param left: the alias of one row.
    :param right: the alias of the other row.
    :param types: Spark type by column name.
    """
    return " AND ".join(
        same_value(f"{left}.{quote(name)}", f"{right}.{quote(name)}", type_) for name, type_ in types.items()
    )


def same_value(left: str, right: str, type_: str) -> str:
    """SQL that is true if two values are identical. NULL equals NULL, and 0.0 differs from -0.0."""
    if type_ == "string":
        # A computed string may have a collation that the stored one lacks, and Spark cannot compare the two.
        return f"CAST({left} AS STRING) <=> CAST({right} AS STRING)"
    if type_ not in FLOATS:
        return f"{_identical(left, type_)} <=> {_identical(right, type_)}"
    # The two zeros are equal in Spark but have different strings. For a comparison of a column with 0, Spark
    # replaces the column by 0.
    texts = f"CAST({left} AS STRING) = CAST({right} AS STRING)"
    return f"{left} <=> {right} AND ({left} IS NULL OR abs({left}) > 0 OR {texts})"


def distinguishable(value: str, type_: str) -> str:
    """A value in a form that is equal only for identical values.

    Set operations treat the two zeros of a float as equal, and strings that are equal in their collation.

    >>> distinguishable("a", "double"), distinguishable("a", "string collate UTF8_LCASE")
    ('CAST(a AS STRING)', 'CAST(a AS STRING)')
    >>> distinguishable("a", "int")
    'a'
    """
    return f"CAST({value} AS STRING)" if type_ in FLOATS else _identical(value, type_)


def comparable(value: str, type_: str) -> str:
    """A value in a form that is equal for equal values; the value itself if Spark can compare its type.

    >>> comparable("a", "map<string,int>")
    'sort_array(map_entries(a))'
    """
    return _formed(value, parse_type(type_), 0, _equal_leaf)


def _identical(value: str, type_: str) -> str:
    return _formed(value, parse_type(type_), 0, _identical_leaf)


def _equal_leaf(value: str, type_: Atomic) -> str:
    # The text of a variant alone does not distinguish a date from a string that looks like one.
    is_variant = type_.text == "variant"
    return f"struct(to_json({value}), schema_of_variant({value}))" if is_variant else value


def _identical_leaf(value: str, type_: Atomic) -> str:
    if type_.text in FLOATS:
        # As in `same_value`; only the text of a zero is needed.
        return f"struct({value}, CASE WHEN abs({value}) > 0 THEN NULL ELSE CAST({value} AS STRING) END)"
    is_collated = type_.kind == "string" and type_.text != "string"
    return f"CAST({value} AS STRING)" if is_collated else _equal_leaf(value, type_)


def _formed(value: str, type_: DataType, depth: int, leaf: _Leaf) -> str:
    if _is_kept(type_, leaf):
        return value
    each = f"x{depth}"
    match type_:
        case Array(element):
            return f"transform({value}, {each} -> {_formed(each, element, depth + 1, leaf)})"
        case Map(_, inner):
            entries, entry = f"map_entries({value})", _formed(f"{each}.value", inner, depth + 1, leaf)
            if entry != f"{each}.value":
                entries = f"transform({entries}, {each} -> struct({each}.key, {entry}))"
            return f"sort_array({entries})"
        case Struct(fields):
            listed = ", ".join(
                f"{_formed(f'{value}.{quote(name)}', one, depth, leaf)} AS {quote(name)}"
                for name, one in fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({listed}) END"
        case Atomic():
            return leaf(value, type_)


def _is_kept(type_: DataType, leaf: _Leaf) -> bool:
    match type_:
        case Array(element):
            return _is_kept(element, leaf)
        case Map():
            return False
        case Struct(fields):
            return all(_is_kept(one, leaf) for _, one in fields)
        case Atomic():
            return leaf("", type_) == ""
