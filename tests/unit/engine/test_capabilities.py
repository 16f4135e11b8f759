"""What a catalog can do follows from what its statements did, and nothing of the attempt stays behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from dbt_arctic.engine import capabilities, doctor
from dbt_arctic.engine.capabilities import INSTEAD, Capabilities, probe
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.errors import ArcticError, StatementError

ANSWERS = {
    "SHOW TBLPROPERTIES": [("format-version", "3")],
    "SELECT answer": [(42,)],
    "SELECT _row_id": [(0, 1)],
    "SELECT count(*)": [(2,)],
    "SELECT id FROM": [(1,)],
    "iceberg_version": [("1.12.0",)],
    "split(version()": [("4.1.4",)],
}


class Spark(SessionConnection):
    """A connection that answers as a catalog would that does everything.

    :param fails: statements that contain one of these texts fail with its message.
    """

    process = None  # type: ignore[assignment] # it is not used
    session = None

    def __init__(self, fails: dict[str, str], answers: dict[str, list[tuple[Any, ...]]]) -> None:
        self.ran: list[str] = []
        self._fails = fails
        self._answers = {**ANSWERS, **answers}
        self._rows: list[tuple[Any, ...]] = []

    def cursor(self) -> Any:
        return self

    def execute(self, sql: str) -> None:
        self.ran.append(sql)
        for text, message in self._fails.items():
            if text in sql:
                raise StatementError("Spark rejected the statement.", why=message)
        self._rows = next((rows for text, rows in self._answers.items() if text in sql), [])

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def close(self) -> None:
        pass


@contextlib.contextmanager
def catalog(monkeypatch: pytest.MonkeyPatch, refuses: bool = True) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(capabilities, "refuses_stale_commit", lambda *names: refuses)
        yield


def probe_with(
    monkeypatch: pytest.MonkeyPatch,
    fails: dict[str, str] | None = None,
    refuses: bool = True,
    answers: dict[str, Any] | None = None,
) -> tuple[Capabilities, list[str]]:
    spark = Spark(fails or {}, answers or {})
    with catalog(monkeypatch, refuses):
        return probe(spark, "lake"), spark.ran


def missing(found: Capabilities) -> dict[str, str]:
    return {one.name: one.detail for one in found.tried if not one.works}


def not_dropped(ran: list[str]) -> set[str]:
    """What was created and not dropped."""
    created = {sql.split()[2] for sql in ran if sql.startswith("CREATE ")}
    dropped = {sql.split()[4 if "IF EXISTS" in sql else 2] for sql in ran if sql.startswith("DROP ")}
    renamed = {sql.split()[2] for sql in ran if " RENAME TO " in sql}
    return created - dropped - renamed


def test_a_catalog_that_can_do_everything_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found, ran = probe_with(monkeypatch)
    assert (missing(found), found.iceberg, not_dropped(ran)) == ({}, "1.12.0", set())
    assert len(ran) <= 25


@pytest.mark.parametrize(
    ("uri", "is_missing"),
    [
        ("<undefined>", False),
        ("https://catalog", False),
        ("jdbc:sqlite:/lake/catalog.db", False),
        ("jdbc:arctic:postgresql://db/lake", False),
        ("jdbc:postgresql://db/lake", True),
    ],
)
def test_a_server_that_opens_a_database_without_our_driver_repeats_commits(
    monkeypatch: pytest.MonkeyPatch, uri: str, is_missing: bool
) -> None:
    key = "spark.sql.catalog.lake.uri"
    found, _ = probe_with(monkeypatch, answers={f"SET `{key}`": [(key, uri)]})
    assert ("lost answers" in missing(found)) == is_missing
    assert ("lost answers" in {one.name for one in found.tried}) == is_missing


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("'format-version' = '3'", "format v3"),
        ("SELECT _row_id", "row lineage"),
        ("CREATE BRANCH", "branches"),
        ("fast_forward", "branches"),
        ("CREATE VIEW", "views"),
        ("RENAME TO", "rename"),
        ("renamed PURGE", "drop"),
    ],
)
def test_what_a_statement_fails_at_is_missing_and_the_rest_is_tried(
    monkeypatch: pytest.MonkeyPatch, statement: str, name: str
) -> None:
    found, ran = probe_with(monkeypatch, {statement: f"{name} is not supported by catalog: lake"})
    assert missing(found) == {name: f"{name} is not supported by catalog: lake"}
    assert found[name].instead == INSTEAD[name]
    assert len(found.tried) == len(INSTEAD)
    assert not_dropped(ran) == set() or name == "drop"


def test_a_statement_without_its_effect_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text, rows in [
        ("format v3", "SHOW TBLPROPERTIES", [("format-version", "2")]),
        ("row lineage", "SELECT _row_id", [(None, None)]),
        ("branches", "SELECT count(*)", [(1,)]),
        ("views", "SELECT id FROM", []),
    ]:
        assert list(missing(probe_with(monkeypatch, answers={text: rows})[0])) == [name]


def test_two_commits_on_one_version_fail_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = probe_with(monkeypatch, refuses=False)
    assert list(missing(found)) == ["concurrent commits"]
    check = doctor._of(found["concurrent commits"])
    assert (check.ok, check.shown_state) == (False, "FAILED")
    views = doctor._of(probe_with(monkeypatch, {"CREATE VIEW": "no views"})[0]["views"])
    assert (views.ok, views.shown_state) == (True, "missing")


def test_nothing_stays_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark({"INSERT INTO": "the store is read-only"}, {})
    with catalog(monkeypatch), pytest.raises(ArcticError, match="read-only"):
        probe(spark, "lake")
    assert not_dropped(spark.ran) == set()
