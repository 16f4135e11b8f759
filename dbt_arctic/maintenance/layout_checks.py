"""Checks that layout and properties of base and change table match the view and the protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dbt_arctic.catalog.api import TableState
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild_command
from dbt_arctic.store.state import with_current_buckets

_DESCRIBES = ("arctic.key", "arctic.layout", "arctic.sequence-by")
"""The properties with which a base describes its generation. Owner and retention may change separately."""


def check_layout(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Check that both tables are partitioned as the view says, which reads need to join bucket by bucket.

    A full compaction may have changed the number of buckets since the view was written.
    """
    buckets = [with_current_buckets(table, side).layout.buckets for side in (base, change)]
    if buckets[0] != buckets[1]:
        yield Finding(
            "layout",
            table.name.dotted,
            f"{table.base} has {counted(buckets[0], 'bucket')}, and {table.change} {buckets[1]}",
            table.name.dotted,
            "a full compaction that changes the number is running or was interrupted; reads are correct, but "
            "joins of merged rows need a shuffle",
            compact_full(table),
        )
    for side, state in ((table.base, base), (table.change, change)):
        if (
            state.partitioning is not None
            and state.partitioning != with_current_buckets(table, state).layout.fields
        ):
            yield Finding(
                "layout",
                table.name.dotted,
                f"{side} is partitioned by {_listed(state.partitioning)}, and {table.name} by "
                f"{_listed(table.layout.fields)}",
                side.dotted,
                "its partition spec was changed manually; reads are correct, but joins shuffle",
                rebuild_command(table.name),
            )
    order = base.sort_order
    if order is not None and order != table.layout.sort_by and not any("(" in column for column in order):
        yield Finding(
            "layout",
            table.name.dotted,
            f"{table.base} is sorted by {_listed(order)}, "
            f"and {table.name} by {_listed(table.layout.sort_by)}",
            table.base.dotted,
            "its sort order was changed manually; filters on key ranges no longer skip files",
            create.order_base(table),
        )


def check_properties(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Check the properties that the protocol needs, and those with which the base describes itself."""
    needed = {name: value for name, value in create.CHANGE_DEFAULTS.items() if name.startswith(_METRICS_OF)}
    described = {name: table.side_properties()[name] for name in _DESCRIBES}
    for side, state, wanted, why in (
        (table.base, base, {"format-version": "3"}, "deletes use deletion vectors"),
        (table.change, change, {"format-version": "3"}, "changes are ordered by transaction number"),
        (table.change, change, needed, "compaction determines the pending commits from them"),
        (table.base, base, described, "a lost view is restored from the base's properties"),
    ):
        other = {name: value for name, value in wanted.items() if state.properties.get(name, "") != value}
        if other:
            yield _wrong_properties(table, side, other, why)
    if not create.keeps_statistics(change.properties):
        yield Finding(
            "properties",
            table.name.dotted,
            f"{table.change} has no column statistics for its files",
            table.change.dotted,
            "the property was set manually, or a change of the number of buckets was interrupted; a read of "
            "changes scans all of them",
            compact_full(table)
            if create.has_replaced_markers(change.properties)
            else create.keep_statistics(table),
        )


def compact_full(table: KeyedTable) -> str:
    """The command that continues a change of the number of buckets."""
    return f"dbt-arctic compact --kind full {table.name.schema}.{table.name.identifier}"


_METRICS_OF = "write.metadata.metrics.column."


def _wrong_properties(table: KeyedTable, side: Name, wanted: dict[str, str], why: str) -> Finding:
    listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in sorted(wanted.items()))
    return Finding(
        "properties",
        table.name.dotted,
        f"{side} does not have the value that dbt-arctic sets for {', '.join(sorted(wanted))}",
        side.dotted,
        f"it was changed manually or by an older dbt-arctic; {why}",
        f"ALTER TABLE {side.sql} SET TBLPROPERTIES ({listed})",
    )


def _listed(fields: tuple[str, ...]) -> str:
    return ", ".join(fields) or "nothing"
