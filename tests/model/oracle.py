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
from dbt_arctic.refresh.state import find_keyed

Key = int
Payload = Mapping[str, Any]
"""Column to value, the key left out; a column that is missing is NULL."""


class Cell(NamedTuple):
    """The latest change of a key; without a payload it was deleted.

    :param sequence: ``None`` where arrival is the order.
    """

    sequence: int | None
    payload: Payload | None


State = dict[Key, Cell]
Effect = Callable[["TableLog", State, Snapshot], State]


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
    :param base_merged: the transactions that each base snapshot had merged, those before it included.
    """

    generation: Generation
    order: list[int] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    txns: dict[int, int] = field(default_factory=dict)
    """Of a transaction the snapshot that committed it; without rows, it never needs to be merged."""
    empty: set[int] = field(default_factory=set)
    runs: list[str] = field(default_factory=list)
    base_merged: dict[int, frozenset[int]] = field(default_factory=dict)
    base_head: int | None = None
    now: State = field(default_factory=dict)
    """The state at the newest commit, without what columns that were dropped since held."""
    columns: tuple[str, ...] = ()
    dropped: set[str] = field(default_factory=set)

    @property
    def head(self) -> int:
        return self.order[-1]

    def show(self, columns: tuple[str, ...]) -> None:
        """A column that is dropped and comes back has nothing of what it once held."""
        gone = set(self.columns) - set(columns)
        if gone:
            self.dropped |= gone
            self.now = {
                key: cell._replace(
                    payload=None
                    if cell.payload is None
                    else {name: value for name, value in cell.payload.items() if name not in gone}
                )
                for key, cell in self.now.items()
            }
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

    :param effects: by the id of the run, which is in the commit's summary.
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

    def observe(self) -> KeyedTable | None:
        """Take up what was committed since."""
        table = find_keyed(self.catalog, self.name)
        self.shown = table
        if table is None:
            return None
        for generation in [*([table.previous] if table.previous else []), table.generation]:
            change = self._side(table, "change", generation)
            base = self._side(table, "base", generation)
            if change is None or base is None:
                continue
            log = self.generations.setdefault(generation.change_id, GenerationLog(generation))
            if generation == table.generation:
                log.show(table.column_names)
            self._follow_change(log, change)
            if generation == table.generation:
                self.done.update(log.runs)
            self._follow_base(log, base)
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
        side = side_name(table.made_as, role, generation.number)
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
            state = log.now if log.order else self._first(commit)
            log.now = self._fold(log, state, commit)
            log.states[commit.snapshot_id] = log.now
            log.order.append(commit.snapshot_id)

    def _first(self, commit: Snapshot) -> State:
        run = commit.summary.get("arctic.run", "")
        assert run in self.builds, f"a generation that nobody built: {dict(commit.summary)}"
        return self.builds[run](commit)

    def _fold(self, log: GenerationLog, state: State, commit: Snapshot) -> State:
        summary = commit.summary
        if "arctic.txn" not in summary:
            return state
        txn = int(summary["arctic.txn"])
        log.txns[txn] = commit.snapshot_id
        if int(summary.get("added-records", "0")) == 0:
            log.empty.add(txn)
        run = summary.get("arctic.run", "")
        if "arctic.rollback" in summary:
            log.runs.append(run)
            then = visible(self.at(summary["arctic.rollback"]))
            # What the table has no column for now is not written.
            kept = {key: {name: row.get(name) for name in log.columns} for key, row in then.items()}
            rows = {key: Cell(None, row) for key, row in kept.items()}
            return {**{key: Cell(None, None) for key in state}, **rows}
        if run in self.builds:
            return state  # the deletes of the first rows
        assert run in self.effects, f"a commit that nobody made: {dict(summary)}"
        log.runs.append(run)
        return self.effects[run](self, state, commit)

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
