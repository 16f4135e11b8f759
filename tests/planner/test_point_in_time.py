"""Queries with functions of time: rows that move only because of the time are found."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from dbt_arctic.planner.delta import old_or_new, weighted_delta
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.delta.rules import condition, project
from dbt_arctic.planner.frontend.parse import named_columns, parse
from dbt_arctic.planner.frontend.point_in_time import TIMES, Clock, may_depend_on_time
from dbt_arctic.planner.frontend.source_text import with_relations
from dbt_arctic.planner.properties import facts
from dbt_arctic.planner.properties.determinism import depends_on_time, require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from tests.extent import extent
from tests.planner.tally import tally
from tests.planner.time_queries import OPERATORS

CASES = extent(60, 300)


def test_what_time_moves_is_found() -> None:
    judged = tally(range(CASES), "timed")
    assert not judged.wrong, "\n\n".join(judged.wrong[:3])
    assert not judged.rare(OPERATORS, 0.06 * CASES)
    assert judged.incremental > 0.7 * CASES


MISTAKES = {
    "no condition moves": [
        (condition, "rows_changed_by_time", lambda node: None),
        (weighted_delta, "rows_changed_by_time", lambda node: None),
    ],
    "no value moves": [(project, "differs", lambda values: None)],
    "no value in a delta moves": [(weighted_delta, "differs", lambda values: None)],
    "of what changed, the time now": [(weighted_delta, "at_last_refresh", lambda part: part)],
    "the old values are those of now": [(project, "at_last_refresh", lambda part: part)],
    "an old state has the time of now": [(facts, "at_last_refresh", lambda part: part)],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_with_time_are_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, wrong in MISTAKES[mistake]:
        monkeypatch.setattr(module, name, wrong)
    assert tally(range(300), "timed", to_first=True).wrong


def test_no_row_has_the_value_of_both_times() -> None:
    """So a value that moves is read in each state by itself."""
    now, last = (Clock(day, f"{day} 00:00:00Z") for day in ("2026-11-22", "2026-11-21"))
    schemas = {"a": [("id", "bigint"), ("d", "date")]}
    query = analyse_query("SELECT id, coalesce(d, current_date()) AS x FROM a", schemas, now=now, last=last)
    upstream = Facts({"a": UpstreamFacts(True, ("id",))}, time_changed=True)
    of_id, of_both = query.identifiers(["id"]), query.identifiers(["id", "x"])
    assert old_or_new.old_or_new(query.node, tuple(of_id), upstream) is not None
    assert old_or_new.old_or_new(query.node, tuple(of_both), upstream) is None


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
    query = analyse_query("SELECT now FROM a WHERE now > 1", {"a": [("now", "int")]})
    assert [name for name, _ in query.columns] == ["now"]
    require_determinism(query.node, query.types, Facts({"a": UpstreamFacts(True)}))


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
        ("SELECT id FROM (SELECT id, at AS later FROM t) AS q WHERE later >= '08:30'", True),
        ("SELECT id FROM (SELECT id, max(at) AS m FROM t GROUP BY id) AS q WHERE m >= '08:30'", True),
        ("SELECT id FROM t WHERE (at) >= '08:30'", True),
        ("SELECT id FROM t WHERE at + INTERVAL 1 HOUR >= ('08:30')", True),
        ("SELECT id FROM t WHERE date_trunc('HOUR', at) >= '08:30'", True),
        ("SELECT id FROM t WHERE at >= to_timestamp('08:30')", True),
        ("SELECT id, coalesce(at, '08:30') AS z FROM t", True),
        ("SELECT id FROM t WHERE at >= 'T08'", True),
        ("SELECT id FROM t WHERE at >= to_utc_timestamp('08:30', 'Europe/Berlin')", True),
        ("SELECT id, at - '08:30' AS d FROM t", True),
        ("SELECT id, timestampadd(MINUTE, id, '08:30') AS z FROM t", True),
        ("SELECT id, nvl2(id, at, '08:30') AS z FROM t", True),
        ("SELECT id, date_trunc('HOUR', '08:30') AS z FROM t", True),
        ("SELECT id FROM t WHERE opens = 'T1' OR concat(opens, '08:30') = 'x' OR hour('08:30') = id", False),
        ("SELECT id, CASE WHEN id > 1 THEN at ELSE '08:30' END AS z FROM t", True),
        ("SELECT id, CASE WHEN id > 1 THEN opens ELSE '08:30' END AS z FROM t", False),
        ("SELECT id FROM (SELECT id, opens AS o FROM t) AS q WHERE o >= '08:30'", False),
        ("SELECT id FROM t WHERE at >= '2024-02-29 08:30'", False),
        ("SELECT id FROM t WHERE opens >= '08:30' AND opens < '17:00'", False),
        ("SELECT id FROM t WHERE date_format(at, 'HH:mm') = '08:30'", False),
        ("SELECT id, to_timestamp(concat(opens, ' 00:00:00')) AS c FROM t", False),
        ("SELECT id, coalesce(opens, '00:00') AS c, TIME '08:30' AS d FROM t", False),
        ("SELECT id, at + INTERVAL '10:30' HOUR TO MINUTE AS c FROM t", False),
        ("SELECT id, p.name FROM t JOIN (VALUES ('08:30', 'early')) AS p(at, name) ON opens = p.at", False),
        ("SELECT id, '16:9' AS c FROM t WHERE opens LIKE '12:3%'", False),
        ("SELECT id, CASE at WHEN '10:30' THEN 1 ELSE 0 END AS c FROM t", True),
        ("SELECT id, CASE date_trunc('HOUR', at) WHEN '10:30' THEN '1:1' END AS c FROM t", True),
        ("SELECT id FROM t WHERE st.at >= '10:30' OR t.st.slot = '1:00'", True),
        ("SELECT id FROM t WHERE ats[0] >= '10:30'", True),
        ("SELECT id FROM t WHERE element_at(ats, 1) >= '10:30'", True),
        ("SELECT id FROM t WHERE try_to_timestamp(opens) >= '10:30'", True),
        ("SELECT id FROM t WHERE make_timestamp(2026, 1, 1, 1, 1, id) >= '10:30'", True),
        ("SELECT id FROM t WHERE timestampadd(HOUR, 1, at) >= '10:30'", True),
        ("SELECT id FROM t WHERE nvl2(id, at, at) >= '10:30'", True),
        ("SELECT id FROM t WHERE (at, id) IN (('10:30', 1))", True),
        ("SELECT id, array(at, '10:30') AS c FROM t", True),
        ("SELECT id, map('a', at, 'b', '10:30') AS c FROM t", True),
        ("SELECT id FROM t WHERE array_max(ats) > '10:30'", True),
        ("SELECT id FROM t WHERE try_add(at, INTERVAL 1 DAY) > '10:30'", True),
        ("SELECT id FROM t WHERE decode(id, 1, at) > '10:30'", True),
        ("SELECT id, CASE '10:30' WHEN at THEN 1 ELSE 0 END AS c FROM t", True),
        ("SELECT id, CASE '10:30' WHEN opens THEN 1 ELSE 0 END AS c FROM t", False),
        ("SELECT id FROM t WHERE split(CAST(at AS STRING), ' ')[1] > '10:30'", False),
        ("SELECT id FROM t WHERE array_max(slots) > '10:30'", False),
        ("SELECT id FROM t WHERE from_json(opens, 'at TIMESTAMP').at > '10:30'", True),
        ("SELECT id FROM t WHERE from_json(opens, 'slot STRING').slot > '10:30'", False),
        ("SELECT id FROM t WHERE coalesce(date_format(at, 'HH:mm'), opens) > '10:30'", False),
        ("SELECT id FROM (SELECT id, lag(at) OVER (ORDER BY id) AS s FROM t) AS q WHERE s = '10:30'", True),
        ("SELECT id, x FROM t LATERAL VIEW explode(split(opens, ',')) e AS x WHERE x = '10:30'", False),
        ("SELECT id FROM t LATERAL VIEW json_tuple(opens, 'slot') e AS s WHERE s = '10:30'", False),
        ("SELECT id FROM (SELECT id, split(opens, ',')[0] AS s FROM t) AS q WHERE s = '10:30'", False),
        ("SELECT id FROM (SELECT id, element_at(slots, 1) AS s FROM t) AS q WHERE s = '10:30'", False),
        ("SELECT id FROM (SELECT id, if(id = 1, slots[0], '00:00') AS s FROM t) AS q WHERE s = '1:3'", False),
        (
            "SELECT id FROM (SELECT id, lag(opens) OVER (ORDER BY id) AS s FROM t) AS q WHERE s = '1:30'",
            False,
        ),
        ("SELECT id FROM t WHERE slots[0] = '10:30' OR (opens, id) IN (('10:30', 1))", False),
        ("SELECT id, CASE opens WHEN '10:30' THEN 1 END AS c, array(opens, '10:30') AS d FROM t", False),
    ],
)
def test_a_time_without_a_day_is_one_of_today(sql: str, is_time: bool) -> None:
    inside = [
        *(("st", "struct<at:timestamp,slot:string>"), ("ats", "array<timestamp>")),
        ("slots", "array<string>"),
    ]
    query = analyse_query(sql, {"t": [("id", "int"), ("at", "timestamp"), ("opens", "string"), *inside]})
    found = depends_on_time(query.node, query.types, Facts({"t": UpstreamFacts(True)}))
    assert (found is not None) is is_time
    assert may_depend_on_time(parse(sql)) or not is_time
