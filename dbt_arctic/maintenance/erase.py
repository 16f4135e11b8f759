"""``erase``: removes every copy of some keys from a keyed table.

1. Delete the rows, first in the base, then in the change table, so that no reader sees an older row of a key.
2. Rewrite the data files that may contain them, and the manifests of these files.
3. One commit per side table copies what the earlier commits recorded: consumed versions, merged transactions
   and the log, so that downstream models can continue to pull. It is a compare-and-swap. The base's commit
   also makes every running compaction fail that has read the erased rows.
4. Expire every version before these commits, with the files that only they use.

If it is interrupted, the same command completes it: steps 1 to 3 find nothing to do or are repeated. No
version expires before they are done, so a condition still selects the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.errors import ConcurrentRun, ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import erasure
from dbt_arctic.keyed.branch import drop_branch
from dbt_arctic.keyed.erasure import CARRIED, HIDDEN, PROPERTY_ERASE, PROPERTY_SPLIT
from dbt_arctic.keyed.idempotency_keys import appended_keys, carried_keys
from dbt_arctic.keyed.log import (
    PROPERTY_LOG,
    PROPERTY_MERGED,
    PROPERTY_RUN,
    PROPERTY_TXN,
    carried_log,
    encode_log,
    encode_merged,
    landed_again,
    merged_transactions,
    rows_added,
    versions_to_carry,
)
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, encode_consumed
from dbt_arctic.maintenance.consumers import Consumer, can_continue
from dbt_arctic.maintenance.drop import drop_side
from dbt_arctic.maintenance.erase_plan import ErasePlan, Side, find_in_the_way, side_columns
from dbt_arctic.maintenance.expire_plan import oldest_of_kept
from dbt_arctic.store.branches import ATTEMPTS, publish, staged
from dbt_arctic.store.context import Context
from dbt_arctic.store.lease import refuse_during_build
from dbt_arctic.store.publish_view import forget_previous
from dbt_arctic.store.replay import replay_after_switch
from dbt_arctic.store.state import head, load_base, load_change, load_keyed

_LONGEST_LOG = 1000
"""The most commits for which the log is carried on, because they are stored in the table's metadata."""
_KEEPS_ROWS = ("append", "replace")


@dataclass(frozen=True)
class SideErased:
    """The result for one side table.

    :param rows: the number of rows deleted by this run.
    :param versions: the number of snapshots removed.
    :param files: the data and delete files removed.
    :param left: older snapshots that still exist because something keeps them.
    """

    name: Name
    rows: int
    versions: int
    files: tuple[str, ...]
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class ErasureResult:
    """The result of one run of ``erase``.

    :param left: versions and files that should have been removed but still exist.
    :param going_on: consumers whose next pull continues from the log.
    :param to_rebuild: consumers whose next pull needs a full refresh.
    """

    plan: ErasePlan
    sides: tuple[SideErased, ...]
    removed: tuple[str, ...]
    left: tuple[str, ...]
    going_on: tuple[Consumer, ...]
    to_rebuild: tuple[Consumer, ...]


def erase_keys(
    context: Context,
    plan: ErasePlan,
    force: bool = False,
    is_there: Callable[[str], bool] = lambda path: False,
) -> ErasureResult:
    """Run an erasure.

    :param force: also remove savepoints and everything else that keeps copies.
    :param is_there: whether a file still exists; true only if that is known.
    :raises ConfigError: something keeps copies and ``force`` is not set. Nothing was changed.
    :raises ConcurrentRun: the keys were written again or the table was rebuilt in the meantime; or rows that
        were committed during a full refresh cannot be replayed.
    """
    table = plan.table
    if not plan.keys:
        return ErasureResult(plan, (), (), (), (), ())
    _refuse(plan, force)
    _replay_left(context, plan)
    _remove_copies(context, plan)
    before = {side.name: _files(context, side.name) for side in plan.sides}
    starts = {side.name: _start(context, side.generation) for side in plan.sides}
    hidden = dict.fromkeys((side.name for side in plan.sides), 0)
    for _ in range(ATTEMPTS):
        for side in plan.sides:
            hidden[side.name] += _hide(context, plan, side)
        for side in plan.sides:
            _rewrite(context, plan, side)
        _replay_left(context, plan)
        fences = {side.name: _carry_on(context, side, starts[side.name]) for side in plan.sides}
        # A compaction that committed before the base's commit may have merged an erased row.
        if not any(_count(context, plan, side) for side in plan.sides):
            break
    else:
        raise ConcurrentRun(
            f"the keys were written to {table.name} again during the erasure",
            where=table.name.dotted,
            why="another run wrote them from the model's upstreams",
            fix="remove them there, then run erase again; until then older versions still contain them",
        )
    _require_generation(context, table)
    sides = tuple(
        _expire(context, side, fences[side.name], hidden[side.name], before[side.name]) for side in plan.sides
    )
    consumers = {consumer: can_continue(context.catalog, table, consumer) for consumer in plan.consumers}
    return ErasureResult(
        plan=plan,
        sides=sides,
        removed=tuple(f"{item.kind} {item.what}" for item in plan.in_the_way),
        left=(
            *(f"version {version} of {side.name.identifier}" for side in sides for version in side.left),
            *(path for side in sides for path in side.files if is_there(path)),
        ),
        going_on=tuple(consumer for consumer, on in consumers.items() if on),
        to_rebuild=tuple(consumer for consumer, on in consumers.items() if not on),
    )


