"""Queries that ask for the time: what time alone moves is found, whatever changes besides."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import pytest

from dbt_arctic.planner import signed
from dbt_arctic.planner.determined import check_determined, depends_on_time
from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.moment import TIMES, Clock, may_depend_on_time
from dbt_arctic.planner.parse import named_columns, parse
from dbt_arctic.planner.plan import full_sql, understand
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.rules import condition
from dbt_arctic.planner.text import with_relations
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, at_old, compare, facts_of
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import SCHEMAS

CASES = 300


@dataclass(frozen=True)
class Number:
    """A time that can be compared with the numbers of random tables."""

    value: int

    def literal(self, function: str) -> str:
        return str(self.value)


def timed(case: Case) -> Case:
    """The case with the time in place of some numbers that something is compared with."""
    chance = random.Random(case.seed)
    return replace(
        case,
        sql=re.sub(
            r"(<=|>=|<>|[<>=]) -?\d+\b",
            lambda found: f"{found[1]} current_date()" if chance.random() < 0.7 else found[0],
            case.sql,
        ),
    )


def prepared(
    database: Database, case: Case, last: Number, now: Number, *, same_rows: bool
) -> Prepared | None:
    old, new = case.tables(0)
    new = old if same_rows else new
    database.load(old, new)
    before = Counter(database.rows(at_old(case.sql).replace("current_date()", last.literal(""))))
    expected = Counter(database.rows(case.sql.replace("current_date()", now.literal(""))))
    try:
        query = understand(case.sql, SCHEMAS, now=now, last=last)
    except CannotPlan:
        return None
    assert Counter(database.rows(full_sql(query, InDuckDB()))) == expected
    facts = replace(facts_of(old, new), time_moved=True)
    return Prepared(case, query, facts, before, expected)


@pytest.mark.parametrize("same_rows", [True, False], ids=["time alone", "time and rows"])
def test_what_time_moves_is_found(same_rows: bool) -> None:
    database, found = Database(), Counter[str]()
    for seed in range(CASES):
        case = timed(draw(seed))
        if "current_date()" not in case.sql:
            continue
        chance = random.Random(seed + 1)
        last, now = Number(chance.randrange(6)), Number(chance.randrange(6))
        try:
            ready = prepared(database, case, last, now, same_rows=same_rows)
        except Exception as error:
            if "duckdb" not in type(error).__module__:
                raise
            continue
        verdict = Verdict("full", "") if ready is None else compare(database, ready, InDuckDB())
        assert verdict.outcome != "wrong", f"seed {seed}, {last} to {now}: {verdict.why}\n{case.sql}"
        found[f"{verdict.outcome}{' changed' if verdict.changed else ''}"] += 1
    assert found["incremental changed"] > 10


@pytest.mark.parametrize("mistake", ["nothing moves", "of what changed, the time now"])
def test_mistakes_with_time_are_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mistake == "nothing moves":
        monkeypatch.setattr(condition, "moved", lambda node: None)
        monkeypatch.setattr(signed, "moved", lambda node: None)
    else:
        monkeypatch.setattr(signed, "before", lambda part: part)
    with pytest.raises(AssertionError, match="seed"):
        test_what_time_moves_is_found(same_rows=mistake == "nothing moves")


COLUMNS = ["d", "now"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT d FROM a WHERE d < current_date()", "SELECT d FROM a WHERE d < DATE '2026-11-21'"),
        ("SELECT d FROM a WHERE d < CURRENT_DATE", "SELECT d FROM a WHERE d < DATE '2026-11-21'"),
        ("SELECT curdate( ) /* now() */ FROM a", "SELECT DATE '2026-11-21' /* now() */ FROM a"),
        ("SELECT 'now()', now FROM a", "SELECT 'now()', now FROM a"),
        ("SELECT now() FROM a", "SELECT TIMESTAMP_LTZ '2026-11-22 03:30:00.000000Z' FROM a"),
        ("SELECT localtimestamp() FROM a", "SELECT localtimestamp() FROM a"),
    ],
)
def test_calls_in_a_text_become_literals(sql: str, expected: str) -> None:
    """The date is that of the session's time zone."""
    at_night = Clock.at(datetime(2026, 11, 22, 3, 30, tzinfo=timezone.utc), "America/New_York")
    columns = named_columns(parse(sql), COLUMNS)
    assert with_relations(sql, lambda name: None, at_night, columns) == expected


def test_a_column_comes_before_a_function() -> None:
    query = understand("SELECT now FROM a WHERE now > 1", {"a": [("now", "int")]})
    assert [name for name, _ in query.columns] == ["now"]
    check_determined(query.node, query.types, Facts({"a": UpstreamFacts(True)}))


@pytest.mark.parametrize(
    ("text", "is_time"),
    [("now", True), ("Today", True), ("yesterday UTC", True), ("today+01:00", True), ("todays", False)],
)
def test_texts_that_are_a_time(text: str, is_time: bool) -> None:
    assert (TIMES.fullmatch(text) is not None) is is_time


@pytest.mark.parametrize(
    ("sql", "is_time"),
    [
        ("SELECT id FROM t WHERE at >= '06:00'", True),
        ("SELECT id FROM t WHERE at BETWEEN 'T6:00' AND '2026-01-01 07:00'", True),
        ("SELECT id, CAST('8:30' AS TIMESTAMP) AS c FROM t", True),
        ("SELECT id, TIMESTAMP '08:30:15.5' AS c FROM t", True),
        ("SELECT id FROM t WHERE at >= '2024-02-29 08:30'", False),
        ("SELECT id FROM t WHERE opens >= '08:30' AND opens < '17:00'", False),
        ("SELECT id FROM t WHERE date_format(at, 'HH:mm') = '08:30'", False),
        ("SELECT id, to_timestamp(concat(opens, ' 00:00:00')) AS c FROM t", False),
        ("SELECT id, coalesce(opens, '00:00') AS c, TIME '08:30' AS d FROM t", False),
        ("SELECT id, at + INTERVAL '10:30' HOUR TO MINUTE AS c FROM t", False),
        ("SELECT id, p.name FROM t JOIN (VALUES ('08:30', 'early')) AS p(at, name) ON opens = p.at", False),
        ("SELECT id, '16:9' AS c FROM t WHERE opens LIKE '12:3%'", False),
    ],
)
def test_a_time_without_a_day_is_one_of_today(sql: str, is_time: bool) -> None:
    query = understand(sql, {"t": [("id", "int"), ("at", "timestamp"), ("opens", "string")]})
    found = depends_on_time(query.node, query.types, Facts({}))
    assert (found is not None) is is_time
    assert may_depend_on_time(parse(sql)) or not is_time
