"""SQL for the equality of two values, including types that Spark does not compare (maps, variants)."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.data_type import Array, DataType, Map, Struct, parse_type
from dbt_arctic.keyed.names import quote

FLOATS = ("double", "float")


def same_row(left: str, right: str, types: Mapping[str, str]) -> str:
    """SQL that is true if two rows are identical. NULL equals NULL, and 0.0 differs from -0.0.

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
    equal = f"{comparable(left, type_)} <=> {comparable(right, type_)}"
    if type_ not in FLOATS:
        return equal
    # The two zeros are equal in Spark but have different strings. For a comparison of a column with 0, Spark
    # replaces the column by 0.
    texts = f"CAST({left} AS STRING) = CAST({right} AS STRING)"
    return f"{equal} AND ({left} IS NULL OR abs({left}) > 0 OR {texts})"


def distinguishable(value: str, type_: str) -> str:
    """A value in a form that is equal only for identical values.

    Set operations treat the two zeros of a float as equal.

    >>> distinguishable("a", "double"), distinguishable("a", "int")
    ('CAST(a AS STRING)', 'a')
    """
    return f"CAST({value} AS STRING)" if type_ in FLOATS else comparable(value, type_)


def comparable(value: str, type_: str) -> str:
    """A value in a form that is equal for equal values; the value itself if Spark can compare its type.

    >>> comparable("a", "map<string,int>")
    'sort_array(map_entries(a))'
    """
    return _comparable(value, parse_type(type_), 0)


def _comparable(value: str, type_: DataType, depth: int) -> str:
    if _is_compared(type_):
        return value
    each = f"x{depth}"
    match type_:
        case Array(element):
            return f"transform({value}, {each} -> {_comparable(each, element, depth + 1)})"
        case Map(_, inner):
            entries, entry = f"map_entries({value})", _comparable(f"{each}.value", inner, depth + 1)
            if entry != f"{each}.value":
                entries = f"transform({entries}, {each} -> struct({each}.key, {entry}))"
            return f"sort_array({entries})"
        case Struct(fields):
            listed = ", ".join(
                f"{_comparable(f'{value}.{quote(name)}', one, depth)} AS {quote(name)}"
                for name, one in fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({listed}) END"
    # A variant. Its text alone does not distinguish a date from a string that looks like one.
    return f"struct(to_json({value}), schema_of_variant({value}))"


def _is_compared(type_: DataType) -> bool:
    match type_:
        case Array(element):
            return _is_compared(element)
        case Map():
            return False
        case Struct(fields):
            return all(_is_compared(one) for _, one in fields)
    return type_.text != "variant"