def _refuse(plan: ErasePlan, force: bool) -> None:
    if plan.in_the_way and not force:
        items = [f"{item.kind} {item.what} ({item.why})" for item in plan.in_the_way]
        raise ConfigError(
            f"{counted(len(items), 'other place')} with rows of {plan.table.name}: {'; '.join(items)}",
            where=plan.table.name.dotted,
            why="erasing a key requires that they are removed too; nothing was changed",
            fix="wait for active runs to end, then use --force to remove the rest",
        )


def _remove_copies(context: Context, plan: ErasePlan) -> None:
    """Remove what the user agreed to, if it still keeps copies.

    In the meantime, a full refresh may have published a generation, and a run may have published its branch.

    :raises ConcurrentRun: the table is being rebuilt, or was rebuilt.
    """
    if not plan.in_the_way:
        return
    refuse_during_build(context, plan.table, "keys cannot be erased", plan.table.name.dotted)
    _require_generation(context, plan.table)
    forgotten = False
    still = {(item.kind, item.what) for item in find_in_the_way(context, plan.table)}
    for item in plan.in_the_way:
        if (item.kind, item.what) not in still:
            continue
        for step in item.steps:
            context.run(step.name, step.sql, plan.table)
        if item.forget and not forgotten:  # before the first of its two tables is dropped
            forget_previous(context, plan.table)
            forgotten = True
        for side in item.sides:
            drop_side(context, plan.table.name.catalog, side, plan.table)


def _replay_left(context: Context, plan: ErasePlan) -> None:
    """Replay commits to the previous generation.

    They are recorded in commits that are about to expire.

    :raises ConcurrentRun: they cannot be replayed, and the user must decide before the erasure.
    """
    if any(side.generation.generation == plan.table.previous for side in plan.sides):
        replay_after_switch(context, plan.table, plan.table.name.dotted)


def _require_generation(context: Context, table: KeyedTable) -> None:
    if load_keyed(context.catalog, table.name).generation != table.generation:
        raise ConcurrentRun(
            f"{table.name} got a new generation during the erasure",
            where=table.name.dotted,
            why="a full refresh finished; its rows come from the model's upstreams",
            fix="erase again",
        )


def _count(context: Context, plan: ErasePlan, side: Side) -> int:
    ((rows,),) = context.query(erasure.count_rows(side.name, plan.condition, side.is_change))
    return int(rows)


def _hide(context: Context, plan: ErasePlan, side: Side) -> int:
    rows = _count(context, plan, side)
    if rows:
        statement = erasure.hide_rows(side.name, plan.condition, plan.table.key[0], side.is_change)
        try:
            context.run("mark", erasure.mark_commits(HIDDEN), plan.table)
            context.run("hide_rows", statement, plan.table)
        finally:
            # If it stayed set, the session would commit the property with every later write.
            context.run("reset_mark", erasure.reset_mark(), plan.table)
    return rows


def _rewrite(context: Context, plan: ErasePlan, side: Side) -> None:
    context.run("rewrite_files", erasure.rewrite_files(side.name, plan.condition, side.is_change), plan.table)
    _join(context, plan, side)  # left by an interrupted erasure
    for spec_id, manifests, size in context.query(erasure.list_manifests(side.name)):
        if int(manifests) == 1:
            properties = _state(context, side).properties
            context.run(
                "split_manifests", erasure.split_manifests(side.name, int(size), properties), plan.table
            )
        context.run("rewrite_manifests", erasure.rewrite_manifests(side.name, int(spec_id)), plan.table)
        _join(context, plan, side)  # before the next partition spec, whose manifests may be many and large


def _join(context: Context, plan: ErasePlan, side: Side) -> None:
    before = _state(context, side).properties.get(PROPERTY_SPLIT)
    if before is not None:
        for statement in erasure.join_manifests(side.name, before):
            context.run("join_manifests", statement, plan.table)


def _carry_on(context: Context, side: Side, start: _Start) -> int:
    """Make the commit before which everything expires. Returns its snapshot."""
    for _ in range(ATTEMPTS):
        state = _state(context, side)
        carried = _of_change(state, start) if side.is_change else _of_base(context, side.generation, state)
        if erasure.BRANCH in state.branches:
            context.run("drop_branch", drop_branch(side.name, erasure.BRANCH), side.generation)
        with staged(context, side.name, head(state), erasure.BRANCH, side.generation):
            properties = {PROPERTY_RUN: context.run_id, **carried}
            statement = erasure.empty_commit_sql(side.name, side_columns(side), properties)
            context.run("carry_on", statement, side.generation)
            made = _carried(_state(context, side))
            if made is not None and publish(context, side.name, erasure.BRANCH, side.generation, head(state)):
                return made
    raise ConcurrentRun(
        f"the commit to {side.name} conflicted with other commits {ATTEMPTS} times",
        where=side.name.dotted,
        fix="run erase again when fewer writers are active",
    )


