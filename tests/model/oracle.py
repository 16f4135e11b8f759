"""What a keyed table must hold, in plain dicts: its log of commits, folded over what each was meant to do.

Which commits landed, and in which order, is read from Iceberg's log; what they mean is what the test meant
by them. So whatever was abandoned, repeated or interleaved, the rows that belong to a snapshot are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Generation, KeyedTable, side_name
from dbt_arctic.store.state import find_keyed

Key = int
Payload = Mapping[str, Any]
"""Column to value, the key left out; a column that is missing is NULL."""


class Cell(NamedTuple):
    """The latest change of a key; without a payload it was deleted.

    :param sequence: ``None`` where arrival is the order.
    """

    sequence: int | None
    payload: Payload | None

    def only(self, columns: tuple[str, ...]) -> Cell:
        """What a table without some columns takes of it."""
        if self.payload is None or not columns:
            return self
        return self._replace(payload={k: v for k, v in self.payload.items() if k in columns})

    def without(self, gone: set[str]) -> Cell:
        if self.payload is None:
            return self
        return self._replace(payload={k: v for k, v in self.payload.items() if k not in gone})


State = dict[Key, Cell]
Effect = Callable[["TableLog", State, Snapshot], State]
"""From the state before a commit to what the commit changes."""


def apply(state: State, changes: Mapping[Key, Cell]) -> State:
    """Changes in the order of their sequence; of one sequence a delete wins, then the later one."""
    found = dict(state)
    for key, new in changes.items():
        old = found.get(key)
        if old is None or new.sequence is None or old.sequence is None or _wins(new, old):
            found[key] = new
    return found


def _wins(new: Cell, old: Cell) -> bool:
    assert new.sequence is not None
    assert old.sequence is not None
    return (new.sequence, new.payload is None) >= (old.sequence, old.payload is None)


def visible(state: State) -> dict[Key, Payload]:
    return {key: cell.payload for key, cell in state.items() if cell.payload is not None}


@dataclass
class GenerationLog:
    """The change table's commits of one generation as they were seen, oldest first.

    :param states: what is right after each of them, by snapshot.
    :param txns: of a transaction the snapshot that committed it, and :param touched: the keys it wrote.
    :param runs: whose commits these are; of a replay those whose rows it brings.
    :param base_merged: the transactions that each base snapshot had merged, those before it included.
    """

    generation: Generation
    order: list[int] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    txns: dict[int, int] = field(default_factory=dict)
    touched: dict[int, frozenset[Key]] = field(default_factory=dict)
    replays: dict[int, frozenset[int]] = field(default_factory=dict)
    empty: set[int] = field(default_factory=set)
    """Transactions without rows: they never need to be merged."""
    runs: list[str] = field(default_factory=list)
    built_by: str = ""
    base_merged: dict[int, frozenset[int]] = field(default_factory=dict)
    base_head: int | None = None
    now: State = field(default_factory=dict)
    """The state at the newest commit, without what columns that were dropped since held."""
    columns: tuple[str, ...] = ()
    leaving: set[str] = field(default_factory=set)
    """Columns that the view does not show any more, and both tables still have."""
    dropped: set[str] = field(default_factory=set)
    shown_since: int = 0
    """How many transactions there were when it began to be shown, the last time that it did."""

    @property
    def head(self) -> int:
        return self.order[-1]

    def show(self, columns: tuple[str, ...], stored: set[str]) -> None:
        """A column that is dropped and added again has no values. If another run replaced the generation
        before the drop, the column is back with its values.

        :param stored: the columns of the base and change table.
        """
        left = self.leaving | set(self.columns)
        gone, self.leaving = left - stored, (left - set(columns)) & stored
        if gone:
            self.dropped |= gone
            self.now = {key: cell.without(gone) for key, cell in self.now.items()}
        self.columns = columns

    def base_state(self, base_snapshot: int) -> State:
        """As of what was merged, which is the log up to some commit: anything else is a mistake."""
        merged = self.base_merged[base_snapshot]
        logged = [txn for txn in self.txns if txn not in self.empty]
        done = [txn in merged for txn in logged]
        assert done == sorted(done, reverse=True), "a transaction was merged before one that is older"
        last = [txn for txn in logged if txn in merged]
        return self.states[self.txns[last[-1]] if last else self.order[0]]


@dataclass
class TableLog:
    """Every generation of one keyed table that was ever shown, and what its commits were meant to do.

    :param effects: what a run changes, by its id, which is in the commit's summary.
    :param builds: the rows that a run's build is to have.
    """

    name: Name
    catalog: CatalogReader
    effects: dict[str, Effect] = field(default_factory=dict)
    builds: dict[str, Callable[[Snapshot], State]] = field(default_factory=dict)
    generations: dict[str, GenerationLog] = field(default_factory=dict)
    shown: KeyedTable | None = None
    done: set[str] = field(default_factory=set)
    """Runs whose commit was seen in the generation that was shown at that time."""
    _meant: dict[int, tuple[str, State]] = field(default_factory=dict)
    """Of a transaction whose run it is, and what it changes in any generation."""

    def observe(self) -> KeyedTable | None:
        """Take up what was committed since."""
        table = find_keyed(self.catalog, self.name)
        moved = table is not None and (self.shown is None or self.shown.generation != table.generation)
        self.shown = table
        if table is None:
            return None
        named = [*([table.previous] if table.previous else []), table.generation]
        older = [log.generation for log in self.generations.values() if log.generation not in named]
        for generation in [*older, *named]:
            change = self._side(table, "change", generation)
            base = self._side(table, "base", generation)
            if change is None or base is None:
                continue
            log = self.generations.setdefault(generation.change_id, GenerationLog(generation))
            if generation == table.generation:
                stored = [{column.name for column in side.columns} for side in (base, change)]
                log.show(table.column_names, stored[0] & stored[1])
                if moved:
                    log.shown_since = len(log.txns)
            self._follow_change(log, change)
            self._follow_base(log, base)
        self.done.update(self.current.runs)
        return table

    @property
    def current(self) -> GenerationLog:
        assert self.shown is not None
        return self.generations[self.shown.generation.change_id]

    def at(self, token: str) -> State:
        """The state of a version, as ``Version.token`` writes it."""
        number, change_snapshot, _ = (int(part) for part in token.split("."))
        for log in self.generations.values():
            if log.generation.number == number and change_snapshot in log.states:
                return log.states[change_snapshot]
        raise AssertionError(f"nobody has seen the version {token}")

    def _side(self, table: KeyedTable, role: str, generation: Generation) -> TableState | None:
        side = side_name(table.storage_name, role, generation.number)
        state = self.catalog.load_table(side.schema, side.identifier)
        wanted = generation.change_id if role == "change" else generation.base_id
        return state if state is not None and state.properties.get("arctic.id") == wanted else None

    def _follow_change(self, log: GenerationLog, change: TableState) -> None:
        new: list[Snapshot] = []
        for commit in change.history():
            if commit.snapshot_id in log.states:
                assert commit.snapshot_id == log.head, "the log went back to an earlier commit"
                break
            new.append(commit)
        else:
            assert not log.order, "commits that were there are gone from the log"
        for commit in reversed(new):
            log.now = self._fold(log, commit) if log.order else self._first(log, commit)
            log.states[commit.snapshot_id] = log.now
            log.order.append(commit.snapshot_id)

    def _first(self, log: GenerationLog, commit: Snapshot) -> State:
        log.built_by = commit.summary.get("arctic.run", "")
        if "arctic.rollback" in commit.summary:  # with a sequence: the deletes of then are known, too
            then = self.at(commit.summary["arctic.rollback"])
            return {key: cell.only(log.columns) for key, cell in then.items()}
        assert log.built_by in self.builds, f"a generation that nobody built: {dict(commit.summary)}"
        return self.builds[log.built_by](commit)

    def _fold(self, log: GenerationLog, commit: Snapshot) -> State:
        summary = commit.summary
        if "arctic.txn" not in summary:
            return log.now
        txn = int(summary["arctic.txn"])
        log.txns[txn] = commit.snapshot_id
        if int(summary.get("added-records", "0")) == 0:
            log.empty.add(txn)
        run = summary.get("arctic.run", "")
        if "arctic.replays" in summary:
            return self._replay(log, txn, [int(one) for one in json.loads(summary["arctic.replays"])])
        if "arctic.rollback" in summary:
            changes = self._back(log, self.at(summary["arctic.rollback"]))
        elif run == log.built_by:
            changes = {}  # the deletes of the first rows
        else:
            assert run in self.effects, f"a commit that nobody made: {dict(summary)}"
            changes = self.effects[run](self, log.now, commit)
        self._meant[txn] = (run, changes)
        log.touched[txn] = frozenset(changes)
        if run != log.built_by:
            log.runs.append(run)
        return apply(log.now, changes)

    def _back(self, log: GenerationLog, then: State) -> State:
        """What a rollback writes: of what the table has a column for now, all that differs."""
        rows = {key: {name: row.get(name) for name in log.columns} for key, row in visible(then).items()}
        now = {key: {name: row.get(name) for name in log.columns} for key, row in visible(log.now).items()}
        gone = {key: Cell(None, None) for key in now.keys() - rows.keys()}
        return {**gone, **{key: Cell(None, row) for key, row in rows.items() if now.get(key) != row}}

    def _replay(self, log: GenerationLog, txn: int, brought: list[int]) -> State:
        """What landed in another generation. Rows that were written to this one itself came later."""
        log.replays[txn] = frozenset(brought)
        direct = [one for one in list(log.txns)[log.shown_since :] if one not in log.replays]
        newer = {key for one in direct for key in log.touched[one]}
        changes: State = {}
        for one in self._in_order(brought):
            run, meant = self._meant[one]
            if not run.startswith("replay "):
                log.runs.append(run)
            changes = apply(changes, meant)
        changes = {
            key: cell.only(log.columns)
            for key, cell in changes.items()
            if cell.sequence is not None or key not in newer
        }
        self._meant[txn] = (f"replay {txn}", changes)
        log.touched[txn] = frozenset(changes)
        return apply(log.now, changes)

    def _in_order(self, txns: list[int]) -> list[int]:
        """As they landed in the generation that they come from."""
        for log in self.generations.values():
            if set(txns) <= log.txns.keys():
                return [txn for txn in log.txns if txn in txns]
        raise AssertionError(f"a replay of what never landed together: {txns}")

    def _follow_base(self, log: GenerationLog, base: TableState) -> None:
        for commit in reversed(base.history()):
            if commit.snapshot_id not in log.base_merged:
                before = log.base_merged.get(commit.parent_id or 0, frozenset())
                merged = frozenset(json.loads(commit.summary.get("arctic.merged", "[]")))
                log.base_merged[commit.snapshot_id] = before | merged
        log.base_head = base.current_snapshot_id


def same_rows(found: Sequence[Mapping[str, Any]], expected: State, columns: Iterable[str]) -> str:
    """Nothing, or how rows differ from a state. ``found`` has ``id`` and ``columns``."""
    names = tuple(columns)
    rows: dict[Key, tuple[Any, ...]] = {}
    for row in found:
        if row["id"] in rows:
            return f"the key {row['id']} twice: {list(found)}"
        rows[row["id"]] = tuple(row[name] for name in names)
    wanted = {key: tuple(payload.get(name) for name in names) for key, payload in visible(expected).items()}
    if rows == wanted:
        return ""
    return f"rows {dict(sorted(rows.items()))}, expected {dict(sorted(wanted.items()))} ({', '.join(names)})"
