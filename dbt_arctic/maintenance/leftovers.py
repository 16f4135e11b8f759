"""Finds leftovers in a schema and decides which may be removed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from dbt_arctic.auto.auxiliary_tables import model_of_state
from dbt_arctic.catalog.api import TableState
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.secondary_index import PROPERTY_INDEX_OF
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable, side_generation, side_name, side_root
from dbt_arctic.maintenance.inventory import Inventory, roots
from dbt_arctic.store.lease import BuildInProgress, build_in_progress, was_interrupted
from dbt_arctic.store.leftovers import (
    ABANDONED_AFTER_MS,
    aside_of,
    branch_age_ms,
    is_abandoned_branch,
    is_abandoned_generation,
    side_age_ms,
    staging_age_ms,
    txn_age_ms,
)
from dbt_arctic.store.publish_view import switches_of
from dbt_arctic.store.rejected_table import model_of
from dbt_arctic.store.replay import has_rows_to_replay

KEEP_PREVIOUS_MS = 7 * 24 * 60 * 60 * 1000
"""How long a full refresh can be undone, and consumers of the previous generation can continue."""

Kind = Literal["generation", "previous", "branch", "staging", "set-aside", "rejected", "state", "index"]


@dataclass(frozen=True)
class Removal:
    """One leftover that may be removed.

    :param branch: a branch of the table ``target``; empty to remove ``target`` itself.
    :param table: the keyed table that it belongs to, if any.
    """

    kind: Kind
    target: Name
    why: str
    branch: str = ""
    is_view: bool = False
    table: KeyedTable | None = None

    @property
    def what(self) -> str:
        """The removed object, for messages."""
        return f"branch {self.branch} of {self.target}" if self.branch else self.target.dotted


@dataclass(frozen=True)
class KeptLeftover:
    """One leftover that is kept."""

    target: Name
    why: str
    kind: Literal["young", "savepoint", "no-view", "unreadable-view", "interrupted-swap", "late-rows"]


@dataclass(frozen=True)
class Retention:
    """The minimum ages of leftovers.

    :param dropped: whether generations without a view may be removed, which may be the only copy of a table.
    """

    older_than_ms: int = ABANDONED_AFTER_MS
    keep_previous_ms: int = KEEP_PREVIOUS_MS
    dropped: bool = False


@dataclass(frozen=True)
class Leftovers:
    """The leftovers of a schema: those that may be removed, and those that are kept."""

    removals: list[Removal] = field(default_factory=list)
    kept: list[KeptLeftover] = field(default_factory=list)


def find_leftovers(inventory: Inventory, now_ms: int, retention: Retention) -> Leftovers:
    """Find all leftovers of a schema."""
    found = Leftovers()
    decided = (
        *_generations(inventory, now_ms, retention),
        *_branches(inventory, now_ms, retention),
        *_staging(inventory, now_ms, retention),
        *_set_aside(inventory, now_ms, retention),
        *_rejected(inventory, now_ms, retention),
        *_states(inventory, now_ms, retention),
        *_indexes(inventory, now_ms, retention),
    )
    whole = {one.target for one in decided if isinstance(one, Removal) and not one.branch}
    for one in decided:
        if isinstance(one, Removal):
            # A branch is removed with its table.
            if not (one.branch and one.target in whole):
                found.removals.append(one)
        else:
            found.kept.append(one)
    return found


def _generations(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | KeptLeftover]:
    named = {side for table in inventory.keyed.values() for side in table.side_tables}
    for root in sorted(roots(inventory)):
        table = inventory.shown_as(root)
        if table is not None:
            yield from _previous(inventory, table, now_ms, retention)
        for side, state, number in _side_tables(inventory, root):
            if side in named:
                continue
            if inventory.has_unreadable_views:
                why = "a view of the schema cannot be read, and it may refer to this table"
                yield KeptLeftover(side, why, "unreadable-view")
            elif table is None and not retention.dropped:
                yield KeptLeftover(side, f"no view uses generation {number} of {root}", "no-view")
            elif savepoints(state.tags):
                yield KeptLeftover(side, "it has a savepoint", "savepoint")
            elif number > _superseded(table) and (build := _at_work(inventory, root, number, now_ms)):
                yield KeptLeftover(side, f"{build.lease.description} is building it", "young")
            elif table is not None and _was_cut_off(inventory, root, number):
                yield Removal("generation", side, "the process that built it has ended", table=table)
            elif is_abandoned_generation(
                number, _superseded(table), state.properties, state.tags, now_ms, retention.older_than_ms
            ):
                why = (
                    "no view uses it"
                    if table is None
                    else "it is neither the current nor the previous generation"
                )
                yield Removal("generation", side, why, table=table)
            else:
                yield KeptLeftover(side, "it may belong to an active build", "young")


def _at_work(inventory: Inventory, root: str, number: int, now_ms: int) -> BuildInProgress | None:
    return build_in_progress(number, *_pair(inventory, root, number), now_ms)


def _was_cut_off(inventory: Inventory, root: str, number: int) -> bool:
    return was_interrupted(*_pair(inventory, root, number))


def _pair(inventory: Inventory, root: str, number: int) -> tuple[TableState | None, TableState | None]:
    sides = (side_name(inventory.name(root), role, number).identifier for role in ("base", "change"))
    base, change = (inventory.tables.get(side) for side in sides)
    return base, change


def _superseded(table: KeyedTable | None) -> int:
    """Generations below this number cannot belong to an active build.

    Two concurrent builds take two numbers, and the higher number may be published first.
    """
    if table is None or table.previous is None:
        return 0
    return min(table.previous.number, table.generation.number)


def _previous(
    inventory: Inventory, table: KeyedTable, now_ms: int, retention: Retention
) -> Iterator[Removal | KeptLeftover]:
    """The previous generation, after its retention time."""
    current = inventory.tables.get(table.base.identifier)
    view = inventory.views.get(table.name.identifier)
    if table.previous is None or current is None or view is None:
        return
    switches = switches_of(view)
    if not switches and table.previous.number > table.generation.number:
        return  # its age is unknown
    # The last switch was a build, an undo or a redo.
    retired_for = now_ms - switches[-1].at_ms if switches else side_age_ms(current.properties, now_ms)
    if retired_for <= retention.keep_previous_ms:
        return
    sides = [side for side in table.side_tables if side not in (table.base, table.change)]
    states = [(side, inventory.tables.get(side.identifier)) for side in sides]
    if any(state is not None and savepoints(state.tags) for _, state in states):
        return
    change = inventory.tables.get(table.change.identifier)
    history = [] if change is None else change.history()
    if has_rows_to_replay(inventory, table, view, history):
        why = "it has rows committed during the full refresh, which the model's next run replays"
        yield from (KeptLeftover(side, why, "late-rows") for side, state in states if state is not None)
        return
    for side, state in states:
        if state is not None:
            yield Removal("previous", side, "its retention time after a full refresh is over", table=table)


def _branches(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | KeptLeftover]:
    for name, state in inventory.tables.items():
        for branch in sorted(state.branches):
            if is_abandoned_branch(branch, now_ms, retention.older_than_ms):
                yield Removal("branch", inventory.name(name), "an interrupted run left it", branch)
            elif branch_age_ms(branch, now_ms) is not None:
                why = f"its branch {branch} may belong to an active run"
                yield KeptLeftover(inventory.name(name), why, "young")


def _staging(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal]:
    for name in inventory.tables:
        age = staging_age_ms(name, now_ms)
        if age is not None and age > retention.older_than_ms:
            yield Removal("staging", inventory.name(name), "an interrupted pull left it")


def _set_aside(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | KeptLeftover]:
    """A relation that a swap of a table and a view renamed. It may be the only copy of its rows."""
    for name in (*inventory.tables, *inventory.views):
        aside = aside_of(name)
        if aside is None:
            continue
        of, txn = aside
        if not inventory.exists(of):
            why = f"{of} was renamed to it, and the run that did so was interrupted"
            yield KeptLeftover(inventory.name(name), why, "interrupted-swap")
        elif txn_age_ms(txn, now_ms) > retention.older_than_ms and not inventory.has_unreadable_views:
            yield Removal(
                "set-aside",
                inventory.name(name),
                f"{of} has taken its place",
                is_view=name in inventory.views,
                table=inventory.keyed.get(name),
            )


def _rejected(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | KeptLeftover]:
    """The rejected rows of a model whose table was not dropped by dbt."""
    for name, state in inventory.tables.items():
        model = model_of(state)
        if model is None or inventory.exists(model.rpartition(".")[2]):
            continue
        why = f"the table of its model, {model}, no longer exists"
        written_ms = max((one.timestamp_ms for one in state.snapshots), default=0)
        if now_ms - written_ms <= retention.older_than_ms:
            yield KeptLeftover(inventory.name(name), "it may belong to a model that is being built", "young")
        elif retention.dropped:
            yield Removal("rejected", inventory.name(name), why)
        else:
            yield KeptLeftover(inventory.name(name), why, "no-view")


def _states(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | KeptLeftover]:
    """The auxiliary views of automatic models that were never built, or whose table was dropped.

    They are built before the model and can be computed again.
    """
    for identifier, table in inventory.keyed.items():
        model = model_of_state(table)
        of = "" if model is None else model.rpartition(".")[2]
        # Without its view, a model still has side tables, from which `restore` makes it again.
        if not of or inventory.exists(of) or any(side_root(name) == of for name in inventory.tables):
            continue
        target = inventory.name(identifier)
        sides = [inventory.tables.get(side.identifier) for side in (table.base, table.change)]
        times = [one.timestamp_ms for side in sides if side is not None for one in side.snapshots]
        if inventory.has_unreadable_views:
            why = "a view of the schema cannot be read, and it may be that of its model"
            yield KeptLeftover(target, why, "unreadable-view")
        elif any(side is not None and savepoints(side.tags) for side in sides):
            yield KeptLeftover(target, "it has a savepoint", "savepoint")
        elif now_ms - max(times, default=0) <= retention.older_than_ms:
            yield KeptLeftover(target, "it may belong to a model that is being built", "young")
        else:
            why = f"the table of its model, {model}, does not exist"
            yield Removal("state", target, why, is_view=True, table=table)


def _indexes(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | KeptLeftover]:
    """The indexes of tables that were dropped by another program. They can be computed again."""
    for name, state in inventory.tables.items():
        of = state.properties.get(PROPERTY_INDEX_OF, "").rpartition(".")[2]
        if (
            not of
            or inventory.shown_as(of) is not None
            or any(side_root(one) == of for one in inventory.tables)
        ):
            continue
        written_ms = max((one.timestamp_ms for one in state.snapshots), default=0)
        if inventory.has_unreadable_views:
            yield KeptLeftover(inventory.name(name), "a view of the schema cannot be read", "unreadable-view")
        elif now_ms - written_ms <= retention.older_than_ms:
            yield KeptLeftover(inventory.name(name), "it may belong to a table that is being built", "young")
        else:
            yield Removal("index", inventory.name(name), f"the keyed table {of} does not exist")


def _side_tables(inventory: Inventory, root: str) -> Iterator[tuple[Name, TableState, int]]:
    storage_name = inventory.name(root)
    for name, state in inventory.tables.items():
        number = side_generation(storage_name, name) if side_root(name) == root else None
        # A table of another program may have a name of this form.
        if number is not None and state.properties.get(PROPERTY_OF) == storage_name.dotted:
            yield inventory.name(name), state, number
