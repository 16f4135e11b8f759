"""Are base and change table laid out as the view says, with the properties that the protocol needs? Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dbt_arctic.catalog.api import TableState
from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild
from dbt_arctic.store.state import laid_out

_DESCRIBES = ("arctic.key", "arctic.layout", "arctic.sequence-by")
"""What a base says of its generation. Owner and retention may change without it."""


def check_layout(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Base and change table meet bucket by bucket only where both are partitioned as the view says; into how
    many buckets, a full compaction may have changed since."""
    buckets = [laid_out(table, side).layout.buckets for side in (base, change)]
    if buckets[0] != buckets[1]:
        yield Finding(
            "layout",
            table.name.dotted,
            f"{table.base} has {buckets[0]} buckets, and {table.change} {buckets[1]}",
            table.name.dotted,
            "a full compaction that changes their number is at work, or was cut off; reads are right, but "
            "joins of merged rows shuffle",
            compact_full(table),
        )
    for side, state in ((table.base, base), (table.change, change)):
        if state.partitioning is not None and state.partitioning != laid_out(table, state).layout.fields:
            yield Finding(
                "layout",
                table.name.dotted,
                f"{side} is partitioned by {_listed(state.partitioning)}, and {table.name} by "
                f"{_listed(table.layout.fields)}",
                side.dotted,
                "its partition spec was changed by hand; reads are right, but joins of merged rows shuffle",
                rebuild(table.name),
            )
    order = base.sort_order
    if order is not None and order != table.layout.sort_by and not any("(" in column for column in order):
        yield Finding(
            "layout",
            table.name.dotted,
            f"{table.base} is sorted by {_listed(order)}, "
            f"and {table.name} by {_listed(table.layout.sort_by)}",
            table.base.dotted,
            "its sort order was changed by hand; a range of keys no longer skips files",
            create.order_base(table),
        )


def check_properties(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """The properties that the protocol needs, and what the base says of itself."""
    needed = {name: value for name, value in create.CHANGE_DEFAULTS.items() if name.startswith(_METRICS_OF)}
    described = {name: table.side_properties()[name] for name in _DESCRIBES}
    for side, state, wanted, why in (
        (table.base, base, {"format-version": "3"}, "deletes are kept in deletion vectors"),
        (table.change, change, {"format-version": "3"}, "changes are ordered by the number of their commit"),
        (table.change, change, needed, "compaction knows from them which commits are pending"),
        (table.base, base, described, "a view that was lost is made again from what the base says"),
    ):
        other = {name: value for name, value in wanted.items() if state.properties.get(name, "") != value}
        if other:
            yield _wrong_properties(table, side, other, why)
    if not create.keeps_statistics(change.properties):
        yield Finding(
            "properties",
            table.name.dotted,
            f"{table.change} keeps no statistics of its files",
            table.change.dotted,
            "the property was set by hand, or a change of the number of buckets was cut off; every read of "
            "changes reads all of them",
            compact_full(table)
            if create.was_marked_anew(change.properties)
            else create.keep_statistics(table),
        )


def compact_full(table: KeyedTable) -> str:
    """What goes on with a change of the number of buckets."""
    return f"dbt-arctic compact --kind full {table.name.schema}.{table.name.identifier}"


_METRICS_OF = "write.metadata.metrics.column."


def _wrong_properties(table: KeyedTable, side: Name, wanted: dict[str, str], why: str) -> Finding:
    listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in sorted(wanted.items()))
    return Finding(
        "properties",
        table.name.dotted,
        f"{side} does not have {', '.join(sorted(wanted))} as dbt-arctic sets it",
        side.dotted,
        f"it was changed by hand, or by an older dbt-arctic; {why}",
        f"ALTER TABLE {side.sql} SET TBLPROPERTIES ({listed})",
    )


def _listed(fields: tuple[str, ...]) -> str:
    return ", ".join(fields) or "nothing"
