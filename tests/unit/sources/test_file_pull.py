"""Runs of models over a folder, with a catalog in memory: each file is read once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import ListedFile, Snapshot, TableState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.engine.api import FileRead
from dbt_arctic.errors import ConcurrentRun, ConfigError, SourceFileChanged, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_SOURCE, Consumed
from dbt_arctic.sources.file_list import file_list_name, last_list, refuse_renamed
from dbt_arctic.sources.file_pull import FilePlanner, plan_file_pull
from dbt_arctic.sources.file_settings import ChangedFiles, FileSource
from dbt_arctic.sources.source_planner import PullPurpose
from dbt_arctic.store.context import Context

SOURCE = FileSource("landing.clicks", "/data", "json", columns={"id": "bigint"}, changed_files="reread")
PROD, DEV = Name("lake", "prod", "clicks"), Name("lake", "dev", "clicks")


@dataclass
class Lake(OneCatalog):
    """A folder, and tables of file lists with all of their snapshots. A catalog and a connection."""

    folder: dict[str, ListedFile] = field(default_factory=dict)
    lists: dict[tuple[str, str], list[frozenset[ListedFile]]] = field(default_factory=dict)
    views: dict[str, list[ListedFile]] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    data_files: int = 1

    def list_files(self, folder: str) -> list[ListedFile]:
        return list(self.folder.values())

    def load_table(self, schema: str, name: str) -> TableState | None:
        snapshots = self.lists.get((schema, name))
        if snapshots is None:
            return None
        summary = {"total-data-files": str(self.data_files)}
        made = tuple(Snapshot(at + 1, at or None, at, 0, "append", summary) for at in range(len(snapshots)))
        properties = {PROPERTY_SOURCE: SOURCE.name}
        location = f"/{schema}/{name}"
        return TableState(schema, name, location, properties, (), made, len(made), {"main": len(made)})

    def read_rows(self, schema: str, name: str, columns: Any, snapshot_id: int) -> list[tuple[Any, ...]]:
        files = self.lists[schema, name][snapshot_id - 1]
        return [(file.path, file.modified_ms, file.size_bytes) for file in files]

    def create_temp_view(self, name: str, columns: Any, rows: Any) -> None:
        self.views[name] = [ListedFile(*row) for row in rows]

    def create_file_view(self, name: str, files: FileRead) -> None:
        self.read = list(files.paths)

    def run(self, step: str, sql: str, table: Any = None) -> int | None:
        self.statements.append(sql)
        if step == "list_files":
            target, view = sql.split("`")[1:6:2], sql.rpartition("FROM `")[2].rstrip("`")
            snapshots = self.lists.setdefault((target[1], target[2]), [])
            old = frozenset[ListedFile]() if sql.startswith("CREATE OR REPLACE") else snapshots[-1]
            snapshots.append(old | frozenset(self.views[view]))
        return None


@dataclass
class Model:
    """A model: what its last commit consumed, and the files whose rows are in its table."""

    name: Name
    consumed: dict[str, Consumed] = field(default_factory=dict)
    stored: list[ListedFile] = field(default_factory=list)

    def run(
        self,
        lake: Lake,
        *,
        full: bool = False,
        commits: bool = True,
        use: PullPurpose = "consume",
        changed_files: ChangedFiles = "reread",
        folder: str = SOURCE.path,
    ) -> None:
        context = Context(cast(Any, lake), lake.run, cast(Any, None), cast(Any, None))
        name, expected = file_list_name(self.name, SOURCE.name), {} if full else self.consumed
        last = last_list(cast(Any, lake), name, SOURCE.name, expected)
        lake.read = []
        pull = plan_file_pull(
            context,
            lambda: cast(Any, lake),
            replace(SOURCE, changed_files=changed_files, path=folder),
            name,
            last,
            model="clicks",
            purpose=use,
        )
        files = [lake.folder[path] for path in lake.read]
        assert bool(files) <= pull.changed
        if commits and use == "consume" and pull.changed:
            self.consumed = {**expected, name.dotted: pull.consumed}
            self.stored = [*([] if full else self.stored), *files]


def file(path: str, modified_ms: int = 1) -> ListedFile:
    return ListedFile(f"/data/{path}", modified_ms, 1)


def lake_of(*files: ListedFile) -> Lake:
    return Lake({one.path: one for one in files})


def test_a_file_that_was_away_during_a_full_refresh_is_read_when_it_is_back() -> None:
    lake, model = lake_of(file("a"), file("b")), Model(PROD)
    model.run(lake)
    away = lake.folder.pop("/data/b")
    model.run(lake, full=True)
    assert model.stored == [file("a")]
    lake.folder["/data/b"] = away
    model.run(lake)
    assert model.stored == [file("a"), file("b")]


def test_after_a_full_refresh_that_failed_no_file_is_read_again() -> None:
    lake, model = lake_of(file("a"), file("b")), Model(PROD)
    model.run(lake)
    away = lake.folder.pop("/data/b")
    model.run(lake, full=True, commits=False)
    lake.folder["/data/c"] = file("c")
    model.run(lake)
    lake.folder["/data/b"] = away
    model.run(lake)
    assert sorted(model.stored) == [file("a"), file("b"), file("c")]


def test_a_clone_continues_where_its_original_was_and_takes_nothing_from_it() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    clone = Model(DEV, dict(model.consumed), list(model.stored))
    lake.folder["/data/b"] = file("b")
    for one in (clone, model, clone):
        one.run(lake)
    assert clone.stored == model.stored == [file("a"), file("b")]


def test_a_clone_without_new_files_writes_nothing_and_follows_its_original() -> None:
    lake, model = lake_of(file("a"), file("b")), Model(PROD)
    model.run(lake)
    clone = Model(DEV, dict(model.consumed), list(model.stored))
    lake.statements.clear()
    clone.run(lake)
    assert lake.statements == []
    # The clone still shows what the original has, which is rebuilt without a file that is gone.
    del lake.folder["/data/b"]
    model.run(lake, full=True)
    clone = Model(DEV, dict(model.consumed), list(model.stored))
    lake.folder["/data/c"] = file("c")
    clone.run(lake)
    assert clone.stored == [file("a"), file("c")]


def test_a_rollback_reads_the_files_of_the_undone_runs_again() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    restored = Model(PROD, dict(model.consumed), list(model.stored))
    lake.folder["/data/b"] = file("b")
    model.run(lake)
    restored.run(lake)
    assert restored.stored == [file("a"), file("b")]


def test_a_file_that_an_abandoned_run_found_may_not_disappear() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    lake.folder["/data/b"] = file("b")
    model.run(lake, commits=False)
    del lake.folder["/data/b"]
    with pytest.raises(SourceFileChanged, match="disappeared before clicks read it"):
        model.run(lake)
    model.run(lake, use="describe")  # dbt compile
    model.run(lake, changed_files="ignore")  # once is enough, although nothing is read
    model.run(lake)
    lake.folder["/data/b"] = file("b")
    model.run(lake)
    assert model.stored == [file("a"), file("b")]


def test_a_full_refresh_reads_the_files_that_are_left() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    lake.folder["/data/b"] = file("b")
    model.run(lake, commits=False)
    del lake.folder["/data/b"]
    model.run(lake, full=True)
    assert model.stored == [file("a")]


def test_nothing_new_costs_no_statement_and_showing_rows_consumes_nothing() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake, use="read")
    model.run(lake, use="describe")
    assert lake.lists == {}
    model.run(lake)
    assert [one.split()[0] for one in lake.statements] == ["CREATE", "DROP"]
    lake.statements.clear()
    model.run(lake)
    model.run(lake, full=True)  # the list is right already
    assert lake.statements == []
    lake.folder["/data/b"] = file("b")
    model.run(lake, use="read")
    assert lake.read == ["/data/b"]
    model.run(lake)
    assert model.stored == [file("a"), file("b")]


def test_a_list_of_many_data_files_is_rewritten() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    for data_files, statement in ((99, "INSERT"), (100, "CREATE")):
        lake.statements.clear()
        lake.folder[f"/data/{data_files}"] = file(str(data_files))
        lake.data_files = data_files
        model.run(lake)
        assert lake.statements[0].startswith(statement)
    assert model.stored == [file("a"), file("99"), file("100")]


def test_a_list_that_is_lost_is_an_error_and_not_a_new_beginning() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    lake.lists.clear()
    with pytest.raises(VersionUnavailable, match="was dropped"):
        model.run(lake)
    model.run(lake, full=True)
    model.consumed = {key: Consumed(one.table_id, "7") for key, one in model.consumed.items()}
    with pytest.raises(VersionUnavailable, match="was expired"):
        model.run(lake)


def test_a_table_of_another_source_is_not_taken_for_a_file_list(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    monkeypatch.setattr("tests.unit.sources.test_file_pull.PROPERTY_SOURCE", "other")
    with pytest.raises(ConfigError, match="is not the file list"):
        model.run(lake)


@pytest.mark.parametrize("theirs", [frozenset({file("a")}), frozenset({file("a"), file("b"), file("c")})])
def test_a_list_that_another_run_writes_to_meanwhile_is_noticed(theirs: frozenset[ListedFile]) -> None:
    """A file that the other run has found, and this one has not read, would count as read."""
    lake, model = lake_of(file("a"), file("b")), Model(PROD)

    def overtaken(step: str, sql: str, table: Any = None) -> int | None:
        done = Lake.run(lake, step, sql, table)
        if step == "list_files":
            lake.lists["prod", "clicks__landing__clicks__files"].append(theirs)
        return done

    lake.run = overtaken  # type: ignore[method-assign]
    with pytest.raises(ConcurrentRun):
        model.run(lake)


def test_a_version_that_only_an_abandoned_run_found_is_read_if_it_returns() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    for version, commits in ((2, False), (3, True), (2, True)):
        lake.folder["/data/a"] = file("a", version)
        model.run(lake, commits=commits)
    assert model.stored == [file("a"), file("a", 3), file("a", 2)]


def test_the_same_object_by_another_scheme_is_the_same_file() -> None:
    def named(scheme: str, *names: str) -> list[ListedFile]:
        return [ListedFile(f"{scheme}://shop/{name}", 1, 1) for name in names]

    lake, model = lake_of(*named("s3a", "a", "b")), Model(PROD)
    model.run(lake, folder="s3a://shop")
    lake.folder = lake_of(*named("s3", "a", "b")).folder
    before = list(lake.statements)
    model.run(lake, folder="s3://shop", changed_files="ignore")
    assert lake.statements == before, "nothing is new"
    lake.folder = lake_of(*named("s3", "b", "c")).folder
    for _ in range(2):
        model.run(lake, folder="s3://shop", changed_files="fail")
        assert model.stored == [*named("s3a", "a", "b"), *named("s3", "c")]
    assert lake.lists["prod", "clicks__landing__clicks__files"][-1] == frozenset(named("s3", "a", "b", "c"))


@pytest.mark.parametrize(
    ("declared", "present", "is_refused"),
    [
        ({"landing.visits"}, ("a", "c"), True),
        ({"landing.visits"}, ("c",), False),
        # Both sources may have the same files.
        ({"landing.visits", "landing.clicks"}, ("a", "c"), False),
    ],
    ids=["renamed", "other files", "declared"],
)
def test_a_source_with_another_name_is_not_read_again(
    declared: set[str], present: tuple[str, ...], is_refused: bool
) -> None:
    lake, model = lake_of(file("a"), file("b")), Model(PROD)
    model.run(lake)
    model.consumed["kafka.shop.orders"] = Consumed("topic:abc", "offsets:5")
    lake.folder = lake_of(*map(file, present)).folder
    context = Context(cast(Any, lake), lake.run, cast(Any, None), cast(Any, None))
    renamed = replace(SOURCE, name="landing.visits")
    planner = FilePlanner(context, lambda: cast(Any, lake), renamed, PROD, declared)
    if is_refused:
        with pytest.raises(
            ConfigError, match=r"files of the source landing\.visits as the source landing\.clicks"
        ):
            planner.plan(model.consumed, "clicks", "consume")
    else:
        refuse_renamed(
            cast(Any, lake), renamed, declared, set(lake.folder.values()), model.consumed, "clicks"
        )


@pytest.mark.parametrize("seed", range(150))
def test_random_stories_read_each_version_of_a_file_once(seed: int) -> None:
    """Two models and a clone; files come, change, go and return; runs end early, are full, or are undone."""
    rng = random.Random(seed)
    lake, away = Lake(), dict[str, ListedFile]()
    models = [Model(PROD), Model(Name("lake", "prod", "others"))]
    undo: dict[int, list[Model]] = {}
    for clock in range(40):
        path = f"/data/{rng.randrange(6)}"
        match rng.randrange(6):
            case 0 | 1 | 2:
                lake.folder[path] = ListedFile(path, rng.randrange(clock + 1), rng.randrange(9))
            case 3 if path in lake.folder:
                away[path] = lake.folder.pop(path)
            case 4 if path in away:
                lake.folder[path] = away.pop(path)
            case 5 if len(models) < 3 and models[0].consumed:
                models.append(Model(DEV, dict(models[0].consumed), list(models[0].stored)))
        at = rng.randrange(len(models))
        model = models[at]
        history = undo.setdefault(at, [])
        if history and rng.random() < 0.1:
            model = models[at] = history.pop(rng.randrange(len(history)))
        before = Model(model.name, dict(model.consumed), list(model.stored))
        full, commits = rng.random() < 0.15, rng.random() < 0.7
        try:
            model.run(lake, full=full, commits=commits)
        except SourceFileChanged:
            assert not full
            model.run(lake, full=True)
        else:
            if not commits:
                assert model.stored == before.stored
                continue
        history.append(before)
        assert len(model.stored) == len(set(model.stored)), "a version of a file was read twice"
        assert set(lake.folder.values()) <= set(model.stored), "a file was not read"
