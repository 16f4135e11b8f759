"""Statements about the branch of a write have the effect of Spark's, in fewer commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine import session_cursor
from dbt_arctic.engine.active_session import active_session
from dbt_arctic.engine.branch_commits import run_on_branch
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.statement import Statement
from dbt_arctic.errors import StatementError
from dbt_arctic.keyed.branch import create_branch, drop_branch, fast_forward
from dbt_arctic.keyed.erasure import BRANCH
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.branches import branch_name

STAGED = branch_name(1883226199957146110)


class Table:
    """:param by_api: whether each statement was run without a statement of Spark."""

    def __init__(self, connection: SessionConnection, warehouse: Path, schema: str, name: str) -> None:
        self.connection = connection
        self.name = Name("lake", schema, name)
        self.folder = warehouse / schema / "t"
        self.by_api: list[bool] = []
        self.rows(
            f"CREATE TABLE {self.name.sql} (id BIGINT) USING iceberg LOCATION '{self.folder}' "
            "TBLPROPERTIES ('format-version'='3')"
        )
        self.rows(f"INSERT INTO {self.name.sql} VALUES (1)")
        self.by_api.clear()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall()

    def run(self, sql: str) -> tuple[bool, int]:
        """:returns: whether it was run without a statement of Spark, and the commits that it made."""
        before = self.commits
        self.by_api.clear()
        self.rows(sql)
        (by_api,) = self.by_api
        return by_api, self.commits - before

    @property
    def commits(self) -> int:
        return len(list((self.folder / "metadata").glob("*.metadata.json")))

    @property
    def head(self) -> int:
        return dict(self.refs)["main"]

    @property
    def refs(self) -> list[tuple[Any, ...]]:
        return sorted(self.rows(f"SELECT name, snapshot_id FROM {self.name.sql}.refs"))

    def stage(self, branch: str) -> None:
        self.run(create_branch(self.name, branch, self.head))
        self.rows(f"INSERT INTO {self.name.branch(branch)} VALUES (2)")


@pytest.fixture
def connected(
    connection: SessionConnection, warehouse: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> Any:
    connection.session.catalog.clearCache()  # other tests may have left rows in memory

    def made(name: str = "t") -> Table:
        table = Table(connection, warehouse, schema, name)

        def noted(session: Any, statement: Statement) -> bool:
            table.by_api.append(run_on_branch(session, statement))
            return table.by_api[-1]

        monkeypatch.setattr(session_cursor, "run_on_branch", noted)
        return table

    return made


def test_the_catalog_is_that_of_the_session(connection: SessionConnection, tmp_path: Path) -> None:
    """It is used for the first time while a session with another warehouse is active in the thread."""
    engine = SessionEngine(replace(connection.settings, warehouse=str(tmp_path / "other")))
    first, other = engine.connect(), engine.connect()
    try:
        first.cursor().execute("CREATE SCHEMA lake.s")
        table = Table(first, tmp_path / "other", "s", "t")
        assert other.session is not None
        last = SessionEngine(connection.settings).connect()
        statement = Statement(create_branch(table.name, STAGED, table.head), lambda _: None)
        with active_session(last.session):
            assert run_on_branch(other.session, statement)
        assert STAGED in dict(table.refs)
        last.close()
    finally:
        other.close()
        first.close()


@pytest.mark.parametrize("branch", [STAGED, BRANCH])
def test_a_write_publishes_and_drops_its_branch_in_one_commit(connected: Any, branch: str) -> None:
    table = connected()
    first = table.head
    assert table.run(f"/* a comment */ {create_branch(table.name, branch, first)}") == (True, 1)
    assert dict(table.refs) == {"main": first, branch: first}
    table.rows(f"INSERT INTO {table.name.branch(branch)} VALUES (2)")
    written = dict(table.refs)[branch]
    assert table.run(fast_forward(table.name, branch)) == (True, 1)
    assert table.refs == [("main", written)]
    with pytest.raises(StatementError, match="Ref does not exist"):  # what `publish` expects
        table.rows(fast_forward(table.name, branch))
    assert table.run(drop_branch(table.name, branch)) == (True, 0)
    assert sorted(table.rows(f"SELECT id FROM {table.name.sql}")) == [(1,), (2,)]


def test_a_branch_that_was_overtaken_is_not_published(connected: Any) -> None:
    table = connected()
    table.stage(STAGED)
    table.rows(f"INSERT INTO {table.name.sql} VALUES (3)")
    before = table.refs
    with pytest.raises(StatementError, match="Cannot fast-forward: main is not an ancestor of"):
        table.run(fast_forward(table.name, STAGED))
    assert table.by_api == []  # it was refused without a statement of Spark
    assert table.refs == before
    assert table.run(drop_branch(table.name, STAGED)) == (True, 1)
    assert sorted(table.rows(f"SELECT id FROM {table.name.sql}")) == [(1,), (3,)]


def test_rows_in_memory_are_read_again_when_a_branch_is_published(connected: Any) -> None:
    table = connected()
    table.rows(f"CACHE TABLE {table.name.sql}")
    try:
        table.stage(STAGED)
        assert table.run(fast_forward(table.name, STAGED)) == (False, 1)
        assert table.run(drop_branch(table.name, STAGED)) == (True, 1)
        assert sorted(table.rows(f"SELECT id FROM {table.name.sql}")) == [(1,), (2,)]
    finally:
        table.rows(f"UNCACHE TABLE {table.name.sql}")


def test_other_branches_and_odd_names_are_left_to_spark_where_necessary(connected: Any) -> None:
    table = connected("an odd`'name")
    table.stage(STAGED)
    assert table.run(fast_forward(table.name, STAGED)) == (False, 1)
    assert table.run(drop_branch(table.name, STAGED)) == (True, 1)
    table.stage("audit")
    assert table.run(fast_forward(table.name, "audit")) == (False, 1)
    assert [name for name, _ in table.refs] == ["audit", "main"]  # it is not ours to drop


def test_a_table_that_does_not_exist_is_an_error_of_spark(connected: Any) -> None:
    table = connected()
    missing = Name("lake", table.name.schema, "missing")
    for sql in (drop_branch(missing, STAGED), fast_forward(missing, STAGED)):
        with pytest.raises(StatementError):
            table.rows(sql)
