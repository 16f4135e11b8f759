"""A plain table at one of its snapshots, as SQL with the columns that the table has today."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.nested import as_today
from dbt_arctic.keyed.widening import is_widened


def plain_at(
    name: Name,
    columns: Mapping[str, CatalogColumn],
    present: Mapping[str, CatalogColumn],
    snapshot: int | None,
) -> str:
    """All rows of a table at a snapshot; none where that is ``None``.

    Spark reads a snapshot with the columns of its own time. One that was added later is NULL there, one that
    was renamed has its old name, and one that was made wider has its old type: what is computed of it may be
    another value. The same goes for what is inside of a column.

    :param columns: what it has today.
    :param present: which of these the snapshot has, and what they were there.
    """

    def item(column: str, today: CatalogColumn) -> str:
        type_ = today.type
        if column not in present:
            return f"CAST(NULL AS {type_}) AS {quote(column)}"
        then = present[column]
        if then.nested and today.nested and then.nested != today.nested:
            return f"{as_today(quote(then.name), then.nested, today.nested)} AS {quote(column)}"
        if is_widened(then.type, type_):
            return f"CAST({quote(then.name)} AS {type_}) AS {quote(column)}"
        return quote(column) if then.name == column else f"{quote(then.name)} AS {quote(column)}"

    if snapshot is None:
        return f"SELECT {', '.join(map(quote, columns))}\nFROM {name.sql}\nWHERE false"
    return f"SELECT {', '.join(item(*column) for column in columns.items())}\nFROM {name.at(snapshot)}"
