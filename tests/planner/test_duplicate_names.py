"""Two columns of one name in a subquery are no reason for anything where no text names either."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, judge
from tests.planner.random_queries import Case
from tests.planner.random_tables import SCHEMAS

JOINED = "SELECT t1.*, t2.id, t2.v FROM a AS t1 LEFT JOIN b AS t2 ON t2.aid = t1.id"
SOME = f"WITH j AS ({JOINED}), c AS (SELECT * FROM j WHERE x > 0) "


@pytest.mark.parametrize(
    "sql",
    [
        SOME + "SELECT c.x AS o1, c.v AS o2 FROM c",
        SOME + "SELECT q.x AS o1, count(*) AS o2 "
        "FROM (SELECT * FROM c UNION ALL SELECT * FROM j) AS q GROUP BY q.x",
        f"SELECT q.x AS o1, q.v AS o2 FROM (SELECT * FROM (SELECT * FROM ({JOINED}) AS r) AS s) AS q",
    ],
)
def test_it_is_refreshed_as_any_other(sql: str) -> None:
    database = Database()
    for seed in range(15):
        verdict = judge(database, Case(seed, sql, ("o1", "o2"), ("o1",), frozenset()))
        assert verdict.outcome == "incremental", f"seed {seed}: {verdict.why}"


def test_to_name_one_is_an_error_unless_both_are_the_same_column() -> None:
    with pytest.raises(CannotPlan, match="id"):
        analyse_query(SOME + "SELECT c.id AS o1 FROM c", SCHEMAS)
    twice = "WITH j AS (SELECT *, x FROM a), c AS (SELECT * FROM j) SELECT c.x AS o1, c.y AS o2 FROM c"
    assert [name for name, _ in analyse_query(twice, SCHEMAS).columns] == ["o1", "o2"]
