"""Builds a new generation next to the old one, under a lease, and publishes it by replacing the view.

Rows that land in the old generation in the meantime are replayed before the switch. After the switch, the old
generation is checked once more.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from dbt_arctic.errors import ArcticError, CommitStateUnknown, ConcurrentRun, StatementError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import create
from dbt_arctic.keyed.layout import Layout, plan_layout, with_columns_of
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import stored_type
from dbt_arctic.keyed.table import (
    PROPERTY_OF,
    Column,
    Generation,
    KeyedTable,
    from_properties,
    is_keyed,
    side_generation,
    side_name,
)
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, encode_consumed
from dbt_arctic.keyed.write import fill_base, fill_tombstones, mark_buckets
from dbt_arctic.refresh.batch import make_batch
from dbt_arctic.refresh.config import KeyedConfig, match_columns
from dbt_arctic.refresh.partial_upsert import require_known_columns
from dbt_arctic.refresh.query_size import estimate_bytes
from dbt_arctic.refresh.table_properties import declared_properties
from dbt_arctic.store.context import Context
from dbt_arctic.store.format_version import require_format_version
from dbt_arctic.store.lease import (
    Lease,
    build_in_progress,
    build_in_progress_error,
    find_build,
    held_lease,
    new_lease,
    newest_named,
    was_interrupted,
)
from dbt_arctic.store.leftovers import is_abandoned_generation
from dbt_arctic.store.publish_view import ViewObservation, observe_view, publish_generation, require_unmoved
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.replay import RetiredGeneration, carry_over, pin_retired
from dbt_arctic.store.row_counts import rows_written
from dbt_arctic.store.secondary_indexes import drop_indexes
from dbt_arctic.store.state import find_keyed, load_base, with_current_buckets
from dbt_arctic.store.view_support import require_views

_ROWS_OF_A_TASK = 4_000_000
"""Rows per bucket above which a single task does not compare the keys of a bucket."""

_ONE_BUCKET_BYTES = 64 * 1024 * 1024
"""The estimated size of a result, uncompressed, up to which a new table has one bucket. Its files have about
half of that size or less."""


@dataclass(frozen=True)
class BuildStart:
    """The state of a table before the computation of its next generation began.

    :param retired: the generation to be replaced, and the position of its log at that time.
    """

    before: ViewObservation
    retired: RetiredGeneration | None


def begin(context: Context, name: Name) -> BuildStart:
    """Record the state of a table before the computation of its next generation."""
    before = observe_view(context, name)
    return BuildStart(before, pin_retired(context.catalog, find_keyed(context.catalog, name)))


def build_generation(
    context: Context,
    name: Name,
    config: KeyedConfig,
    sql: str,
    consumed: Mapping[str, Consumed],
    *,
    owner: str,
    comment: str = "",
    column_comments: Mapping[str, str] | None = None,
    beginning: BuildStart | None = None,
    like: KeyedTable | None = None,
    hidden: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
) -> tuple[KeyedTable, Outcome]:
    """Build the next generation and publish it: a first build or a full refresh.

    Nothing is visible before the view is replaced. After a crash, the next build ignores the tables that
    remain and drops them once they are certainly abandoned.

    Commits: create, order and fill the base table; create the change table and its first commit, which has
    only the bucket markers and carries the consumed versions; replace the view.

    :param beginning: the state of the table when the computation of the rows began, if that was earlier.
    :param like: a generation with the same columns, whose layout and types are kept regardless of the config.
    :param hidden: the columns of ``sql`` that are stored and not shown.
    :param notes: additional properties of the first commit.
    :raises ConfigError: the catalog has no views, or stores tables in an older format version.
    :raises ConcurrentRun: another build is in progress or was faster, or the table was changed in the
        meantime in a way that cannot be carried over. The view is unchanged.
    """
    require_views(context, name, config.model)
    schema = context.query_schema(sql)
    batch = make_batch(config, sql, schema, existing=None)
    require_known_columns(config, batch.columns)
    # The tables are listed before the view is read: a build that ends in between is then named by the view.
    found = _side_tables(context, name)
    before = observe_view(context, name) if beginning is None else beginning.before
    old = find_keyed(context.catalog, name)
    if (other := find_build(context, name, old)) is not None:
        raise build_in_progress_error(f"another run is building {name}", other, config.model)
    retired = pin_retired(context.catalog, old) if beginning is None else beginning.retired
    number = 1 + max([*found.values(), newest_named(old) if old else 0], default=0)
    types = like.types if like else {column.name: column.type for column in schema}
    comments = column_comments or {}
    layout = (
        _layout_like(context, like) if like else _plan_layout(context, config, sql, batch.key, types, old)
    )
    table = KeyedTable(
        name=name,
        generation=Generation(number, uuid.uuid4().hex, uuid.uuid4().hex, batch.sequence_by),
        key=batch.key,
        layout=layout,
        columns=tuple(
            Column(column, stored_type(types[column]), comments.get(column, "")) for column in batch.columns
        ),
        owner=owner,
        previous=old.generation if old else None,
        required=match_columns(config.required, list(types)),
        tombstone_retention_s=config.tombstone_retention_s,
        hidden=like.hidden if like else tuple(hidden),
        has_view=context.catalog.of(name).has_views(),
    )
    require_unmoved(context, table, before, config.model)
    lease = new_lease(context, config.lease_timeout_s)
    with ExitStack() as stack:
        stack.enter_context(held_lease(context, table, lease))
        _create_base(context, table, config, lease, comment)
        build = stack.enter_context(_dropped_unless_shown(context, table))
        require_format_version(context, table.base, config.model)
        context.run("order_base", create.order_base(table), table)
        fill = fill_base(table, batch, {PROPERTY_RUN: context.run_id}, context.cores)
        rows = rows_written(context, context.run("fill_base", fill, table), table.base)
        _require_one_commit(context, table, config.model)
        context.require_conflicts(table.base)
        context.run("create_change", create.create_change(table, context.now_ms()), table)
        properties = {PROPERTY_RUN: context.run_id, **(notes or {})}
        if consumed:
            properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
        in_place = rows is not None and rows <= _ROWS_OF_A_TASK * table.layout.buckets
        unique = batch.duplicates_in(table.base, in_place=in_place) if batch.is_checked_as_stored else "0L"
        context.run("first_commit", mark_buckets(table, properties, unique), table)
        # From here on, computed writes detect that the switch is near and do not report success concurrently.
        context.run("keep_statistics", create.keep_statistics(table), table)
        if batch.sequence_by and batch.can_delete:
            txn = context.new_txn()
            context.run(
                "fill_tombstones", fill_tombstones(table, batch, txn, {PROPERTY_RUN: context.run_id}), table
            )
        if retired is not None:
            carry_over(context, retired, table, config.model, refuse_computed=True)
        retired = _publish(context, table, comment, before, retired, config, build)
    if retired is not None:
        carry_over(context, retired, table, config.model)
    _drop_abandoned(context, table, found)
    without = "" if table.has_view else ", without a view"
    again = f", generation {number}" if number > 1 else ""
    return table, Outcome(f"BUILD{_of_rows(rows)}{again}{without}", rows, fill)


def _layout_like(context: Context, table: KeyedTable) -> Layout:
    return with_current_buckets(table, load_base(context.catalog, table)).layout


def _plan_layout(
    context: Context,
    config: KeyedConfig,
    sql: str,
    key: tuple[str, ...],
    types: Mapping[str, str],
    old: KeyedTable | None,
) -> Layout:
    """The layout as configured.

    If the number of buckets is not configured, that of the previous generation is kept. If its base table is
    gone, the build continues without it. A small table has one bucket, because each bucket costs a write a
    file, and a read a task.
    """
    buckets = config.buckets
    if buckets is None and old is not None:
        base = context.catalog.of(old.base).load_table(old.base.schema, old.base.identifier)
        buckets = None if base is None else with_current_buckets(old, base).layout.buckets or None
    if buckets is None and (config.small_data or _is_small(context, config, sql)):
        buckets = 1
    return plan_layout(
        where=config.model,
        key=key,
        types=types,
        buckets=buckets,
        bucket_by=match_columns([config.bucket_by], list(types))[0] if config.bucket_by else None,
        partition_by=with_columns_of(config.partition_by, list(types)),
        sort_by=match_columns(config.sort_by, list(types)),
    )


def _is_small(context: Context, config: KeyedConfig, sql: str) -> bool:
    """Whether a new table begins with few bytes.

    The number of buckets of a table with partitions does not change later, so it does not depend on the first
    rows.
    """
    if config.partition_by:
        return False
    size = estimate_bytes(context, sql)
    return size is not None and size <= _ONE_BUCKET_BYTES


def _create_base(
    context: Context, table: KeyedTable, config: KeyedConfig, lease: Lease, comment: str
) -> None:
    """Create the base table and thereby take the lease: of two concurrent builds, only one can create it."""
    properties = {
        **config.tblproperties,
        **declared_properties(config.tblproperties),
        **lease.to_properties(),
    }
    try:
        context.run("create_base", create.create_base(table, lease.since_ms, properties, comment), table)
    except StatementError as error:
        text = str(error)
        if "COLUMN_ALREADY_EXISTS" in text or "already exists" not in text.lower().replace("_", " "):
            raise
        raise ConcurrentRun(
            f"another run is building generation {table.generation.number} of {table.name}",
            where=config.model,
            why=f"{table.base} has just been created",
            fix="wait for the other run to end, then run again if this one is still needed",
        ) from error


def _require_one_commit(context: Context, table: KeyedTable, where: str) -> None:
    """Refuse a base table with duplicate commits: its keys would have two rows.

    In a change table they are harmless.
    """
    if len(load_base(context.catalog, table).history()) > 1:
        raise CommitStateUnknown(
            f"the rows of generation {table.generation.number} of {table.name} were committed twice",
            where=where,
            why="a component between Spark and the catalog got no answer and repeated the commit",
            fix="run again; the current table was not changed",
        )


@dataclass
class _Build:
    """A generation that is being built.

    :param shown: whether the view may already name the generation.
    """

    shown: bool = False


@contextmanager
def _dropped_unless_shown(context: Context, table: KeyedTable) -> Iterator[_Build]:
    """Drop the tables of a build that fails before it is visible, and with them its lease."""
    build = _Build()
    try:
        yield build
    except BaseException:
        if not build.shown:
            # The user must see the original failure. A later run drops tables that remain.
            with suppress(ArcticError):
                for side in (table.change, table.base):
                    context.run("drop_side_table", create.drop_table(side), table)
        raise


def _of_rows(rows: int | None) -> str:
    return f" {counted(rows, 'row')}" if rows is not None else ""


def _publish(
    context: Context,
    table: KeyedTable,
    comment: str,
    before: ViewObservation,
    retired: RetiredGeneration | None,
    config: KeyedConfig,
    build: _Build,
) -> RetiredGeneration | None:
    """Create the view under the name of the table.

    A table that has this name is renamed temporarily. If this run is interrupted in between, the first step
    of the next run restores it.
    """
    require_unmoved(context, table, before, config.model)
    in_the_way = (
        context.catalog.of(table.name).load_table(table.name.schema, table.name.identifier) is not None
    )
    aside = table.name.sibling(f"{table.name.identifier}__arctic_old_{context.new_txn()}")
    if in_the_way:
        context.run("set_aside", create.rename_table(table.name, aside), table)
    build.shown = True
    retired = publish_generation(context, table, comment, before, retired, where=config.model)
    if in_the_way:
        context.run("drop_aside", create.drop_table(aside), table)
    return retired


def drop_keyed(context: Context, table: KeyedTable) -> None:
    """Drop a keyed table. The view is dropped last: as long as it exists, the other tables can be found."""
    drop_side_tables(context, table)
    context.run("drop_view", create.drop_description(table), table)


def drop_side_tables(context: Context, table: KeyedTable) -> None:
    """Drop the indexes, and base and change table of every generation that the view named."""
    drop_indexes(context, table)
    for side in table.side_tables:
        context.run("drop_side_table", create.drop_table(side), table)


def _side_tables(context: Context, name: Name) -> dict[Name, int]:
    """The existing side tables of a keyed table with that name, with their generation."""
    found: dict[Name, int] = {}
    for entry in context.catalog.of(name).list_names(name.schema):
        number = side_generation(name, entry.name) if entry.kind == "table" else None
        if number is not None:
            found[name.sibling(entry.name)] = number
    return found


def _drop_abandoned(context: Context, table: KeyedTable, found: Mapping[Name, int]) -> None:
    """Drop generations that no view names: those before the previous one, and abandoned builds."""
    try:
        named = {
            side
            for entry in context.catalog.of(table.name).list_relations(table.name.schema)
            if entry.kind == "view" and is_keyed(entry.properties)
            for side in from_properties(table.name.sibling(entry.name), entry.properties, ()).side_tables
        }
    except ArcticError:
        # another table is damaged or was written by a newer version of dbt-arctic, so the tables it names are
        # unknown
        return
    superseded = table.previous.number if table.previous else 0
    states = {
        side: state
        for side in found
        if side not in named
        and (state := context.catalog.of(side).load_table(side.schema, side.identifier)) is not None
        and state.properties.get(PROPERTY_OF) == table.storage_name.dotted
    }
    for side, state in states.items():
        number = found[side]
        base, change = (
            states.get(side_name(table.storage_name, role, number)) for role in ("base", "change")
        )
        if number > superseded and build_in_progress(number, base, change, context.now_ms()) is not None:
            continue
        if was_interrupted(base, change) or is_abandoned_generation(
            number, superseded, state.properties, state.tags, context.now_ms()
        ):
            # The new generation is shown. A later run drops tables that remain.
            with suppress(ArcticError):
                context.run("drop_side_table", create.drop_table(side), table)
