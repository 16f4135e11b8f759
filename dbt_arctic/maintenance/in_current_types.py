"""The rows of an earlier version in the current types of the columns, for a rollback.

A full refresh may have changed the type of a column, and so may dropping a column and adding it again. Spark
would round values when they are stored, and values of a key that differ could become equal.
"""

from __future__ import annotations

from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.narrowing import holds_all_values, in_types
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.store.context import Context


def in_current_types(context: Context, table: KeyedTable, rows: str, to: Version) -> str:
    """SQL of the same rows, each value unchanged in the type that its column has now.

    :param rows: SQL of the rows of the version, or of its deletes, with the columns of the table.
    :raises VersionUnavailable: the current type of a column does not have all values of the earlier one.
    """
    then = {column.name: column.type for column in context.query_schema(rows)}
    now = table.types
    for name, type_ in now.items():
        if not holds_all_values(then[name], type_):
            raise _other_type(table, to, name, then[name])
    return in_types(rows, then, now)


def _other_type(table: KeyedTable, to: Version, column: str, then: str) -> VersionUnavailable:
    name = f"{table.name.schema}.{table.name.identifier}"
    fix = (
        f"choose a version of which {column} has its current type: dbt-arctic history {name}"
        if to.generation == table.generation.number
        else f"restore that generation: dbt-arctic restore {name} --generation {to.generation}"
    )
    return VersionUnavailable(
        f"{table.name} cannot be rolled back to version {to}",
        where=table.name.dotted,
        why=f"{column} was stored as {then} in that version; its current type {table.types[column]} "
        "cannot store all of these values",
        fix=fix,
    )
