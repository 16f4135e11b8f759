"""A table without a key at one of its snapshots, as SQL, with the columns that it has today."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbt_arctic.keyed.names import Name, quote

_WIDER = re.compile(r"bigint$|double$|decimal\(")
"""Types that a column may have got where it had a narrower one."""


def plain_at(name: Name, columns: Mapping[str, str], present: Mapping[str, str], snapshot: int | None) -> str:
    """All rows of a table at a snapshot; none where that is ``None``.

    Spark reads a snapshot with the columns of its own time. One that was added later is NULL there, one that
    was renamed has its old name, and one that was made wider has its old type: what is computed of it may be
    another value.

    :param columns: what it has today, with Spark types.
    :param present: which of these the snapshot has, and by which name.
    """

    def item(column: str, type_: str) -> str:
        if column not in present:
            return f"CAST(NULL AS {type_}) AS {quote(column)}"
        value = quote(present[column])
        if _WIDER.match(type_):
            return f"CAST({value} AS {type_}) AS {quote(column)}"
        return value if present[column] == column else f"{value} AS {quote(column)}"

    if snapshot is None:
        return f"SELECT {', '.join(map(quote, columns))}\nFROM {name.sql}\nWHERE false"
    return f"SELECT {', '.join(item(*column) for column in columns.items())}\nFROM {name.at(snapshot)}"
