"""``expire``: removes the snapshots that ``expire_plan`` selects, and the files that only they use.

Properties of expiring commits that are still needed are first copied to a new commit, which fails if another
writer commits in between. The plan is recomputed right before that, because a model may have been rebuilt or
a build may have started.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed import erasure
from dbt_arctic.keyed.idempotency_keys import forget_keys, keys_to_note, note_keys, outdated_notes
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable
from dbt_arctic.keyed.write import empty_commit_sql
from dbt_arctic.maintenance.claims import Claims
from dbt_arctic.maintenance.expire_plan import (
    ExpirePlan,
    Hold,
    SidePlan,
    holds_of_keyed,
    newest_values,
    plan_keyed,
    plan_plain,
)
from dbt_arctic.store.branches import ATTEMPTS, branch_name, publish, staged
from dbt_arctic.store.context import Context
from dbt_arctic.store.side_table import refuse_side_table
from dbt_arctic.store.state import find_keyed, head, load_change


@dataclass(frozen=True)
class Expired:
    """The result of one run of ``expire``.

    :param snapshots: the number of expired snapshots.
    """

    plan: ExpirePlan
    snapshots: int


def plan_expiry(
    context: Context, name: Name, claims: Claims, before_ms: int, released: frozenset[str] = frozenset()
) -> ExpirePlan | None:
    """Plan the expiry of one table; ``None`` if it does not exist or has no rows.

    :param claims: looked up when the command started or later. Consumers only move on to newer versions, so
        older claims are safe.
    :raises ConfigError: it is the base or change table of a keyed table.
    """
    table = find_keyed(context.catalog, name)
    if table is not None:
        return plan_keyed(context, table, claims, before_ms, released)
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    if state is None or state.current_snapshot_id is None:
        return None
    refuse_side_table(name, state.properties)
    return plan_plain(name, state, claims, before_ms, released)


def find_holds(context: Context, name: Name, claims: Claims, before_ms: int) -> tuple[Hold, ...]:
    """What keeps more of a table than the policy does, found without a Spark job."""
    table = find_keyed(context.catalog, name)
    if table is not None:
        return holds_of_keyed(context, table, claims, before_ms)
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    return () if state is None else plan_plain(name, state, claims, before_ms).holds


def expire_versions(
    context: Context, name: Name, claims: Claims, before_ms: int, released: frozenset[str] = frozenset()
) -> Expired | None:
    """Expire the snapshots that neither the policy nor a consumer needs.

    :raises ConcurrentRun: other writers kept committing while properties were copied. Nothing was expired.
    """
    plan = plan_expiry(context, name, claims, before_ms, released)
    if plan is None:
        return None
    gone = 0
    # The base comes last, because each remaining change snapshot is read with a base of the same time.
    for side in reversed(plan.sides):
        gone += _expire(context, side, plan.table)
    return Expired(plan, gone)


def _expire(context: Context, side: SidePlan, table: KeyedTable | None) -> int:
    if not side.expired or side.keep_from is None:
        return 0
    there = side.expired + side.left
    if side.carry and table is not None:
        _carry_properties(context, table, side.carry)
        there += 1
    _note_keys(context, side, table)
    context.run("expire", erasure.expire_before(side.name, side.older_than_ms), table)
    state = context.catalog.of(side.name).load_table(side.name.schema, side.name.identifier)
    outdated = (
        []
        if state is None
        else outdated_notes(state.properties, [one.snapshot_id for one in state.snapshots])
    )
    if outdated:
        context.run("forget_keys", forget_keys(side.name, outdated), table)
    return there - (0 if state is None else len(state.snapshots))


def _note_keys(context: Context, side: SidePlan, table: KeyedTable | None) -> None:
    """Keep the idempotency keys of expiring commits with the snapshots that are kept."""
    state = context.catalog.of(side.name).load_table(side.name.schema, side.name.identifier)
    if state is None or side.keep_from is None:
        return
    # Iceberg keeps the ancestors of a head up to the first one before the time, and each head.
    kept = list(takewhile(lambda one: one.timestamp_ms >= side.older_than_ms, state.history()))
    named = [at for name, at in state.branches.items() if name != "main"]
    heads = [*([kept[-1].snapshot_id] if kept else []), *named, *state.tags.values()]
    notes = keys_to_note([state.history(one) for one in heads], state.properties)
    if notes:
        context.run("note_keys", note_keys(side.name, notes), table)


def _carry_properties(context: Context, table: KeyedTable, carried: dict[str, str]) -> None:
    """Copy properties to an empty commit, unless a newer commit has them by now."""
    columns = (*table.column_names, ACTION, OFFSET, TXN)
    for _ in range(ATTEMPTS):
        state = load_change(context.catalog, table)
        newest = {**carried, **newest_values(state.history(), carried)}
        branch = branch_name(context.new_txn())
        with staged(context, table.change, head(state), branch, table):
            properties = {PROPERTY_RUN: context.run_id, **newest}
            context.run("carry_on", empty_commit_sql(table.change, branch, columns, properties), table)
            if publish(context, table.change, branch, table, head(state)):
                return
    raise ConcurrentRun(
        f"the commit to {table.change} conflicted with other commits {ATTEMPTS} times",
        where=table.name.dotted,
        fix="nothing was expired; run expire again when fewer writers are active",
    )
