"""``verify``: checks all invariants of a schema's keyed tables by metadata, and on request also by rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import CatalogUnavailable, UnknownRelation
from dbt_arctic.keyed.table import TXN, KeyedTable
from dbt_arctic.maintenance.file_checks import SizeOf, check_files
from dbt_arctic.maintenance.finding import Finding, from_error, rebuild_command
from dbt_arctic.maintenance.index_checks import check_indexes
from dbt_arctic.maintenance.inventory import Inventory, roots
from dbt_arctic.maintenance.layout_checks import check_layout, check_properties
from dbt_arctic.maintenance.leftover_checks import check_leftovers, check_unreadable
from dbt_arctic.maintenance.log_checks import check_commits, check_erased, check_log, check_markers
from dbt_arctic.maintenance.row_checks import check_rows, check_statement
from dbt_arctic.maintenance.side_checks import check_previous, check_savepoints, check_sides, is_whole
from dbt_arctic.maintenance.view_checks import check_body, check_columns
from dbt_arctic.store.other_catalogs import catalog_in_text, is_of_others
from dbt_arctic.store.state import columns_at, head, version_of

Query = Callable[[str], Sequence[Sequence[Any]]]


def verify_schema(
    catalog: CatalogReader,
    inventory: Inventory,
    now_ms: int,
    size_of: SizeOf,
    query: Query | None = None,
    only: frozenset[str] | None = None,
) -> list[Finding]:
    """The findings of a schema or of some of its tables.

    :param query: runs a statement; without it, no rows are read.
    :param only: the identifiers of the tables to check; ``None`` for all.
    """
    found: list[Finding] = []
    for name, table in sorted(inventory.keyed.items()):
        if only is None or name in only:
            found += verify_table(catalog, inventory, table, size_of, query)
    others = [*check_unreadable(inventory), *check_leftovers(inventory, now_ms)]
    if only is None:
        return found + others
    wanted = {inventory.name(name).dotted for name in only}
    return found + [finding for finding in others if finding.table in wanted]


def require_known(inventory: Inventory, identifier: str) -> None:
    """Check that the schema has a keyed table of this name, or parts of one.

    :raises UnknownRelation: it has neither.
    """
    known = {
        *inventory.keyed,
        *inventory.invalid_views,
        *inventory.damaged_views,
        *roots(inventory),
    }
    if identifier not in known:
        name = inventory.name(identifier)
        raise UnknownRelation(
            f"{name} is not a keyed table",
            where=name.dotted,
            why="there is neither a view with dbt-arctic's properties nor a side table for that name",
            fix="correct the name, or add the schema: schema.table",
        )


def verify_table(
    catalog: CatalogReader, inventory: Inventory, table: KeyedTable, size_of: SizeOf, query: Query | None
) -> Iterator[Finding]:
    """The findings of one keyed table. If base or change table is missing, the other checks are skipped."""
    view = inventory.views[table.name.identifier]
    # In another catalog, each client may have its own name for it.
    theirs = catalog_in_text(table, view) if is_of_others(catalog, table.name) else None
    yield from check_body(table, view, theirs)
    yield from check_sides(table, inventory.tables, inventory.damaged_tables, theirs)
    yield from check_previous(table, inventory.tables)
    if not is_whole(table, inventory.tables):
        return
    base = inventory.tables[table.base.identifier]
    change = inventory.tables[table.change.identifier]
    yield from check_columns(table, base, change)
    yield from check_layout(table, base, change)
    yield from check_properties(table, base, change)
    yield from check_savepoints(table, base, change)
    yield from check_commits(table, base, change)
    unfinished = list(check_erased(table, base, change))
    yield from unfinished
    readable = True
    for state in (base, change):
        for finding in _files(catalog, table, state, size_of):
            readable = False
            yield finding
    if any(column.name == TXN for column in change.columns):
        try:
            files = catalog.of(table.change).data_files(change.schema, change.name, head(change), TXN)
        except CatalogUnavailable:
            return  # reported with its files
        if not unfinished:  # rows hidden by an erasure are neither pending nor merged
            yield from check_log(table, base, change, files)
        yield from check_markers(table, change, files)
    if query is not None and readable:
        version = version_of(table, base, change)
        known = {
            **columns_at(catalog, table.base, (version.base_snapshot,)),
            **columns_at(catalog, table.change, (version.change_snapshot,)),
        }
        yield from check_rows(table, query(check_statement(table, version, known)))
        yield from check_indexes(catalog, table, change, version, known, query)


def _files(
    catalog: CatalogReader, table: KeyedTable, state: TableState, size_of: SizeOf
) -> Iterator[Finding]:
    try:
        files = catalog.of(table.name).stored_files(state.schema, state.name, head(state))
    except CatalogUnavailable as error:
        fix = f"{error.fix} Without a backup: {rebuild_command(table.name)}"
        yield from_error("metadata", table.name, error, fix)
        return
    yield from check_files(table, table.name.sibling(state.name), files, size_of)
