"""Values as ``dbt show`` prints them: in Spark's own text, or as JSON where a value has others inside.

What dbt makes a table of, and JSON of, knows neither maps with other keys than text, nor ``NaN``, intervals,
bytes or years beyond 9999.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import quote

_AS_THEY_ARE = frozenset({"tinyint", "smallint", "int", "bigint", "boolean", "string", "void"})
_KEY = re.compile(r"map<(\w+)")
_WITH_PARTS = ("struct<", "array<", "map<", "variant")


def shown_columns(columns: Sequence[ColumnInfo]) -> list[str] | None:
    """SQL of each column of a relation as it is shown; ``None`` where all are shown as they are, or where
    columns share a name, so that none can be named.
    """
    names = [column.name.lower() for column in columns]
    if len(set(names)) < len(names) or all(column.type in _AS_THEY_ARE for column in columns):
        return None
    return [_shown(quote(column.name), column.type) for column in columns]


def _shown(name: str, type_: str) -> str:
    if type_ in _AS_THEY_ARE:
        return name
    # JSON has no keys but strings, and Spark writes the number of a day for a date there.
    has_other_keys = any(found[1] != "string" for found in _KEY.finditer(type_))
    as_json = type_.startswith(_WITH_PARTS) and not has_other_keys
    text = f"to_json({name})" if as_json else f"cast({name} as string)"
    return f"{text} as {name}"
