"""Whether two values are the same, as SQL: also for types that Spark does not compare (maps, variants)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dbt_arctic.keyed.names import quote

_NOT_COMPARED = ("map<", "variant")
FLOATS = ("double", "float")
_QUOTED = re.compile(r"`(?:``|[^`])*`")
_FIELD = re.compile(r"(?:`((?:``|[^`])*)`|([^:]*)):")


def same_row(left: str, right: str, types: Mapping[str, str]) -> str:
    """SQL that is true where two rows are alike; NULL is like NULL, and 0.0 is not -0.0.

    :param left: and :param right: aliases of the two rows.
    :param types: Spark type by column name.
    """
    return " AND ".join(
        _same(f"{left}.{quote(name)}", f"{right}.{quote(name)}", type_) for name, type_ in types.items()
    )


def _same(left: str, right: str, type_: str) -> str:
    if type_ == "string":
        # A computed text may have a collation, which the stored one has not, and Spark compares no two.
        return f"CAST({left} AS STRING) <=> CAST({right} AS STRING)"
    equal = f"{comparable(left, type_)} <=> {comparable(right, type_)}"
    if type_ not in FLOATS:
        return equal
    # The two zeros are equal to Spark, and are written as two texts. Where a column is compared with 0, Spark
    # puts 0 in its place.
    texts = f"CAST({left} AS STRING) = CAST({right} AS STRING)"
    return f"{equal} AND ({left} IS NULL OR abs({left}) > 0 OR {texts})"


def told_apart(value: str, type_: str) -> str:
    """A value in a form that is equal for one value only: a set operation takes one zero of a float for both.

    >>> told_apart("a", "double"), told_apart("a", "int")
    ('CAST(a AS STRING)', 'a')
    """
    return f"CAST({value} AS STRING)" if type_ in FLOATS else comparable(value, type_)


def comparable(value: str, type_: str, depth: int = 0) -> str:
    """A value in a form that is equal for equal values; itself, where Spark compares its type.

    >>> comparable("a", "map<string,int>")
    'sort_array(map_entries(a))'
    """
    if not any(part in type_ for part in _NOT_COMPARED):
        return value
    each = f"x{depth}"
    if type_ == "variant":
        # The text alone does not tell a date from a string that looks like one.
        return f"struct(to_json({value}), schema_of_variant({value}))"
    if type_.startswith("array<"):
        element = comparable(each, _inside(type_), depth + 1)
        return f"transform({value}, {each} -> {element})"
    if type_.startswith("map<"):
        _, value_type = _parts(_inside(type_))
        entry = comparable(f"{each}.value", value_type, depth + 1)
        entries = f"map_entries({value})"
        if entry != f"{each}.value":
            entries = f"transform({entries}, {each} -> struct({each}.key, {entry}))"
        return f"sort_array({entries})"
    if type_.startswith("struct<"):
        fields = [_field(part) for part in _parts(_inside(type_))]
        listed = ", ".join(
            f"{comparable(f'{value}.{quote(name)}', field_type, depth)} AS {quote(name)}"
            for name, field_type in fields
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct({listed}) END"
    return value


def _field(text: str) -> tuple[str, str]:
    """Name and type of a field of a struct."""
    found = _FIELD.match(text)
    assert found is not None, text
    quoted, plain = found.groups()
    return (plain if quoted is None else quoted.replace("``", "`")), text[found.end() :]


def _inside(type_: str) -> str:
    return type_[type_.index("<") + 1 : -1]


def _parts(text: str) -> Iterator[str]:
    """The parts of a type between the commas that no bracket encloses.

    >>> list(_parts("a:map<int,int>,`b,c`:decimal(4,2)"))
    ['a:map<int,int>', '`b,c`:decimal(4,2)']
    """
    depth = start = 0
    masked = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)
    for at, character in enumerate(masked):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
