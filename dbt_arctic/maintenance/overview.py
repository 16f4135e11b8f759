"""The state of the tables of some schemas: files, pending changes, lag and due compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeGuard

from dbt_arctic.auto.verification_log import Verified, recorded, unrepaired
from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.compaction.lag import Lag, Upstreams
from dbt_arctic.compaction.metrics import BucketMetrics
from dbt_arctic.compaction.plan import Operation, needs_buckets, plan_table
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.compaction.status import TableStatus, measure_buckets, measure_keyed, measure_plain
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable
from dbt_arctic.keyed.version import is_outside, of_relations
from dbt_arctic.maintenance.inventory import Inventory, take_inventory
from dbt_arctic.store.leftovers import aside_of, staging_of
from dbt_arctic.store.rejected_table import counts, last_rejected, rejected_name
from dbt_arctic.store.state import is_file_list

SettingsOf = Callable[[Name, bool], CompactionSettings]
"""The compaction settings of a table, by its name and whether it is keyed."""


@dataclass(frozen=True)
class TableOverview:
    """One table.

    :param buckets: the state by partition and bucket, if it was requested.
    :param problem: why the table cannot be read; then there is nothing else.
    :param verified: the last verification of a refresh of an automatic model; ``None`` if there is none.
    :param rejected: how many rows of its sources did not fit and are stored, by source; and were dropped.
    :param sources: what the table has read from outside the catalog, by dotted name: topics, databases, and
        file lists. ``lags`` does not have their lag.
    :param is_repaired: whether a full refresh has followed a verification that found a difference.
    """

    name: Name
    status: TableStatus | None = None
    buckets: Sequence[BucketMetrics] | None = None
    lags: tuple[Lag, ...] = ()
    due: tuple[Operation, ...] = ()
    problem: str = ""
    verified: Verified | None = None
    is_repaired: bool = False
    rejected: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @property
    def shown_verification(self) -> str:
        """The last verification for display; empty if there is none."""
        if self.verified is None:
            return ""
        return f"{self.verified}, repaired since" if self.is_repaired else str(self.verified)


def overview_of(
    catalog: CatalogReader,
    catalog_name: str,
    schemas: Sequence[str],
    now_ms: int,
    settings_of: SettingsOf,
    only: frozenset[Name] | None = None,
    by_bucket: bool = False,
    with_lags: bool = True,
) -> list[TableOverview]:
    """All keyed and plain tables, by name.

    :param only: the tables to look at; ``None`` for all.
    :param by_bucket: read the manifests of all tables, not only where needed to determine what is due.
    """
    upstreams = Upstreams(catalog)
    found: list[TableOverview] = []
    for schema in schemas:
        wanted = None if only is None else {name.identifier for name in only if name.schema == schema}
        inventory = take_inventory(catalog, catalog_name, schema, wanted)
        for name, table, base, change in _tables(inventory):
            if only is not None and name not in only:
                continue
            settings = settings_of(name, table is not None)
            try:
                seen = _look_at(catalog, name, table, base, change, now_ms, settings, by_bucket)
                consumed = consumed_versions((base if change is None else change).history())
                rejected = last_rejected(catalog, rejected_name(name), consumed)
                if rejected is not None:
                    seen = replace(seen, rejected=counts(catalog, rejected))
                outside = (
                    dotted
                    for dotted, one in of_relations(consumed).items()
                    if is_outside(one) or is_file_list(catalog, dotted)
                )
                seen = replace(seen, sources=tuple(outside))
            except ArcticError as error:
                found.append(TableOverview(name, problem=error.what))
                continue
            if with_lags:
                lags = upstreams.lags(base if change is None else change)
                seen = replace(seen, lags=tuple(one for one in lags if one.upstream not in seen.sources))
            found.append(seen)
        for identifier, problem in _broken(inventory):
            if only is None or inventory.name(identifier) in only:
                found.append(TableOverview(inventory.name(identifier), problem=problem))
    return sorted(found, key=lambda seen: seen.name)


def overview_of_tables(
    catalog: CatalogReader,
    tables: frozenset[Name],
    now_ms: int,
    settings_of: SettingsOf,
    *,
    by_bucket: bool = False,
    with_lags: bool = True,
) -> list[TableOverview]:
    """The given tables, which may be in several catalogs, by name. Missing ones are left out."""
    found: list[TableOverview] = []
    for catalog_name in sorted({name.catalog for name in tables}):
        only = frozenset(name for name in tables if name.catalog == catalog_name)
        schemas = sorted({name.schema for name in only})
        found += overview_of(catalog, catalog_name, schemas, now_ms, settings_of, only, by_bucket, with_lags)
    return found


def _look_at(
    catalog: CatalogReader,
    name: Name,
    table: KeyedTable | None,
    base: TableState,
    change: TableState | None,
    now_ms: int,
    settings: CompactionSettings,
    by_bucket: bool,
) -> TableOverview:
    target = settings.target_file_bytes
    if table is None or change is None:
        status = measure_plain(catalog, name, base, now_ms, target)
    else:
        status = measure_keyed(catalog, table, base, change, now_ms, settings.trim_grace_s, target)
    buckets = None
    if by_bucket or needs_buckets(status, settings.trigger):
        buckets = measure_buckets(catalog, status, base, change, target)
    seen = TableOverview(name, status, buckets, due=tuple(plan_table(status, buckets, settings)))
    verified = next(iter(recorded(change.properties)), None) if change is not None else None
    if change is None or verified is None:
        return seen
    is_repaired = verified.result == "different" and unrepaired(change.properties, change.history()) is None
    return replace(seen, verified=verified, is_repaired=is_repaired)


def _tables(
    inventory: Inventory,
) -> Iterator[tuple[Name, KeyedTable | None, TableState, TableState | None]]:
    for identifier, table in sorted(inventory.keyed.items()):
        base = inventory.tables.get(table.base.identifier)
        change = inventory.tables.get(table.change.identifier)
        if _is_whole(base) and _is_whole(change):
            yield inventory.name(identifier), table, base, change
    for identifier, state in sorted(inventory.tables.items()):
        ours = PROPERTY_OF in state.properties or aside_of(identifier) or staging_of(identifier)
        if not ours and state.current_snapshot_id is not None:
            yield inventory.name(identifier), None, state, None


def _is_whole(state: TableState | None) -> TypeGuard[TableState]:
    return state is not None and state.current_snapshot_id is not None


class _Broken(NamedTuple):
    """A table that cannot be read, and why."""

    identifier: str
    why: str


def _broken(inventory: Inventory) -> Iterator[_Broken]:
    """The tables that cannot be read, and why; ``dbt-arctic verify`` shows how to repair them."""
    damaged: Mapping[str, ArcticError] = {**inventory.damaged_views, **inventory.invalid_views}
    for identifier, error in damaged.items():
        yield _Broken(identifier, error.what)
    sides = {side.identifier for table in inventory.keyed.values() for side in table.side_tables}
    for identifier, unreadable in inventory.damaged_tables.items():
        if identifier not in sides:
            yield _Broken(identifier, unreadable.what)
    for identifier, table in inventory.keyed.items():
        for side in (table.base, table.change):
            if not _is_whole(inventory.tables.get(side.identifier)):
                yield _Broken(identifier, f"{side.identifier} is missing, empty or damaged")
                break
