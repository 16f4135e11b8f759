"""Sums over random queries: the stored ones, with what changed added to them, are those of the full query."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.gathered import SIDE
from dbt_arctic.planner.plan import guard_sql, understand
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.stored import may_change_types
from dbt_arctic.planner.sums import Sums, changes_sql, plan_sums
from tests.planner.oracle import Database, InDuckDB, Prepared, prepare
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import KEYS, SCHEMAS

CASES = 200


def summed(case: Case, extremes: bool = False, once: bool = False) -> Case:
    """Sums over a random query, by one of its columns or over all of it; if asked, with the extremes or how
    many different values there are.
    """
    group, value = case.columns[0], case.columns[-1]
    numbers = f"count(*) AS n, sum({value}) AS s, count({value}) AS c"
    names = ("n", "s", "c")
    if once:
        middle = case.columns[len(case.columns) // 2]
        numbers += f", count(DISTINCT {middle}) AS d, count(DISTINCT {value} + 1) AS e"
        names = (*names, "d", "e")
    if extremes:
        numbers, names = f"{numbers}, min({value}) AS low, max({value}) AS high", (*names, "low", "high")
    if len(case.columns) % 3 == 0:
        sql = f"SELECT 0 AS one, {numbers} FROM (\n{case.sql}\n) AS q"
        return replace(case, sql=sql, key=("one",), columns=("one", *names))
    sql = f"SELECT {group} AS g, {numbers} FROM (\n{case.sql}\n) AS q GROUP BY {group}"
    return replace(case, sql=sql, key=("g",), columns=("g", *names))


def planned(database: Database, ready: Prepared) -> Sums | None:
    """The plan of a case; ``None`` where there is none, or a guard has changed."""
    try:
        sums = plan_sums(ready.query, ready.case.key, ready.facts)
    except CannotPlan:
        return None
    if sums is None or any(database.rows(guard_sql(one, InDuckDB()))[0][0] for one in sums.guards):
        return None
    # Half of the cases have those rows at hand that else would be gathered.
    sums = sums.where_kept(KEYS if ready.case.seed % 2 else ())
    staged = (one.rows for one in (*sums.staged.touched, *sums.staged.gathered))
    database.keep_met((sums.changes, *staged))
    return sums


def added(database: Database, ready: Prepared) -> dict[object, list[object]] | None:
    """The result of before, with the changes added in plain Python; ``None`` where there is no such plan."""
    sums = planned(database, ready)
    if sums is None:
        return None
    totals: dict[object, list[int]] = defaultdict(lambda: [0] * (len(ready.case.columns) - 1))
    for group, *numbers in ready.before:
        totals[group] = [int(str(number or 0)) for number in numbers]
    if sums.changes is not None:
        for group, *numbers in database.rows(changes_sql(sums, InDuckDB())):
            totals[group] = [
                old + int(str(new or 0)) for old, new in zip(totals[group], numbers, strict=True)
            ]
    return {
        group: [rows, total if values else None, values, *others]
        for group, (rows, total, values, *others) in totals.items()
        if rows or sums.whole
    }


def extremes_after(database: Database, ready: Prepared) -> dict[object, tuple[object, object]] | None:
    """Least and greatest value of each group from the stored ones and the changes, in plain Python. A group
    whose value has left it is not there; ``None`` where there is no such plan."""
    sums = planned(database, ready)
    if sums is None:
        return None
    assert sums.extremes == {"low": "min", "high": "max"}
    stored = {group: (low, high) for group, *_, low, high in ready.before}
    net: dict[object, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    if sums.changes is not None:
        for group, rows, *_, low, high in database.rows(changes_sql(sums, InDuckDB())):
            assert low == high
            net[group][low] += int(str(rows))
    found = {}
    for group in {*stored, *net}:
        values = [value for value, count in net[group].items() if value is not None and count > 0]
        lost = {value for value, count in net[group].items() if value is not None and count < 0}
        now = []
        for old, best in zip(stored.get(group, (None, None)), (min, max), strict=True):
            gained = best(values, default=None)
            if old in lost and (gained is None or best(gained, old) != gained):
                break
            now.append(best([one for one in (old, gained) if one is not None], default=None))
        else:
            found[group] = (now[0], now[1])
    return found


@pytest.mark.parametrize("once", [False, True])
def test_extremes_follow_unless_they_have_left_their_group(once: bool) -> None:
    database, followed, left = Database(), 0, 0
    for seed in range(CASES):
        ready = prepare(database, summed(draw(seed), extremes=True, once=once))
        if not isinstance(ready, Prepared):
            continue
        found = extremes_after(database, ready)
        if found is None:
            continue
        expected = {group: (low, high) for group, *_, low, high in ready.expected}
        for group in expected:
            if group in found:
                assert found[group] == expected[group], f"seed {seed}\n{ready.case.sql}"
                followed += ready.changed
            else:
                left += 1
    # Of groups as small as the rows of a key, which keep their extremes more often, none has both.
    assert followed > (2 if once else 3) * left > 0


@pytest.mark.parametrize("once", [False, True])
def test_what_changed_added_to_the_stored_sums_gives_those_of_the_full_query(once: bool) -> None:
    database, judged, changed = Database(), 0, 0
    for seed in range(CASES):
        ready = prepare(database, summed(draw(seed), once=once))
        if not isinstance(ready, Prepared):
            continue
        found = added(database, ready)
        if found is None:
            continue
        expected = {group: numbers for group, *numbers in ready.expected}
        assert found == expected, f"seed {seed}\n{ready.case.sql}"
        judged, changed = judged + 1, changed + ready.changed
    assert judged > 0.6 * CASES
    assert changed > 0.3 * CASES


@pytest.mark.parametrize(
    ("columns", "is_one"),
    [
        ("x, count(*) AS n", True),
        ("x, count(*) AS n, sum(y) AS s, count(y) AS c", True),
        ("x, count(1) AS n, sum(y * 2) AS s, count(y * 2) AS c", True),
        ("x, sum(y) AS s, count(y) AS c", False),
        ("x, count(*) AS n, sum(y) AS s", False),
        ("x, count(*) AS n, sum(y) AS s, count(id) AS c", False),
        ("x, count(*) AS n, sum(z) AS s, count(z) AS c", False),
        ("x, count(*) AS n, max(y) AS m, min(y) AS l", True),
        ("x, count(*) AS n, max(z) AS m", False),
        ("x, count(*) AS n, min(DISTINCT y) AS l", False),
        ("x, count(*) AS n, count(DISTINCT y) AS d", True),
        ("x, count(*) AS n, count(DISTINCT z) AS d, count(DISTINCT id) AS e", True),
        ("x, count(*) AS n, count(DISTINCT y, z) AS d", False),
        (
            "x, count(*) AS n, count(DISTINCT y) AS a, count(DISTINCT y + 1) AS b, count(DISTINCT id) AS c",
            False,
        ),
        ("x, count(*) AS n, count(DISTINCT y) AS d, max(y) AS m", True),
        # Not the values that a sum has been made of.
        ("x, count(*) AS n, count(DISTINCT y) AS d, sum(y) AS s", False),
        ("x, count(*) AS n, sum(DISTINCT y) AS s, count(y) AS c", False),
        ("x, count(*) AS n, sum(y) FILTER (WHERE y > 1) AS s, count(y) AS c", False),
        ("x, count(*) + 1 AS n", False),
        # What is computed from what is stored; not from what is not.
        ("x, count(*) AS n, sum(y) AS s, count(y) AS c, sum(y) / count(*) AS r, 'x' AS l", True),
        ("x, count(*) AS n, count(*) + x AS r", True),
        ("x, count(*) AS n, sum(y) / count(*) AS r", False),
        ("x, count(*) AS n, max(z) + 1 AS r", False),
    ],
)
def test_what_can_be_added_to(columns: str, is_one: bool) -> None:
    schemas = {"a": [("id", "int"), ("x", "int"), ("y", "bigint"), ("z", "double")]}
    query = understand(f"SELECT {columns} FROM a GROUP BY x", schemas)
    facts = Facts({"a": UpstreamFacts(True, ("id",))})
    assert (plan_sums(query, ["x"], facts, frozenset({"float_sum"})) is not None) == is_one


@pytest.mark.parametrize("accepted", ["", "ties"])
def test_nothing_is_taken_away_that_may_come_out_otherwise(accepted: str) -> None:
    """Which row is the first may be another one when the old rows are computed again."""
    sql = (
        "SELECT x, count(*) AS n, sum(y) AS s, count(y) AS c FROM (SELECT x, y, row_number() OVER "
        "(PARTITION BY x ORDER BY {}) AS r FROM a) AS q WHERE r = 1 GROUP BY x"
    )
    schemas = {"a": [("id", "int"), ("x", "int"), ("y", "bigint")]}
    facts, accept = Facts({"a": UpstreamFacts(True, ("id",))}), frozenset({accepted})
    assert plan_sums(understand(sql.format("y, id"), schemas), ["x"], facts, accept) is not None
    if accepted:
        assert plan_sums(understand(sql.format("y"), schemas), ["x"], facts, accept) is None


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("max(y)", True),
        ("max(CAST(y AS INT))", True),
        ("max(CAST(y AS SMALLINT))", False),
        ("max(y + 1S)", False),
        ("max(tinyint(y))", False),
    ],
)
def test_nothing_is_computed_from_what_is_stored_in_another_type(value: str, is_one: bool) -> None:
    schemas = {"a": [("id", "int"), ("x", "int"), ("y", "int"), ("d", "decimal(10,2)")]}
    facts = Facts({"a": UpstreamFacts(True, ("id",))})
    shown = f"x, count(*) AS n, sum(d) AS s, count(d) AS c, {value} AS m"
    for more, is_planned in ((f", sum(d) / {value} AS r", is_one), ("", True)):
        query = understand(f"SELECT {shown}{more} FROM a GROUP BY x", schemas)
        assert (plan_sums(query, ["x"], facts) is not None) == is_planned


def test_a_text_may_say_the_type_of_a_value() -> None:
    schemas = {"a": [("id", "int"), ("j", "string")]}
    for text, changes in (("v INT", False), ("v TINYINT", True)):
        query = understand(f"SELECT id, from_json(j, '{text}').v AS v FROM a", schemas)
        assert may_change_types(query.node) == changes


def test_different_values_of_small_groups_are_counted_anew() -> None:
    """All lines of an order are as quickly read as those that changed."""
    schemas = {"l": [("o", "int"), ("n", "int"), ("s", "int"), ("d", "double")]}
    facts = Facts({"l": UpstreamFacts(True, ("o", "n"))})
    for group, is_one in (("o", False), ("n", True)):
        query = understand(
            f"SELECT {group}, count(*) AS r, count(DISTINCT s) AS c FROM l GROUP BY {group}", schemas
        )
        assert (plan_sums(query, [group], facts) is not None) == is_one


def test_what_may_come_out_otherwise_when_it_is_looked_up_is_not_counted_so() -> None:
    schemas = {"l": [("o", "int"), ("n", "int"), ("s", "int"), ("d", "double")]}
    facts = Facts({"l": UpstreamFacts(True, ("o",))})
    query = understand(
        "SELECT n, count(*) AS r, count(DISTINCT t) AS c "
        "FROM (SELECT n, s, sum(d) AS t FROM l GROUP BY n, s) AS q GROUP BY n",
        schemas,
    )
    assert plan_sums(query, ["n"], facts, frozenset({"float_sum"})) is None


def test_what_is_counted_once_is_looked_up_without_the_columns_of_sums() -> None:
    sql = "SELECT y, count(*) AS n, count(DISTINCT x) AS d, sum(z) AS s, count(z) AS c FROM a GROUP BY y"
    sums = plan_sums(understand(sql, SCHEMAS), ["y"], Facts({"a": UpstreamFacts(True, ("id",))}))
    assert sums is not None
    (gathered,) = sums.staged.gathered
    assert set(gathered.rows.output) == {"x", "y", SIDE}
