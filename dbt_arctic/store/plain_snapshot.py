"""SQL of a plain table at one of its snapshots, with the columns that the table has today."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.keyed.initial_default import initial_value
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.nested import as_today, has_other_types
from dbt_arctic.keyed.widening import is_widened


def same_columns_at(columns: Mapping[str, CatalogColumn], present: Mapping[str, CatalogColumn]) -> bool:
    """Whether a snapshot has the columns of today. Spark reads a snapshot with the columns of that time.

    :param columns: the columns that the table has today.
    :param present: those of the snapshot, as ``CatalogReader.columns_at`` returns them.
    """
    return list(columns) == list(present) and all(
        (then.name, then.type, then.nested) == (name, columns[name].type, columns[name].nested)
        for name, then in present.items()
    )


def types_at(columns: Mapping[str, CatalogColumn], present: Mapping[str, CatalogColumn]) -> dict[str, str]:
    """The Spark type of each column of ``plain_at``.

    It is another one than today's if the table was replaced by one with other types since.
    """
    return {
        name: present[name].type if _is_replaced(present.get(name), today) else today.type
        for name, today in columns.items()
    }


def _is_replaced(then: CatalogColumn | None, today: CatalogColumn) -> bool:
    """Whether a column had a type that Iceberg does not promote to the current one."""
    if then is None or not then.name or then.type == today.type or then.type == "void":
        return False
    if then.nested and today.nested:
        return has_other_types(then.nested, today.nested)
    return not is_widened(then.type, today.type)


def plain_at(
    name: Name,
    columns: Mapping[str, CatalogColumn],
    present: Mapping[str, CatalogColumn],
    snapshot: int | None,
) -> str:
    """SQL of all rows of a table at a snapshot; of no rows if the snapshot is ``None``.

    Spark reads a snapshot with the columns of that time. A column that was added later is NULL there, or has
    the default with which it was added. A renamed one has its old name, and a widened one has its old type,
    with which expressions may have different results. The same applies to nested fields. ``types_at`` returns
    the types.

    :param columns: the columns that the table has today.
    :param present: which of these the snapshot has, and their names and types at that time.
    """

    def item(column: str, today: CatalogColumn) -> str:
        type_ = today.type
        then = present.get(column)
        if then is None or not then.name:
            return f"{initial_value(today.initial, type_)} AS {quote(column)}"
        if _is_replaced(then, today):
            return f"{quote(then.name)} AS {quote(column)}"
        if then.nested and today.nested and then.nested != today.nested:
            return f"{as_today(quote(then.name), then.nested, today.nested)} AS {quote(column)}"
        if is_widened(then.type, type_):
            return f"CAST({quote(then.name)} AS {type_}) AS {quote(column)}"
        return quote(column) if then.name == column else f"{quote(then.name)} AS {quote(column)}"

    if snapshot is None:
        return f"SELECT {', '.join(map(quote, columns))}\nFROM {name.sql}\nWHERE false"
    return f"SELECT {', '.join(item(*column) for column in columns.items())}\nFROM {name.at(snapshot)}"
