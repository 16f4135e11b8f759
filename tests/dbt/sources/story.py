"""Random stories: acts outside, runs that are cut off anywhere, rollbacks, clones and full refreshes.

After each run, each table is compared with what it must contain. A run that is cut off has changed nothing or
everything.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import current_version, find_keyed
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.sources.expected import TABLES, Accounts, Again, ByKey, Refused, Rows, Table, by_text
from tests.dbt.sources.killed_process import is_built_here, run_and_kill
from tests.dbt.sources.outside import ACTS, DURING, Outside, State
from tests.dbt.sources.project import Place

OPERATIONS = (*(["run"] * 8), *(["cut"] * 8), "full", "cut full", "roll_back", "roll_back", "clone")
STATEMENTS = 14
"""At most so many statements of a model run before it is cut off."""
_SHOWN = 1500
_ENDED = re.compile(r"\w+ (had ended before|ended after): ")


class Different(AssertionError):
    """A table is not as it must be."""


@dataclass
class Tracked:
    """A table of a target, and what it must contain.

    :param contents: with the rows that it has. There are several if a run that was cut off read nothing but
        messages that are not shown, or did not: it has read more or less. ``None`` is no table.
    :param versions: to which it can be rolled back, with the contents of each.
    :param found: files that a run may have found without reading them. If they disappear, that is an error.
    :param refused: the error of the last run, after which a user decides how to go on.
    :param original: of a clone without a write, which shows what its original contains.
    :param unfinished: the contents that the first write of a clone may have, if it ended after the view was
        set aside: the next run puts the new table in its place, or the view.
    """

    table: Table
    contents: list[Any] = field(default_factory=lambda: [None])
    versions: list[tuple[str, list[Any]]] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    refused: str = ""
    original: Tracked | None = None
    unfinished: list[Any] = field(default_factory=list)

    @property
    def content(self) -> Any:
        """The one that has read less."""
        return self.contents[0]

    @property
    def reads_files(self) -> bool:
        return self.table.name in ("once", "again")

    @property
    def paths(self) -> set[str]:
        """The files that were read."""
        return {file.path for file in getattr(self.content, "files", self.content) or ()}

    def may_miss(self, seen: State) -> bool:
        """Whether a file that a run may have found is gone, and was not read."""
        return self.reads_files and bool(self.found - seen.paths - self.paths)


@dataclass
class Story:
    """:param told: what has happened, one act a line.

    :param processes: the share of the runs that are processes of their own, which are killed at a statement.
    """

    place: Place
    chance: random.Random
    processes: float = 0.0
    told: list[str] = field(default_factory=list)
    steps: int = 0
    kills: int = 0
    tables: dict[tuple[str, str], Tracked] = field(default_factory=dict)
    _is_cloned: bool = False

    def __post_init__(self) -> None:
        self.tables = {("dev", table.name): Tracked(table) for table in TABLES}

    @property
    def shop(self) -> Shop:
        return self.place.shop

    @property
    def outside(self) -> Outside:
        return self.place.outside

    def play(self, steps: int) -> None:
        """:raises Different: a table is not as it must be."""
        for _ in range(steps):
            self.step()
        self.settle()

    def step(self) -> None:
        self.steps += 1
        if self.chance.random() < 0.6:
            self.told.append(self.outside.act(self.chance.choice(ACTS)))
            return
        operation = self.chance.choice(OPERATIONS)
        if operation == "roll_back":
            self.roll_back()
        elif operation == "clone":
            self.clone()
        else:
            targets = sorted({target for target, _ in self.tables})
            self.run(
                self.chance.choice(targets),
                self.chance.sample([table.name for table in TABLES], k=self.chance.randrange(1, 4)),
                full="full" in operation,
                cut="cut" in operation,
                during=self.chance.choice(DURING) if self.chance.random() < 0.4 else "",
                in_process=self.processes > 0 and self.chance.random() < self.processes,
            )

    def settle(self) -> None:
        """Commit what is open, and run everything until it is done: each table has what there is."""
        self.outside.commit()
        for target in sorted({target for target, _ in self.tables}):
            names = [name for where, name in self.tables if where == target]
            self.run(target, names)
            # One run goes on without lost messages, another one rebuilds what has lost files.
            for _ in range(2):
                if self._refused(target, names):
                    self.run(target, names)
            if refused := self._refused(target, names):
                raise Different(f"still refused: {refused}")

    def _refused(self, target: str, names: list[str]) -> dict[str, str]:
        """The models whose last run was refused, with the code of the error."""
        return {name: code for name in names if (code := self.tables[target, name].refused)}

    # Runs

    def run(
        self,
        target: str,
        names: list[str],
        *,
        full: bool = False,
        cut: bool = False,
        during: str = "",
        in_process: bool = False,
    ) -> None:
        """Run models of a target, each of which may be cut off at a statement, while something happens.

        :param in_process: whether a process runs all of them, and is killed.
        """
        tables = {name: self.tables[target, name] for name in names if (target, name) in self.tables}
        if not tables:
            return
        skips = not full and any(one.refused == "AR-403" for one in tables.values())
        skips = skips and self.chance.random() < 0.5
        if any(one.refused for one in tables.values()) and not skips:
            full = True
        ends = {
            name: (self.chance.randrange(STATEMENTS), self.chance.random() < 0.5)
            for name in (tables if cut else ())
        }
        seen = [self.outside.now]
        words = ["run", "--target", target, "--select", *tables]
        words += [*(["--full-refresh"] if full else []), *(["--vars", "on_data_loss: skip"] if skips else [])]
        if in_process:
            self._run_and_kill(target, tables, words, full, skips)
            return
        self.told.append(" ".join(["dbt", *words, *(f"{name} ends at {at}" for name, at in ends.items())]))
        self.shop.end(ends)
        with self._during(during, self.chance.randrange(STATEMENTS)):
            outcome = self.shop.try_dbt(*words)
        self.shop.end({})
        seen = [*seen, self.outside.now]
        results = {one.node.name: one for one in getattr(outcome.result, "results", None) or ()}
        for name, tracked in tables.items():
            one = results.get(name)
            is_done = one is not None and str(one.status) == "success"
            said = str(one.message if one is not None else outcome.exception)
            is_killed = not is_done and _ENDED.search(said) is not None
            self.kills += is_killed
            self._check(target, tracked, seen, full, skips, is_done, is_killed, said)

    def _run_and_kill(
        self, target: str, tables: dict[str, Tracked], words: list[str], full: bool, skips: bool
    ) -> None:
        at, after = self.chance.randrange(STATEMENTS * len(tables)), self.chance.random() < 0.5
        self.told.append(" ".join(["dbt", *words, "killed", "after" if after else "before", str(at)]))
        ended = run_and_kill(self.place.shop, words, at, after=after)
        self.kills += ended.is_killed
        for name, tracked in tables.items():
            said = "killed" if ended.is_killed else ended.messages.get(name, "it has no result")
            is_killed = ended.is_killed or is_built_here(said)
            self._check(target, tracked, [self.outside.now], full, skips, said == "", is_killed, said)

    def _check(
        self,
        target: str,
        tracked: Tracked,
        seen: list[State],
        full: bool,
        skips: bool,
        is_done: bool,
        is_killed: bool,
        said: str,
    ) -> None:
        where = f"{target}.{tracked.table.name}"
        if tracked.original is not None:
            tracked.contents = [*tracked.original.contents, *tracked.unfinished]
        possible, expected_error = [], ""
        for before in [None] if full else tracked.contents:
            try:
                possible += tracked.table.possible(before, seen, skips=skips)
            except Refused as error:
                expected_error = str(error)
        tracked.refused = ""
        if not is_done:
            if not is_killed and not (expected_error and expected_error in said):
                if not (not full and "AR-310" in said and tracked.may_miss(seen[0])):
                    raise Different(f"{where}: the run failed: {said[:_SHOWN]}")
                expected_error = "AR-310"
            tracked.refused = "" if is_killed else expected_error
            possible = [*tracked.contents, *(possible if is_killed else [])]
            if is_killed and tracked.original is not None:
                tracked.unfinished = list(possible)
                possible.append(None)
            if tracked.reads_files:
                tracked.found |= {path for state in seen for path in state.paths}
            if tracked.reads_files and tracked.original is not None:
                tracked.found |= tracked.original.paths  # copied to the list of the clone
        elif not possible:
            raise Different(f"{where}: the run did not fail with {expected_error}")
        elif full:
            tracked.found = set()
        if is_done and len(seen) > 1 and tracked.reads_files:
            tracked.found |= seen[-1].paths
        self._observe(target, tracked, possible, is_rebuilt=full)

    def _observe(
        self, target: str, tracked: Tracked, possible: list[Any], *, is_rebuilt: bool = False
    ) -> None:
        """The table has one of some contents, which is the one that it must go on with."""
        found = self.stored(target, tracked)
        contents = [one for one in possible if (None if one is None else tracked.table.rows(one)) == found]
        if not contents:
            expected = [one if one is None else tracked.table.rows(one) for one in possible]
            raise Different(
                f"{target}.{tracked.table.name}: the table has\n  {found}\nand not\n  "
                + "\nor\n  ".join(str(one) for one in expected)
            )
        tracked.contents = list(dict.fromkeys(contents))
        if found is not None:
            tracked.unfinished.clear()
        version = self.version(target, tracked)
        if is_rebuilt and not isinstance(tracked.table, ByKey | Again | Accounts):
            tracked.versions.clear()  # Iceberg rolls back to an ancestor only
        if version is not None:
            tracked.original = None
        if version is not None and (not tracked.versions or tracked.versions[-1][0] != version):
            tracked.versions.append((version, tracked.contents))

    def stored(self, target: str, tracked: Tracked) -> Rows | None:
        name = f"lake.{self.place.schema(target)}.{tracked.table.name}"
        try:
            return by_text(self.shop.sql(f"SELECT {tracked.table.columns} FROM {name}"))
        except ArcticError as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                return None
            raise

    def version(self, target: str, tracked: Tracked) -> str | None:
        catalog = EmbeddedCatalog("lake", self.shop.warehouse)
        name = Name("lake", self.place.schema(target), tracked.table.name)
        keyed = find_keyed(catalog, name)
        if keyed is not None:
            return current_version(catalog, keyed).token
        state = catalog.load_table(name.schema, name.identifier)
        return None if state is None else str(state.current_snapshot_id)

    @contextmanager
    def _during(self, act: str, at: int) -> Iterator[None]:
        """Something happens outside right before a statement of the run."""
        counted = 0
        run = self.shop.script.run

        def counting(sql: str, execute: Callable[[], None]) -> None:
            nonlocal counted
            if counted == at and act:
                self.told.append(f"  before statement {at}: {self.outside.act(act)}")
            counted += 1
            run(sql, execute)

        self.shop.script.run = counting  # type: ignore[method-assign]
        try:
            yield
        finally:
            del self.shop.script.run

    # What an operator does

    def roll_back(self) -> None:
        """Undo some runs of a table of the target dev: the next run reads again what they have read."""
        tables = [one for (target, _), one in self.tables.items() if target == "dev"]
        for one in tables:
            one.versions = [found for found in one.versions if self._is_kept(one, found[0])]
        old = [one for one in tables if len(one.versions) > 1]
        if not old:
            return
        tracked = self.chance.choice(old)
        at = self.chance.randrange(len(tracked.versions) - 1)
        version, contents = tracked.versions[at]
        name = tracked.table.name
        self.told.append(f"roll back {name} to {version}")
        if "." in version:
            Terminal(self.shop)("rollback", name, version, "--yes", "--target", "dev")
        else:
            self.shop.sql(
                f"CALL lake.system.rollback_to_snapshot('{self.place.schema('dev')}.{name}', {version})"
            )
        if tracked.reads_files:
            tracked.found |= tracked.paths
        del tracked.versions[at + 1 :]
        tracked.contents = contents
        self._observe("dev", tracked, contents)

    def _is_kept(self, tracked: Tracked, version: str) -> bool:
        """Whether the generation of a version still exists: a full refresh keeps the previous one only."""
        name = Name("lake", self.place.schema("dev"), tracked.table.name)
        table = find_keyed(EmbeddedCatalog("lake", self.shop.warehouse), name)
        if table is None or "." not in version:
            return True
        kept = [one.number for one in (table.generation, table.previous) if one is not None]
        return int(version.partition(".")[0]) in kept

    def clone(self) -> None:
        """Tables of the target ci become clones of those of dev, and go on by themselves."""
        names = [
            one.table.name for (target, _), one in self.tables.items() if target == "dev" and one.content
        ]
        if not names:
            return
        name = self.chance.choice(names)
        state = self.shop.folder / "state"
        if not self._is_cloned:
            self.shop.dbt("parse", "--target", "dev")
            state.mkdir()
            shutil.copy(self.shop.folder / "target" / "manifest.json", state)
            self._is_cloned = True
        self.told.append(f"clone {name}")
        self.shop.dbt(*("clone", "--state", str(state), "--target", "ci", "--full-refresh", "--select", name))
        original = self.tables["dev", name]
        copy = Tracked(original.table, original.contents, refused=original.refused)
        copy.original = original
        self.tables["ci", name] = copy
        self._observe("ci", copy, copy.contents)


__all__ = ["Different", "Story"]
