"""Replays rows that land in a generation while another one replaces it, so that no row is lost.

Any party that detects missing rows may replay them: the build or undo that performs the switch, the late
writer, or the next writer. A replay is a compare-and-swap write that records what it copies, so the same rows
are never copied twice. It always copies all missing rows, in the order in which they landed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableReader, TableState, ViewState
from dbt_arctic.errors import ConcurrentRun, ConstraintBroken, NoSequence, StatementError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.assignment import unstorable
from dbt_arctic.keyed.log import PROPERTY_RUN, PROPERTY_TXN, LogRange, find_transaction, log_range
from dbt_arctic.keyed.replay import (
    PROPERTY_SETTLED,
    MissingCommits,
    find_late,
    insert_replay,
    replayed,
    written_directly,
)
from dbt_arctic.keyed.table import PROPERTY_ID, SYSTEM_COLUMNS, Generation, KeyedTable, stored_key
from dbt_arctic.store.branches import ATTEMPTS, branch_name, publish, staged
from dbt_arctic.store.context import Context
from dbt_arctic.store.overtaken_build import overtaken_by
from dbt_arctic.store.state import (
    columns_at,
    head,
    keyed_from_view,
    load_change,
    other_key_type,
    to_columns,
)

PROPERTY_SWITCH = "arctic.switch"
"""Property of the view: a unique number of the last switch from one generation to another."""
PROPERTY_RETIRED = "arctic.retired"
"""Property of the view: JSON that describes what the last switch retired, see ``RetiredGeneration``."""


@dataclass(frozen=True)
class RetiredGeneration:
    """A generation that another one replaces.

    :param since: the head of its change table when the new generation was started. Earlier rows are not
        missing.
    :param target_head: the head of the new generation's change table when it was published. Rows written
        there since are newer than any replay. ``None`` before it is published.
    :param only: the one transaction to copy, if it is unknown what happened to the others.
    """

    table: KeyedTable
    since: int
    target_head: int | None = None
    only: int | None = None

    def to_property(self) -> str:
        """The value of the view property ``PROPERTY_RETIRED``."""
        return json.dumps([self.table.generation.change_id, self.since, self.target_head])


def pin_retired(catalog: CatalogReader, table: KeyedTable | None) -> RetiredGeneration | None:
    """The generation that is currently shown and about to be replaced.

    ``None`` if there is none that rows could land in.
    """
    state = None if table is None else _own(catalog, table)
    return None if table is None or state is None else RetiredGeneration(table, head(state))


def retired_by(catalog: TableReader, table: KeyedTable, view: ViewState) -> RetiredGeneration | None:
    """The generation that the shown one has replaced, if it still exists."""
    text = view.properties.get(PROPERTY_RETIRED)
    if not text or table.previous is None:
        return None
    change_id, since, target_head = json.loads(text)
    if change_id != table.previous.change_id:
        return None
    found = as_generation(catalog, table, table.previous)
    return None if _own(catalog, found) is None else RetiredGeneration(found, since, target_head)


def as_generation(catalog: TableReader, table: KeyedTable, generation: Generation) -> KeyedTable:
    """Another generation of a table, with its own key and the columns of the table."""
    found = replace(table, generation=generation, previous=None)
    base = catalog.of(found.base).load_table(found.base.schema, found.base.identifier)
    key = stored_key(base.properties) if base is not None else None
    return found if key is None else replace(found, key=key)


def carry_over(
    context: Context,
    retired: RetiredGeneration,
    table: KeyedTable,
    where: str,
    *,
    refuse_computed: bool = False,
) -> int | None:
    """Replay the rows that landed in a retired generation and are missing in ``table``.

    Returns the transaction, if any.

    :param refuse_computed: whether commits that cannot be replayed are an error. Otherwise their writers
        handle them: they do not report success while a build is about to be published.
    :raises ConcurrentRun: a commit cannot be carried over.
    """
    for _ in range(ATTEMPTS):
        state = _own(context.catalog, retired.table)
        if state is None:
            return None  # The table was dropped because no run used it any more.
        log = _log(state, retired.since)
        if log is None:
            raise _cannot(retired, table, where, "it was rolled back manually since then")
        target = load_change(context.catalog, table)
        late = find_late(_since(state, retired.since), target.history())
        if retired.only is not None:
            late = MissingCommits(tuple(txn for txn in late.replay if txn == retired.only))
        if late.computed and refuse_computed:
            raise _computed(retired, table, late, where)
        if not late.replay:
            return None
        if {name.lower() for name in retired.table.key} != {name.lower() for name in table.key}:
            raise _cannot(retired, table, where, "the key changed, and a delete has only a key")
        if column := other_key_type(table, {column.name: column.type for column in state.columns}):
            what = f"the type of {column} changed, and two old keys may now be equal"
            raise _cannot(retired, table, where, what)
        stored = [column for column in state.columns if column.name not in SYSTEM_COLUMNS]
        written = ((column.name, column.type) for column in stored)
        if lossy := unstorable(written, table.types.items(), fill=True):
            raise _cannot(retired, table, where, "; ".join(one.describe() for one in lossy))
        txn = _replay(context, retired.table, state, log, late, table, target, retired.target_head)
        if txn is not None:
            if refuse_computed:
                _refuse_computed(context, retired, table, where)
            return txn
    raise ConcurrentRun(
        f"the commit to {table.name} conflicted with other commits {ATTEMPTS} times",
        where=where,
        why=f"commits to {retired.table.change} since the start of a full refresh must be replayed",
        fix="run again when fewer writers are active; the next run replays them",
    )


def _refuse_computed(context: Context, retired: RetiredGeneration, table: KeyedTable, where: str) -> None:
    """Refuse computed commits in a retired generation.

    A replay takes time. Rows that land in the meantime are replayed once the table is published, but a commit
    that was computed from the retired generation cannot be.
    """
    state = _own(context.catalog, retired.table)
    if state is not None:
        late = find_late(_since(state, retired.since), load_change(context.catalog, table).history())
        if late.computed:
            raise _computed(retired, table, late, where)


def replay_after_switch(context: Context, table: KeyedTable, where: str) -> dict[str, str]:
    """Replay the rows that an interrupted build left right after its switch; once per switch.

    :returns: properties for the next commit, which record that this check was done.
    :raises ConcurrentRun: the rows cannot be replayed, and the user has to decide.
    """
    if table.previous is None:
        return {}
    view = context.catalog.of(table.name).load_view(table.name.schema, table.name.identifier)
    switch = "" if view is None else view.properties.get(PROPERTY_SWITCH, "")
    if view is None or not switch:
        return {}
    state = load_change(context.catalog, table)
    if any(one.summary.get(PROPERTY_SETTLED) == switch for one in state.history()):
        return {}
    retired = retired_by(context.catalog, table, view)
    if retired is not None:
        if txn := overtaken_by(state):
            # The build was interrupted right after its switch, before it could restore the view.
            raise _cannot(retired, table, where, f"transaction {txn} was computed from the rows there")
        try:
            carry_over(context, retired, table, where)
        except (ConstraintBroken, NoSequence, StatementError) as error:
            # The rows do not belong to this run, so its user cannot correct the cause.
            raise _cannot(retired, table, where, error.why or error.what) from error
    return {PROPERTY_SETTLED: switch}


def has_replayed_nothing(catalog: TableReader, table: KeyedTable, view: ViewState) -> bool:
    """Whether no replayable row landed in the previous generation since this one was started.

    If so, this can be recorded. Computed and pulled commits are not replayed.
    """
    return not _may_be_late(catalog, table, view, ())


def has_rows_to_replay(
    catalog: TableReader, table: KeyedTable, view: ViewState, history: Sequence[Snapshot]
) -> bool:
    """Whether the previous generation may have rows that are missing in the one that is shown.

    :param history: the snapshots of the change table that is shown, newest first.
    """
    switch = view.properties.get(PROPERTY_SWITCH, "")
    if any(switch and one.summary.get(PROPERTY_SETTLED) == switch for one in history):
        return False
    return _may_be_late(catalog, table, view, history)


def _may_be_late(
    catalog: TableReader, table: KeyedTable, view: ViewState, history: Sequence[Snapshot]
) -> bool:
    retired = retired_by(catalog, table, view)
    if retired is None:
        return False
    state = _own(catalog, retired.table)
    if state is None or _log(state, retired.since) is None:
        return True
    return bool(find_late(_since(state, retired.since), history).replay)


def replay_into_current(context: Context, table: KeyedTable, txn: int, where: str) -> None:
    """Make sure that the rows of a write reach the generation that is shown.

    The generation of the write was retired in the meantime.

    :raises ConcurrentRun: the rows cannot be carried over.
    """
    for _ in range(ATTEMPTS):
        view = context.catalog.of(table.name).load_view(table.name.schema, table.name.identifier)
        shown = None if view is None else keyed_from_view(table.name, view)
        if view is None or shown is None:
            raise _gone(table, where)
        if shown.generation == table.generation:
            return
        retired = retired_by(context.catalog, shown, view)
        if retired is None or retired.table.generation != table.generation:
            retired = _only(context.catalog, table, shown, view, txn, where)
        if retired is None:
            return
        brought = carry_over(context, retired, shown, where)
        table, txn = shown, txn if brought is None else brought


def _only(
    catalog: CatalogReader, table: KeyedTable, shown: KeyedTable, view: ViewState, txn: int, where: str
) -> RetiredGeneration | None:
    """The replay of a single transaction that landed more than one generation ago.

    ``None`` if it was already carried over.
    """
    for generation in (shown.generation, shown.previous):
        at = None if generation is None else _own(catalog, replace(shown, generation=generation))
        if at is not None and txn in replayed(at.history()):
            return None
    state = _own(catalog, table)
    landed = None if state is None else find_transaction(state.history(), txn)
    if landed is None or landed.parent_id is None:
        raise _gone(table, where)
    text = view.properties.get(PROPERTY_RETIRED)
    return RetiredGeneration(table, landed.parent_id, json.loads(text)[2] if text else None, txn)


def _replay(
    context: Context,
    source: KeyedTable,
    state: TableState,
    log: LogRange,
    late: MissingCommits,
    table: KeyedTable,
    target: TableState,
    target_head: int | None,
) -> int | None:
    """Make one attempt at a replay. Returns the new transaction; ``None`` if another commit was faster."""
    stored = tuple(column for column in state.columns if column.name not in SYSTEM_COLUMNS)
    newer = _newer(target, target_head)
    txn = context.new_txn()
    branch = branch_name(txn)
    statement = insert_replay(
        replace(source, columns=to_columns(stored)),
        late.replay,
        log,
        columns_at(context.catalog, source.change, log.readable_at),
        table,
        newer,
        columns_at(context.catalog, table.change, newer.readable_at),
        txn,
        {PROPERTY_RUN: context.run_id},
        branch,
    )
    with staged(context, table.change, head(target), branch, table):
        context.run("replay", statement, table)
        return txn if publish(context, table.change, branch, table, head(target), target.columns) else None


def _newer(target: TableState, since: int | None) -> LogRange:
    """The commits to a generation itself since it was published."""
    if since is None:
        return LogRange((), ())
    history = target.history()
    log = log_range(history, since)
    log = LogRange((), (head(target),)) if log is None else log
    direct = written_directly(_since(target, since))
    return LogRange(tuple(sorted(direct)), log.readable_at)


def _log(state: TableState, since: int) -> LogRange | None:
    """The commits after a snapshot; ``None`` if the snapshot never belonged to the table.

    If the snapshot has expired, all earlier ones have too, and the remaining ones are later.
    """
    history = state.history()
    log = log_range(history, since)
    if log is not None or not history or history[-1].parent_id is None:
        return log
    oldest = history[-1]
    rest = log_range(history, oldest.snapshot_id)
    first = (int(oldest.summary[PROPERTY_TXN]),) if PROPERTY_TXN in oldest.summary else ()
    return None if rest is None else LogRange((*first, *rest.transactions), rest.readable_at)


def _since(state: TableState, snapshot_id: int) -> list[Snapshot]:
    """The commits after a snapshot, newest first; all known commits if the snapshot is not among them."""
    found: list[Snapshot] = []
    for snapshot in state.history():
        if snapshot.snapshot_id == snapshot_id:
            break
        found.append(snapshot)
    return found


def _own(catalog: TableReader, table: KeyedTable) -> TableState | None:
    """The change table of a generation; ``None`` if it was dropped or another table has its name."""
    state = catalog.of(table.change).load_table(table.change.schema, table.change.identifier)
    if state is None or state.current_snapshot_id is None:
        return None
    return state if state.properties.get(PROPERTY_ID) == table.generation.change_id else None


def _computed(
    retired: RetiredGeneration, table: KeyedTable, late: MissingCommits, where: str
) -> ConcurrentRun:
    return ConcurrentRun(
        f"{table.name} has commits that a full refresh cannot carry over",
        where=where,
        why=f"since its start, {retired.table.change} received {counted(len(late.computed), 'commit')} "
        "computed from the old rows (a batch, a rollback, an UPDATE) and not valid in the new table",
        fix="nothing was replaced; run the full refresh again",
    )


def _cannot(retired: RetiredGeneration, table: KeyedTable, where: str, why: str) -> ConcurrentRun:
    if retired.target_head is None:
        fix = "nothing was replaced; run the full refresh again when no other run writes to the table"
    else:
        # Until the user decides, no later run may continue without these rows.
        fix = (
            f"the rows are still in {retired.table.change}. Recompute them: dbt run --full-refresh "
            f"--select {table.name.identifier}; or return to that generation: dbt-arctic restore "
            f"{table.name.schema}.{table.name.identifier} --previous"
        )
    return ConcurrentRun(
        f"commits to {retired.table.change} during a full refresh cannot be carried over",
        where=where,
        why=why,
        fix=fix,
    )


def _gone(table: KeyedTable, where: str) -> ConcurrentRun:
    return ConcurrentRun(
        f"{table.name} was rebuilt more than once, or dropped, while this run wrote to it",
        where=where,
        why=f"the rows were written to {table.change}, which no view uses any more",
        fix="run again",
    )
