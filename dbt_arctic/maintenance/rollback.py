"""``rollback``: commits an earlier version's rows as a new version, which downstream models pull as changes.

With ``sequence_by``, the earlier rows would lose against the current ones. In that case the next generation
is built from them, see ``rollback_build``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import DamagedKeyedTable, StatementError, VersionUnavailable
from dbt_arctic.keyed.changes_between import changed_keys
from dbt_arctic.keyed.idempotency_keys import appended_keys, carried_keys
from dbt_arctic.keyed.log import (
    PROPERTY_ROLLBACK,
    PROPERTY_RUN,
    consumed_versions,
    log_range,
    versions_to_carry,
)
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.rollback import insert_difference
from dbt_arctic.keyed.savepoint import consumed_at
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, Version, encode_consumed
from dbt_arctic.maintenance.finding import rebuild_command
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.maintenance.in_current_types import in_current_types
from dbt_arctic.maintenance.log_checks import check_commits
from dbt_arctic.maintenance.rollback_build import build_version
from dbt_arctic.maintenance.versions import resolve, state_at
from dbt_arctic.refresh.build import begin
from dbt_arctic.store.computed_write import Attempt, Purpose, write_computed
from dbt_arctic.store.context import Context
from dbt_arctic.store.publish_view import require_unmoved
from dbt_arctic.store.replay import replay_after_switch
from dbt_arctic.store.state import columns_at, current_version, load_change, load_keyed


@dataclass(frozen=True)
class RolledBack:
    """The result of a rollback.

    :param rows: the number of upserts and deletes; ``None`` if unknown.
    :param before: the version to which a rollback undoes this one.
    """

    table: str
    to: Version
    before: Version
    rows: int | None


def roll_back(context: Context, name: Name, text: str) -> RolledBack:
    """Make the merged rows equal to those of a version, in one commit with compare-and-swap.

    The commit also restores the version's consumed versions. The model's next run continues from them and so
    pulls again what is undone here.

    :raises VersionUnavailable: the version no longer exists, or it has a different key or order.
    :raises ConcurrentRun: other writers kept committing, or a full refresh is active or finished in the
        meantime.
    """
    table = load_keyed(context.catalog, name)
    if table.sequence_by is not None:
        return _build(context, name, text)
    to = resolve(context.catalog, table, text, name.dotted)

    def statement(attempt: Attempt) -> str:
        then_sql, now_sql = _states(context.catalog, table, attempt.change, to, attempt.pinned)
        then_sql = in_current_types(context, table, then_sql, to)
        properties = {PROPERTY_RUN: context.run_id, PROPERTY_ROLLBACK: to.token}
        consumed = _consumed(context.catalog, table, attempt.change, to)
        if consumed is not None:
            properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
        properties |= _appended(context.catalog, table, attempt.change, to)
        return insert_difference(table, now_sql, then_sql, attempt.txn, properties, attempt.branch)

    purpose = Purpose("rollback", name.dotted, "check dbt-arctic history and roll back again", records=True)
    try:
        written = write_computed(context, table, purpose, statement)
    except StatementError:
        state_at(context.catalog, table, to)  # raises if the version has expired in the meantime
        raise
    except DamagedKeyedTable as error:
        if to.generation == table.generation.number:
            raise
        raise VersionUnavailable(
            f"generation {to.generation} of {name} cannot be read",
            where=name.dotted,
            why=f"{error.what}; a full refresh keeps only the previous generation, for a limited time",
            fix="choose a version of this generation from dbt-arctic history",
        ) from error
    return RolledBack(name.dotted, to, written.attempt.pinned, written.rows)


def _build(context: Context, name: Name, text: str) -> RolledBack:
    """Roll back a table with ``sequence_by``.

    Later commits go to the new generation, ordered by their sequence.
    """
    beginning = begin(context, name)
    table = load_keyed(context.catalog, name)
    # This build removes the previous generation, so commits there that wait for their replay come first.
    replay_after_switch(context, table, name.dotted)
    try:
        to = resolve(context.catalog, table, text, name.dotted)
        _require_same_meaning(context.catalog, table, to)
        before = current_version(context.catalog, table)
        consumed = _consumed(context.catalog, table, load_change(context.catalog, table), to) or {}
        notes = _appended(context.catalog, table, load_change(context.catalog, table), to)
        rows = build_version(context, table, to, consumed, beginning, notes)
        return RolledBack(name.dotted, to, before, rows)
    except (DamagedKeyedTable, StatementError):
        # A concurrent full refresh may have dropped the version's generation.
        require_unmoved(context, table, beginning.before, name.dotted)
        raise


def _require_same_meaning(catalog: CatalogReader, table: KeyedTable, to: Version) -> None:
    then = generation_of(catalog, table, to.generation)
    was, now, what = then.key, table.key, "key"
    if was == now and table.sequence_by is not None:
        was, now, what = (then.sequence_by or "the order of arrival",), (table.sequence_by,), "order"
    if was != now:
        raise VersionUnavailable(
            f"{table.name} cannot be rolled back to version {to}",
            where=table.name.dotted,
            why=f"its {what} was {', '.join(was)} in that version and is {', '.join(now)} now",
            fix=f"restore that generation: dbt-arctic restore {table.name.schema}."
            f"{table.name.identifier} --generation {to.generation}",
        )


class _States(NamedTuple):
    """SQL of the rows of two versions."""

    then: str
    now: str


def _states(
    catalog: CatalogReader, table: KeyedTable, change: TableState, to: Version, now: Version
) -> _States:
    """SQL for the rows of the version and the current rows.

    Limited to keys that may differ if the log has them.
    """

    def states(keys: str | None = None) -> _States:
        return _States(state_at(catalog, table, to, keys), state_at(catalog, table, now, keys))

    if to.generation != now.generation:
        _require_same_meaning(catalog, table, to)
        return states()
    log = log_range(change.history(now.change_snapshot), to.change_snapshot)
    if log is None or _by_hand(catalog, table):
        return states()
    known = columns_at(catalog, table.change, (now.change_snapshot, *log.readable_at))
    return states(changed_keys(table, log, now, known))


def _by_hand(catalog: CatalogReader, table: KeyedTable) -> bool:
    """Whether another program wrote to the table, so that rows outside the log may differ."""
    return any(check_commits(table, *load_sides(catalog, table)))


def _appended(catalog: CatalogReader, table: KeyedTable, change: TableState, to: Version) -> dict[str, str]:
    """The property with the keys of the appended batches that are in the rows of the version.

    Empty if there are none, before and after. Later batches are undone, so they can be appended again.
    """
    _, then = load_sides(catalog, generation_of(catalog, table, to.generation))
    keys = appended_keys(then.history(to.change_snapshot), then.properties)
    now = appended_keys(change.history(), change.properties)
    return carried_keys(keys) if keys or now else {}


def _consumed(
    catalog: CatalogReader, table: KeyedTable, change: TableState, to: Version
) -> Mapping[str, Consumed] | None:
    """The consumed versions of the version, to be committed again; ``None`` if the table never pulled."""
    _, then = load_sides(catalog, generation_of(catalog, table, to.generation))
    history = then.history(to.change_snapshot)
    consumed, current = consumed_versions(history), consumed_versions(change.history())
    if not consumed and not current:
        return None
    if not consumed and history[-1].parent_id is not None:
        kept = consumed_at(then.properties, to.change_snapshot)
        if kept:
            return kept
        raise VersionUnavailable(
            f"the upstream versions of version {to} of {table.name} are no longer recorded",
            where=table.name.dotted,
            why="the commits that recorded them have expired",
            fix=f"choose a later version, or {rebuild_command(table.name)}",
        )
    return versions_to_carry(history)
