"""A rollback of a table with ``sequence_by``: the next generation is built from an earlier version.

The build includes the tombstones of that version, so that late rows are still ordered correctly. It works as
any other build: one lease, a replay of concurrent commits, one switch. Downstream models compare the two
generations.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import PROPERTY_ROLLBACK
from dbt_arctic.keyed.rollback import required_checks, rows_and_deletes
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed, Version
from dbt_arctic.maintenance.in_current_types import in_current_types
from dbt_arctic.maintenance.versions import deletes_at, state_at
from dbt_arctic.refresh.build import BuildStart, build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_base

_NOT_OURS_TO_SET = (
    "comment", "owner", "provider", "location", "external", "is_managed_location", "format-version",
)  # fmt: skip
"""Table properties that Spark accepts only in other clauses of the statement."""


def build_version(
    context: Context,
    table: KeyedTable,
    to: Version,
    consumed: Mapping[str, Consumed],
    beginning: BuildStart,
    notes: Mapping[str, str],
) -> int | None:
    """Build a generation from an earlier version's rows, with the current columns and layout.

    :param consumed: the upstream versions from which the version was computed.
    :param beginning: the table as loaded before the version was chosen.
    :param notes: additional properties of the first commit.
    :returns: the number of rows; ``None`` if unknown.
    """
    config = KeyedConfig(
        model=table.name.dotted,
        unique_key=table.key,
        sequence_by=table.sequence_by,
        tombstone_retention_s=table.tombstone_retention_s,
        tblproperties=_properties(context.catalog, table),
        checks=required_checks(table),
        required=table.required,
    )
    rows = in_current_types(context, table, state_at(context.catalog, table, to), to)
    deletes = in_current_types(context, table, deletes_at(context.catalog, table, to), to)
    sql = rows_and_deletes(table, rows, deletes)
    _, outcome = build_generation(
        context,
        table.name,
        config,
        sql,
        consumed,
        owner=table.owner,
        comment=beginning.before.comment,
        column_comments={column.name: column.comment for column in table.columns},
        beginning=beginning,
        like=table,
        notes={PROPERTY_ROLLBACK: to.token, **notes},
    )
    return outcome.rows


def _properties(catalog: CatalogReader, table: KeyedTable) -> dict[str, str]:
    """The properties of the base that a build does not set itself."""
    return {
        name: value
        for name, value in load_base(catalog, table).properties.items()
        if not name.startswith("arctic.") and name not in _NOT_OURS_TO_SET
    }
