"""Types of fields and elements of structs, arrays and maps."""

from __future__ import annotations

from functools import cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_arctic.planner.spark.dialect import verbatim

_LISTS = (exp.DataType.Type.ARRAY, exp.DataType.Type.LIST)


def type_text(type_: str) -> str:
    """A type in the normal form that is used for comparisons.

    >>> type_text("STRUCT<userId: INT, net: DECIMAL(10, 2)>")
    'struct<userid:int,net:decimal(10,2)>'
    """
    return type_.lower().replace(", ", ",").replace(": ", ":")


def is_array(type_: str | None) -> bool:
    """Whether a type is an array."""
    return type_ is not None and type_.startswith("array<")


def is_map(type_: str | None) -> bool:
    """Whether a type is a map."""
    return type_ is not None and type_.startswith("map<")


def of_field(type_: str | None, name: str) -> str | None:
    """The type of ``x.name``, given the type of ``x``. For an array of structs, it is an array.

    >>> of_field("struct<at:timestamp,net:decimal(10,2)>", "NET")
    'decimal(10,2)'
    >>> of_field("array<struct<at:date>>", "at"), of_field("struct<at:date>", "no"), of_field(None, "at")
    ('array<date>', None, None)
    """
    made = _parsed(type_)
    if made is None:
        return None
    if made.this in _LISTS and made.expressions:
        inner = of_field(_text(made.expressions[0]), name)
        return None if inner is None else f"array<{inner}>"
    fields = made.expressions if made.this == exp.DataType.Type.STRUCT else []
    found = [one for one in fields if one.name.lower() == name.lower() and isinstance(one, exp.ColumnDef)]
    return _text(found[0].args["kind"]) if len(found) == 1 else None


def of_element(type_: str | None) -> str | None:
    """The type of ``x[..]`` with an index or a key.

    >>> of_element("array<string>"), of_element("map<string,array<int>>"), of_element("string")
    ('string', 'array<int>', None)
    >>> of_element("array<string collate utf8_lcase>"), of_element("array<time(6)>")
    (None, None)
    """
    made = _parsed(type_)
    if made is None or made.this not in (*_LISTS, exp.DataType.Type.MAP) or not made.expressions:
        return None
    return _text(made.expressions[-1])


@cache
def _parsed(type_: str | None) -> exp.DataType | None:
    if type_ is None or "<" not in type_ or " collate " in type_.lower():
        return None
    try:
        made = exp.DataType.build(type_, dialect=verbatim())
    except SqlglotError:
        return None
    # sqlglot parses an unknown type as a different one.
    return made if _text(made) == type_text(type_) else None


def _text(type_: exp.DataType) -> str:
    return type_text(type_.sql(dialect="spark"))
