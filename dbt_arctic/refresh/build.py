"""Builds a new generation beside the old one, under a lease, and publishes it by replacing the view.

What lands in the old generation meanwhile is replayed before the switch, and looked for once more after it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from dbt_arctic.errors import ArcticError, CommitStateUnknown, ConcurrentRun, StatementError
from dbt_arctic.keyed import create
from dbt_arctic.keyed.layout import Layout, plan_layout
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
from dbt_arctic.refresh.table_properties import given
from dbt_arctic.store.context import Context, Outcome
from dbt_arctic.store.lease import (
    Lease,
    build_at_work,
    find_build,
    held,
    newest_named,
    take,
    under_way,
    was_cut_off,
)
from dbt_arctic.store.leftovers import is_abandoned_generation
from dbt_arctic.store.replay import Retired, carry_over, pin_retired
from dbt_arctic.store.row_counts import rows_written
from dbt_arctic.store.state import find_keyed, laid_out, load_base
from dbt_arctic.store.view_switch import Seen, look, require_unmoved, show

_ROWS_OF_A_TASK = 4_000_000
"""Of a bucket with more, keys are not compared by one task."""


@dataclass(frozen=True)
class Beginning:
    """A table as it was before anything of its next generation was computed.

    :param retired: what is to be replaced, and how far its log had come by then.
    """

    before: Seen
    retired: Retired | None


def begin(context: Context, name: Name) -> Beginning:
    before = look(context, name)
    return Beginning(before, pin_retired(context.catalog, find_keyed(context.catalog, name)))


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
    beginning: Beginning | None = None,
    like: KeyedTable | None = None,
    hidden: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
) -> tuple[KeyedTable, Outcome]:
    """First build and full refresh: the next generation, then the view.

    :param beginning: where the rows were computed before: the table as it was then.
    :param like: a generation with the same columns, whose layout and types are kept whatever the config says.
    :param hidden: the columns of ``sql`` that are stored and not shown.
    :param notes: what the first commit is to say besides.

    Until the view is replaced nobody sees anything of it; a crash leaves tables that the next
    build skips and removes once they are certainly abandoned.

    :raises ConcurrentRun: another build is at work, was faster, or somebody changed the table meanwhile in a
        way that cannot be carried over. What was shown still is.

    Commits: create, order and fill the base; create the change table and its first commit, which
    has no change but the bucket markers and carries the consumed versions; replace the view.
    """
    schema = context.query_schema(sql)
    batch = make_batch(config, sql, schema, existing=None)
    # The tables before the view: a build that ends in between is then one that the view names.
    found = _side_tables(context, name)
    before = look(context, name) if beginning is None else beginning.before
    old = find_keyed(context.catalog, name)
    if (other := find_build(context, name, old)) is not None:
        raise under_way(f"another run is building {name}", other, config.model)
    retired = pin_retired(context.catalog, old) if beginning is None else beginning.retired
    number = 1 + max([*found.values(), newest_named(old) if old else 0], default=0)
    types = like.types if like else {column.name: column.type for column in schema}
    comments = column_comments or {}
    layout = _layout_like(context, like) if like else _plan_layout(context, config, batch.key, types, old)
    table = KeyedTable(
        name=name,
        generation=Generation(number, uuid.uuid4().hex, uuid.uuid4().hex, batch.sequence_by),
        key=batch.key,
        layout=layout,
        columns=tuple(
            # A view tells the stored type of what it shows.
            Column(
                column,
                stored_type(types[column]) if column in hidden else types[column],
                comments.get(column, ""),
            )
            for column in batch.columns
        ),
        owner=owner,
        previous=old.generation if old else None,
        required=match_columns(config.required, list(types)),
        tombstone_retention_s=config.tombstone_retention_s,
        hidden=like.hidden if like else tuple(hidden),
    )
    require_unmoved(context, table, before, config.model)
    lease = take(context, config.lease_timeout_s)
    _create_base(context, table, config, lease, comment)
    with held(context, table, lease), _dropped_unless_shown(context, table) as build:
        context.run("order_base", create.order_base(table), table)
        fill = fill_base(table, batch, {PROPERTY_RUN: context.run_id})
        rows = rows_written(context, context.run("fill_base", fill, table), table.base)
        _require_one_commit(context, table, config.model)
        context.run("create_change", create.create_change(table, context.now_ms()), table)
        properties = {PROPERTY_RUN: context.run_id, **(notes or {})}
        if consumed:
            properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
        in_place = 0 <= rows <= _ROWS_OF_A_TASK * table.layout.buckets
        unique = batch.duplicates_in(table.base, in_place=in_place) if batch.is_checked_as_stored else "0L"
        context.run("first_commit", mark_buckets(table, properties, unique), table)
        # From here on computed writes know that the switch is near, and do not report success beside it.
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
    return table, Outcome(f"BUILD generation {number}{_in_brackets(rows)}", rows, fill)


def _layout_like(context: Context, table: KeyedTable) -> Layout:
    return laid_out(table, load_base(context.catalog, table)).layout


def _plan_layout(
    context: Context,
    config: KeyedConfig,
    key: tuple[str, ...],
    types: Mapping[str, str],
    old: KeyedTable | None,
) -> Layout:
    """As the config says. Where it leaves the number of buckets open, the generation before has grown into
    one; its base may be gone, which is no reason not to build."""
    buckets = config.buckets
    if buckets is None and old is not None:
        base = context.catalog.load_table(old.base.schema, old.base.identifier)
        buckets = None if base is None else laid_out(old, base).layout.buckets or None
    return plan_layout(
        where=config.model,
        key=key,
        types=types,
        buckets=buckets,
        bucket_by=match_columns([config.bucket_by], list(types))[0] if config.bucket_by else None,
        partition_by=config.partition_by,
        sort_by=match_columns(config.sort_by, list(types)),
    )


def _create_base(
    context: Context, table: KeyedTable, config: KeyedConfig, lease: Lease, comment: str
) -> None:
    """Take the lease: of two builds that come this far, one creates the table."""
    properties = {**config.tblproperties, **given(config.tblproperties), **lease.to_properties()}
    try:
        context.run("create_base", create.create_base(table, lease.since_ms, properties, comment), table)
    except StatementError as error:
        told = str(error)
        if "COLUMN_ALREADY_EXISTS" in told or "already exists" not in told.lower().replace("_", " "):
            raise
        raise ConcurrentRun(
            f"another run is building generation {table.generation.number} of {table.name}",
            where=config.model,
            why=f"{table.base} has just been created",
            fix="wait for the other run to end, then run again if this one is still needed",
        ) from error


def _require_one_commit(context: Context, table: KeyedTable, where: str) -> None:
    """Rows that came twice would be two rows of each key. In a change table that does no harm: one wins."""
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

    :param shown: whether the view may name the generation by now.
    """

    shown: bool = False


