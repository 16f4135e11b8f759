"""What in a schema belongs to nothing, and what of it may go. Pure; the ages are ``refresh.leftovers``'."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from dbt_arctic.catalog.api import TableState
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable, side_generation, side_name, side_root
from dbt_arctic.maintenance.inventory import Inventory, roots
from dbt_arctic.maintenance.restored import restored_of
from dbt_arctic.store.lease import Build, build_at_work, was_cut_off
from dbt_arctic.store.leftovers import (
    ABANDONED_AFTER_MS,
    aside_of,
    is_abandoned_branch,
    is_abandoned_generation,
    side_age_ms,
    staging_age_ms,
    txn_age_ms,
)
from dbt_arctic.store.replay import has_rows_to_replay

KEEP_PREVIOUS_MS = 7 * 24 * 60 * 60 * 1000
"""For how long a full refresh can be undone, and models that consumed the generation before can go on."""

Kind = Literal["generation", "previous", "branch", "staging", "set-aside"]


@dataclass(frozen=True)
class Removal:
    """One thing that may go.

    :param branch: of the table ``target``; empty where all of ``target`` goes.
    :param table: the keyed table that it belongs to, where there is one.
    """

    kind: Kind
    target: Name
    why: str
    branch: str = ""
    is_view: bool = False
    table: KeyedTable | None = None

    @property
    def what(self) -> str:
        return f"branch {self.branch} of {self.target}" if self.branch else self.target.dotted


@dataclass(frozen=True)
class Kept:
    """One thing that belongs to nothing, and stays."""

    target: Name
    why: str
    kind: Literal["young", "savepoint", "no-view", "unreadable-view", "interrupted-swap", "late-rows"]


@dataclass(frozen=True)
class Retention:
    """How old what is left behind must be to go.

    :param dropped: whether generations may go that no view shows: the only copy of a table that was dropped.
    """

    older_than_ms: int = ABANDONED_AFTER_MS
    keep_previous_ms: int = KEEP_PREVIOUS_MS
    dropped: bool = False


@dataclass(frozen=True)
class Leftovers:
    removals: list[Removal] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


def find_leftovers(inventory: Inventory, now_ms: int, retention: Retention) -> Leftovers:
    """Decide for everything in a schema."""
    found = Leftovers()
    decided = (
        *_generations(inventory, now_ms, retention),
        *_branches(inventory, now_ms, retention),
        *_staging(inventory, now_ms, retention),
        *_set_aside(inventory, now_ms, retention),
    )
    whole = {one.target for one in decided if isinstance(one, Removal) and not one.branch}
    for one in decided:
        if isinstance(one, Removal):
            # A branch goes with its table.
            if not (one.branch and one.target in whole):
                found.removals.append(one)
        else:
            found.kept.append(one)
    return found


def _generations(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | Kept]:
    named = {side for table in inventory.keyed.values() for side in table.side_tables}
    for root in sorted(roots(inventory)):
        table = inventory.shown_as(root)
        if table is not None:
            yield from _previous(inventory, table, now_ms, retention)
        for side, state, number in _side_tables(inventory, root):
            if side in named:
                continue
            if inventory.has_unreadable_views:
                why = "a view of the schema cannot be read, so nobody knows whether it names this table"
                yield Kept(side, why, "unreadable-view")
            elif table is None and not retention.dropped:
                yield Kept(side, f"no view shows generation {number} of {root}", "no-view")
            elif savepoints(state.tags):
                yield Kept(side, "it has a savepoint", "savepoint")
            elif number > _superseded(table) and (build := _at_work(inventory, root, number, now_ms)):
                yield Kept(side, f"{build.lease.told} is building it", "young")
            elif table is not None and _was_cut_off(inventory, root, number):
                yield Removal("generation", side, "the process that built it has ended", table=table)
            elif is_abandoned_generation(
                number, _superseded(table), state.properties, state.tags, now_ms, retention.older_than_ms
            ):
                why = (
                    "no view shows it"
                    if table is None
                    else "it is neither the current generation nor the one before"
                )
                yield Removal("generation", side, why, table=table)
            else:
                yield Kept(side, "it may belong to a build that is at work", "young")


def _at_work(inventory: Inventory, root: str, number: int, now_ms: int) -> Build | None:
    return build_at_work(number, *_pair(inventory, root, number), now_ms)


def _was_cut_off(inventory: Inventory, root: str, number: int) -> bool:
    return was_cut_off(*_pair(inventory, root, number))


def _pair(inventory: Inventory, root: str, number: int) -> tuple[TableState | None, TableState | None]:
    sides = (side_name(inventory.name(root), role, number).identifier for role in ("base", "change"))
    base, change = (inventory.tables.get(side) for side in sides)
    return base, change


def _superseded(table: KeyedTable | None) -> int:
    """Generations before this one are certainly no build at work: two builds at once take two numbers,
    and the younger number may be published first."""
    if table is None or table.previous is None:
        return 0
    return min(table.previous.number, table.generation.number)


def _previous(
    inventory: Inventory, table: KeyedTable, now_ms: int, retention: Retention
) -> Iterator[Removal | Kept]:
    """The generation before, once nobody wants to go back to it any more."""
    current = inventory.tables.get(table.base.identifier)
    view = inventory.views.get(table.name.identifier)
    if table.previous is None or current is None or view is None:
        return
    retired_for = side_age_ms(current.properties, now_ms)
    restored = restored_of(view)
    if table.previous.number > table.generation.number:
        if restored is None:
            return  # nobody can say since when
        retired_for = now_ms - restored
    if retired_for <= retention.keep_previous_ms:
        return
    sides = [side for side in table.side_tables if side not in (table.base, table.change)]
    states = [(side, inventory.tables.get(side.identifier)) for side in sides]
    if any(state is not None and savepoints(state.tags) for _, state in states):
        return
    change = inventory.tables.get(table.change.identifier)
    history = [] if change is None else change.history()
    if has_rows_to_replay(inventory, table, view, history):
        why = "rows that landed in it beside the full refresh are missing: the model's next run brings them"
        yield from (Kept(side, why, "late-rows") for side, state in states if state is not None)
        return
    for side, state in states:
        if state is not None:
            yield Removal("previous", side, "it was replaced by a full refresh long ago", table=table)


def _branches(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal]:
    for name, state in inventory.tables.items():
        for branch in sorted(state.branches):
            if is_abandoned_branch(branch, now_ms, retention.older_than_ms):
                yield Removal("branch", inventory.name(name), "a run that was cut off left it", branch)


def _staging(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal]:
    for name in inventory.tables:
        age = staging_age_ms(name, now_ms)
        if age is not None and age > retention.older_than_ms:
            yield Removal("staging", inventory.name(name), "a pull that was cut off left it")


def _set_aside(inventory: Inventory, now_ms: int, retention: Retention) -> Iterator[Removal | Kept]:
    """What a swap of a table and a view set aside. Its rows may be the only ones there are."""
    for name in (*inventory.tables, *inventory.views):
        aside = aside_of(name)
        if aside is None:
            continue
        of, txn = aside
        if not inventory.exists(of):
            why = f"{of} was set aside here, and the run that did it was cut off"
            yield Kept(inventory.name(name), why, "interrupted-swap")
        elif txn_age_ms(txn, now_ms) > retention.older_than_ms and not inventory.has_unreadable_views:
            yield Removal(
                "set-aside",
                inventory.name(name),
                f"{of} has taken its place",
                is_view=name in inventory.views,
                table=inventory.keyed.get(name),
            )


def _side_tables(inventory: Inventory, root: str) -> Iterator[tuple[Name, TableState, int]]:
    made_as = inventory.name(root)
    for name, state in inventory.tables.items():
        number = side_generation(made_as, name) if side_root(name) == root else None
        # A table of somebody else's may have such a name.
        if number is not None and state.properties.get(PROPERTY_OF) == made_as.dotted:
            yield inventory.name(name), state, number