def _carried(state: TableState) -> int | None:
    """The commit on the branch; a concurrent erasure may have created the branch without it."""
    at = state.branches.get(erasure.BRANCH)
    one = next((one for one in state.snapshots if one.snapshot_id == at), None)
    return at if one is not None and one.summary.get(PROPERTY_ERASE) == CARRIED else None


def _state(context: Context, side: Side) -> TableState:
    return (load_change if side.is_change else load_base)(context.catalog, side.generation)


@dataclass(frozen=True)
class _Start:
    """The log before any row was deleted.

    :param head: the change table's snapshot at that time.
    :param whole: the transactions with all their rows.
    """

    head: int
    whole: frozenset[int]


def _start(context: Context, table: KeyedTable) -> _Start:
    """Rows that an interrupted erasure deleted count as present."""
    state = load_change(context.catalog, table)
    history = state.history()
    kept = {commit.snapshot_id for commit in history}
    before_hidden = [head(state)]
    only_erased = True
    for commit in history:
        if commit.summary.get(PROPERTY_ERASE) == HIDDEN:
            if commit.parent_id in kept:
                before_hidden.append(commit.parent_id)
        elif commit.operation not in _KEEPS_ROWS:
            only_erased = False
            break
    # What was written between two erasures, of which the first was interrupted, is complete before the
    # second.
    counted = {
        (int(txn), int(rows))
        for at in before_hidden
        for txn, rows in context.query(erasure.count_by_transaction(table.change, at))
    }
    whole = set()
    for commit in history:
        if PROPERTY_TXN in commit.summary:
            txn, rows = int(commit.summary[PROPERTY_TXN]), rows_added(commit)
            if not rows or (txn, rows) in counted:
                whole.add(txn)
    if only_erased:  # otherwise some of it may have been trimmed
        whole |= {txn for _, txn in carried_log(history)[:-1]}
    return _Start(head(state), frozenset(whole))


def _of_change(state: TableState, start: _Start) -> dict[str, str]:
    """The properties that the commit to a change table carries on."""
    history = state.history()
    whole = set(start.whole)
    for commit in history:
        if commit.snapshot_id == start.head:
            break
        if PROPERTY_TXN in commit.summary:
            whole.add(int(commit.summary[PROPERTY_TXN]))
        if commit.operation not in _KEEPS_ROWS and commit.summary.get(PROPERTY_ERASE) != HIDDEN:
            whole = set()  # a compaction has trimmed in the meantime
            break
    properties = {PROPERTY_LOG: encode_log(_log(history, whole))}
    consumed = versions_to_carry(history, are_its_rows=False)
    if consumed:
        properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
    keys = appended_keys(history, state.properties)
    return {**properties, **carried_keys(keys)} if keys else properties


def _log(history: Sequence[Snapshot], whole: Set[int]) -> list[tuple[int, int]]:
    """The commits, newest first, up to the first whose rows are no longer in the change table."""
    commits = [(commit.snapshot_id, int(commit.summary.get(PROPERTY_TXN, "0"))) for commit in history]
    found: list[tuple[int, int]] = []
    for snapshot_id, txn in [*commits, *carried_log(history)][:_LONGEST_LOG]:
        found.append((snapshot_id, txn))
        if txn and txn not in whole:
            break
    return found


def _of_base(context: Context, table: KeyedTable, state: TableState) -> dict[str, str]:
    """The properties that the commit to a base carries on; without them, changes would be merged again."""
    change = load_change(context.catalog, table)
    rows = context.query(erasure.count_by_transaction(table.change, head(change)))
    pending = {int(txn) for txn, _ in rows}
    bases = state.history()
    merged = merged_transactions(bases) - landed_again(change.history(), bases)
    return {PROPERTY_MERGED: encode_merged(merged & pending)}


def _expire(context: Context, side: Side, fence: int, hidden: int, before: frozenset[str]) -> SideErased:
    state = _state(context, side)
    kept = next(snapshot for snapshot in state.snapshots if snapshot.snapshot_id == fence)
    context.run(
        "expire", erasure.expire_before(side.name, oldest_of_kept(state.history(), kept)), side.generation
    )
    snapshots = _state(context, side).snapshots
    older = [one.snapshot_id for one in snapshots if one.sequence_number < kept.sequence_number]
    return SideErased(
        name=side.name,
        rows=hidden,
        versions=len(state.snapshots) - len(snapshots),
        files=tuple(sorted(before - _files(context, side.name))),
        left=tuple(older),
    )


def _files(context: Context, side: Name) -> frozenset[str]:
    return frozenset(str(row[0]) for row in context.query(erasure.list_files(side)))