@contextmanager
def _dropped_unless_shown(context: Context, table: KeyedTable) -> Iterator[_Build]:
    """Let go of a build that fails before anybody may see it, and of its lease with it."""
    build = _Build()
    try:
        yield build
    except BaseException:
        if not build.shown:
            # The failure itself is what a user has to see; what stays is dropped by a later run.
            with suppress(ArcticError):
                for side in (table.change, table.base):
                    context.run("drop_side_table", create.drop_table(side), table)
        raise


def _in_brackets(rows: int) -> str:
    return f" ({rows} rows)" if rows >= 0 else ""


def _publish(
    context: Context,
    table: KeyedTable,
    comment: str,
    before: Seen,
    retired: Retired | None,
    config: KeyedConfig,
    build: _Build,
) -> Retired | None:
    """Give the name to the view. A table that has it is set aside for a moment, and put back by the
    next run's first step if this one is cut off in between.
    """
    require_unmoved(context, table, before, config.model)
    in_the_way = context.catalog.load_table(table.name.schema, table.name.identifier) is not None
    aside = table.name.sibling(f"{table.name.identifier}__arctic_old_{context.new_txn()}")
    if in_the_way:
        context.run("set_aside", create.rename_table(table.name, aside), table)
    build.shown = True
    retired = show(context, table, comment, before, retired, where=config.model)
    if in_the_way:
        context.run("drop_aside", create.drop_table(aside), table)
    return retired


def drop_keyed(context: Context, table: KeyedTable) -> None:
    """Drop a keyed table. The view goes last: as long as it is there, the rest can be found."""
    drop_side_tables(context, table)
    context.run("drop_view", create.drop_view(table.name), table)


def drop_side_tables(context: Context, table: KeyedTable) -> None:
    """Drop base and change table of every generation that the view named."""
    for side in table.side_tables:
        context.run("drop_side_table", create.drop_table(side), table)


def _side_tables(context: Context, name: Name) -> dict[Name, int]:
    """Existing tables that were made for a keyed table of that name, with their generation."""
    found: dict[Name, int] = {}
    for entry in context.catalog.list_relations(name.schema):
        number = side_generation(name, entry.name) if entry.kind == "table" else None
        if number is not None:
            found[name.sibling(entry.name)] = number
    return found


def _drop_abandoned(context: Context, table: KeyedTable, found: Mapping[Name, int]) -> None:
    """Drop generations that no view names: those before the previous one, and abandoned builds."""
    try:
        named = {
            side
            for entry in context.catalog.list_relations(table.name.schema)
            if entry.kind == "view" and is_keyed(entry.properties)
            for side in from_properties(table.name.sibling(entry.name), entry.properties, ()).side_tables
        }
    except ArcticError:
        return  # another table is damaged, or of a newer version of dbt-arctic: nobody knows what it names
    superseded = table.previous.number if table.previous else 0
    states = {
        side: state
        for side in found
        if side not in named
        and (state := context.catalog.load_table(side.schema, side.identifier)) is not None
        and state.properties.get(PROPERTY_OF) == table.made_as.dotted
    }
    for side, state in states.items():
        number = found[side]
        base, change = (states.get(side_name(table.made_as, role, number)) for role in ("base", "change"))
        if number > superseded and build_at_work(number, base, change, context.now_ms()) is not None:
            continue
        if was_cut_off(base, change) or is_abandoned_generation(
            number, superseded, state.properties, state.tags, context.now_ms()
        ):
            # The new generation is shown; what stays is dropped by a later run.
            with suppress(ArcticError):
                context.run("drop_side_table", create.drop_table(side), table)
