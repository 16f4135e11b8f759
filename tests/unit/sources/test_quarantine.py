"""Runs of a model with rows that do not fit: the rejected rows of each commit are known, whatever happens."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.catalog.multi_catalog import OneCatalog, together
from dbt_arctic.errors import ConcurrentRun, ConfigError, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.quarantine import reject, without_reread
from dbt_arctic.sources.retry_rejected import ReplayedRows, retry_rejected_rows
from dbt_arctic.store.context import Context
from dbt_arctic.store.rejected_table import PROPERTY_OF, RejectedVersion, counts, last_rejected, rejected_name

SOURCE = FileSource("landing.clicks", "/data", "json", columns={"id": "bigint"}, on_bad_row="quarantine")
PROD, DEV = Name("lake", "prod", "clicks"), Name("lake", "dev", "clicks")
Row = tuple[str, int]
"""A rejected row: its file, and its position."""


@dataclass
class Lake(OneCatalog):
    """Rejected tables with all their snapshots. A catalog, and the statements that write to them."""

    tables: dict[tuple[str, str], list[tuple[int | None, frozenset[Row]]]] = field(default_factory=dict)
    views: dict[str, list[Row]] = field(default_factory=dict)
    fits: frozenset[Row] = frozenset()
    """The rejected rows that fit the columns of today."""

    def load_table(self, schema: str, name: str) -> TableState | None:
        made = self.tables.get((schema, name))
        if made is None:
            return None
        snapshots = tuple(
            Snapshot(at + 1, parent, at, 0, "append", {}) for at, (parent, _) in enumerate(made)
        )
        head = len(made) or None
        properties, branches = {PROPERTY_OF: "lake.prod.clicks"}, {"main": head} if head else {}
        return TableState(schema, name, f"/{schema}/{name}", properties, (), snapshots, head, branches)

    def read_rows(self, schema: str, name: str, columns: Any, snapshot_id: int) -> list[tuple[Any, ...]]:
        known = {"source": SOURCE.name, "row_count": 1}
        rows = sorted(self.tables[schema, name][snapshot_id - 1][1])
        return [
            tuple({**known, "location": path, "position": at}[column] for column in columns)
            for path, at in rows
        ]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        if "GROUP BY `_source_file`" in sql:
            paths = [path for path, _ in self.views[sql.split("FROM `")[1].split("`")[0]]]
            return [(path, paths.count(path)) for path in sorted(set(paths))]
        if "SELECT DISTINCT `_source_file`" in sql:
            return [(len(self._reread(sql)),)]
        return [(len(self._rows(sql) & self.fits),)]

    def run(self, step: str, sql: str, table: Any = None) -> int | None:
        schema, name = re.findall(r"`([^`]*)`", sql)[1:3]
        if step == "create_rejected":
            self.tables.setdefault((schema, name), [])
        elif step == "write_rejected":
            made = self.tables[schema, name]
            old = made[-1][1] if made and "REPLACE WHERE" not in sql else frozenset()
            new = [row for view, rows in self.views.items() if f"FROM `{view}`" in sql for row in rows]
            kept = self._rows(sql)
            if "AND `raw` IS NOT NULL" in sql:
                kept -= self.fits
            if "LEFT ANTI JOIN" in sql:
                kept, new = kept - self._reread(sql), []
            assert not {*old, *kept} & set(new), "a row was rejected twice"
            made.append((len(made) or None, old | kept | frozenset(new)))
        return None

    def _reread(self, sql: str) -> frozenset[Row]:
        """The rejected rows of files that are read again."""
        return frozenset(
            row for row in self._rows(sql) if row[0] in {path for path, _ in self.views["files"]}
        )

    def _rows(self, sql: str) -> frozenset[Row]:
        found = re.findall(r"`lake`\.`(\w+)`\.`(\w+)` VERSION AS OF (\d+)", sql)
        return frozenset().union(*(self.tables[schema, name][int(at) - 1][1] for schema, name, at in found))


@dataclass
class Model:
    """A model: what its last commit consumed, the rows that it has taken, and those it must have rejected."""

    name: Name
    consumed: dict[str, Consumed] = field(default_factory=dict)
    stored: list[Row] = field(default_factory=list)
    rejected: frozenset[Row] = frozenset()

    def version(self, lake: Lake, expected: dict[str, Consumed]) -> RejectedVersion | None:
        return last_rejected(cast(Any, lake), rejected_name(self.name), expected)

    def run(
        self,
        lake: Lake,
        bad: Sequence[Row] = (),
        *,
        full: bool = False,
        replays: bool = False,
        commits: bool = True,
    ) -> None:
        """Read files with these bad rows, as the adapter does."""
        context = Context(cast(Any, lake), lake.run, cast(Any, None), lake.query)
        expected = {} if full else self.consumed
        base = self.version(lake, expected)
        taken: ReplayedRows | None = (
            retry_rejected_rows(context, SOURCE, base) if replays and base is not None else None
        )
        replayed = sorted(self.rejected & lake.fits) if taken is not None else []
        assert taken is None or taken.fitting == len(replayed)
        lake.views = {"files": list(bad)}
        rejection = reject(context, SOURCE, self.name, "files" if bad else "", base, taken)
        assert sum(rejection.by_place.values()) == len(bad)
        if not commits:
            return
        new = {} if rejection.pull is None else {rejection.pull.upstream.dotted: rejection.pull.consumed}
        self.consumed = {**expected, **new}
        self.stored = [*([] if full else self.stored), *replayed]
        self.rejected = (frozenset() if full else self.rejected - frozenset(replayed)) | frozenset(bad)

    def shown(self, lake: Lake) -> frozenset[Row]:
        version = self.version(lake, self.consumed)
        if version is None:
            return frozenset()
        name, at = version.name, int(version.consumed.version)
        found = lake.tables[name.schema, name.identifier][at - 1][1]
        number = counts(cast(Any, lake), version).get(SOURCE.name, (0, 0))
        assert number == (len(found), 0)
        return found


@pytest.mark.parametrize("seed", range(100))
def test_random_stories_reject_each_row_once_and_lose_none(seed: int) -> None:
    """Runs end early, are full, replay, or are undone; a clone goes on by itself."""
    rng = random.Random(seed)
    lake, models = Lake(), [Model(PROD)]
    undo: list[Model] = []
    for clock in range(40):
        if len(models) < 2 and models[0].rejected and rng.random() < 0.2:
            original = models[0]
            models.append(Model(DEV, dict(original.consumed), list(original.stored), original.rejected))
        at = rng.randrange(len(models))
        if at == 0 and undo and rng.random() < 0.15:
            models[0] = undo.pop(rng.randrange(len(undo)))
        model = models[at]
        if at == 0:
            undo.append(replace(model, consumed=dict(model.consumed), stored=list(model.stored)))
        bad = [(f"/data/{clock}", place) for place in range(rng.choice((0, 0, 1, 3)))]
        lake.fits = frozenset(row for one in models for row in one.rejected if rng.random() < 0.3)
        full, replays = rng.random() < 0.1, rng.random() < 0.3
        model.run(lake, bad, full=full, replays=replays, commits=rng.random() < 0.7)
        for one in models:
            assert one.shown(lake) == one.rejected
            assert len(one.stored) == len(set(one.stored)), "a row was replayed twice"
            assert not one.rejected & set(one.stored)


def test_rejected_rows_of_a_file_that_is_read_again_are_replaced() -> None:
    lake, model = Lake(), Model(PROD)
    model.run(lake, [("/data/a", 1), ("/data/b", 1)])
    context = Context(cast(Any, lake), lake.run, cast(Any, None), lake.query)
    base = model.version(lake, model.consumed)
    assert base is not None
    lake.views = {"files": [("/data/c", 1)]}
    assert without_reread(context, SOURCE, PROD, "files", base) is None
    lake.views = {"files": [("/data/a", 2)]}
    newer = without_reread(context, SOURCE, PROD, "files", base)
    assert newer is not None
    rejection = reject(context, SOURCE, PROD, "files", RejectedVersion(base.name, newer.consumed))
    assert rejection.pull is not None
    model.consumed = {rejection.pull.upstream.dotted: rejection.pull.consumed}
    assert model.shown(lake) == {("/data/a", 2), ("/data/b", 1)}


def test_a_run_without_bad_rows_writes_nothing() -> None:
    lake, model = Lake(), Model(PROD)
    model.run(lake)
    assert (lake.tables, model.consumed) == ({}, {})
    model.run(lake, [("/data/a", 1)])
    lake.fits = frozenset()
    model.run(lake)
    model.run(lake, replays=True)
    assert len(lake.tables["prod", "clicks__rejected"]) == 1


def test_a_full_refresh_shows_no_rejected_rows_of_before() -> None:
    lake, model = Lake(), Model(PROD)
    model.run(lake, [("/data/a", 1)])
    model.run(lake, full=True)
    assert lake.tables["prod", "clicks__rejected"][-1][1] == frozenset()
    assert model.shown(lake) == frozenset()


def test_a_table_that_was_dropped_is_a_new_beginning_and_one_that_expired_is_an_error() -> None:
    lake, model = Lake(), Model(PROD)
    model.run(lake, [("/data/a", 1)])
    name = rejected_name(PROD).dotted
    gone = {name: replace(model.consumed[name], version="7")}
    with pytest.raises(VersionUnavailable, match="are not available"):
        model.version(lake, gone)
    lake.tables.clear()
    assert model.shown(lake) == frozenset()
    model.rejected = frozenset()
    model.run(lake, [("/data/b", 1)])
    assert model.shown(lake) == {("/data/b", 1)}


@pytest.mark.parametrize("before", [True, False])
def test_another_run_that_writes_at_the_same_time_is_noticed(before: bool) -> None:
    lake, model = Lake(), Model(PROD)
    model.run(lake, [("/data/a", 1)])

    def overtaken(step: str, sql: str, table: Any = None) -> int | None:
        made = lake.tables["prod", "clicks__rejected"]
        theirs = frozenset({("/data/b", 1)})
        if step == "write_rejected" and before:
            made.append((len(made), made[-1][1]))
        done = Lake.run(lake, step, sql, table)
        if step == "write_rejected" and not before:
            made.append((len(made), made[-1][1] | theirs))
        return done

    lake.run = overtaken  # type: ignore[method-assign]
    with pytest.raises(ConcurrentRun):
        model.run(lake, [("/data/c", 1)])


def test_a_table_of_that_name_with_other_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, model = Lake(), Model(PROD)
    model.run(lake, [("/data/a", 1)])
    monkeypatch.setattr("tests.unit.sources.test_quarantine.PROPERTY_OF", "other")
    with pytest.raises(ConfigError, match="is not a table of rejected rows"):
        model.run(lake, [("/data/b", 1)])


def test_rejected_rows_of_a_catalog_that_others_call_otherwise_are_found() -> None:
    there = Lake({("prod", "clicks__rejected"): [(None, frozenset({("a.json", 1)}))]})
    catalog = together({"lake": cast(Any, Lake()), "archive": cast(Any, there)})
    name = rejected_name(Name("archive", "prod", "clicks"))
    consumed = Consumed("/prod/clicks__rejected", "1")
    assert last_rejected(catalog, name, {"theirs.prod.clicks__rejected": consumed}) == RejectedVersion(
        name, consumed
    )
    # A table of the same name in this project's catalog is another one.
    assert last_rejected(catalog, name, {"lake.prod.clicks__rejected": consumed}) is None
