"""Groups that are compared with a total are refreshed from a state of the groups, which gives the total."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.planner.auxiliary import null_groups, own_key, totals_of_groups
from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView, outer_sql, state_sql
from dbt_arctic.planner.auxiliary.nested_view import find_nested_view
from dbt_arctic.planner.delta.plan import analyse_query
from tests.extent import extent
from tests.planner.oracle import Database, Verdict
from tests.planner.random_queries import Case
from tests.planner.sums_of_queries import SeveralGroupsError
from tests.planner.tally import tally
from tests.planner.totals import OPERATORS, judge_totals

CASES = extent(25, 500)
CHANGES = extent(8, 60)
SCHEMAS = {
    "s": [("id", "bigint"), ("city", "string"), ("price", "decimal(12,2)"), ("n", "int")],
    "k": [("id", "bigint"), ("n", "int")],
}
KEYS = {"s": ("id",), "k": ("id",)}
NAMES = {"s": "s", "k": "k"}
GROUPED = "FROM s WHERE city IS NOT NULL GROUP BY city"
ROWS = "FROM s WHERE city IS NOT NULL"


def state_of(sql: str, key: str = "city", worth: int = 50) -> AuxiliaryView | None:
    return find_nested_view(analyse_query(sql, SCHEMAS), KEYS, {"s": 100, "k": 10}, worth, own=[key])


def test_random_groups_beside_totals_are_those_of_the_full_query() -> None:
    verdict_of = tally(range(CASES), "totals")
    assert not verdict_of.wrong, "\n\n".join(verdict_of.wrong[:3])
    assert verdict_of.incremental >= 0.9 * CASES
    assert not verdict_of.rare(OPERATORS, 0.4 * CASES)


@pytest.mark.parametrize(
    ("sql", "has_state"),
    [
        (f"SELECT city, sum(price) / (SELECT sum(price) {ROWS}) AS share {GROUPED}", True),
        (f"SELECT city, count(*) AS n {GROUPED} HAVING count(*) > (SELECT count(*) / 100 {ROWS})", True),
        (
            f"SELECT city, max(n) AS m {GROUPED} HAVING max(n) = "
            "(SELECT max(t.n) FROM s AS t WHERE t.city IS NOT NULL)",
            True,
        ),
        (f"SELECT city, sum(price) AS p {GROUPED} HAVING sum(price) > (SELECT avg(n) * 100 FROM k)", True),
        # A value of the groups themselves.
        (
            f"SELECT city, sum(price) AS p {GROUPED} HAVING sum(price) >= "
            f"(SELECT max(q.p) / 2 FROM (SELECT sum(price) AS p {GROUPED}) AS q)",
            True,
        ),
        # The total is one of other rows, or the sums of the groups do not give it.
        (f"SELECT city, sum(price) / (SELECT sum(price) FROM s) AS share {GROUPED}", False),
        (f"SELECT city, count(*) AS n {GROUPED} HAVING count(*) > (SELECT count(DISTINCT n) {ROWS})", False),
        (f"SELECT city, avg(n) AS n {GROUPED} HAVING avg(n) > (SELECT avg(n) {ROWS})", False),
        # Floating-point sums of groups do not add up to the sum of the rows.
        (
            "SELECT city, sum(CAST(price AS DOUBLE)) / "
            f"(SELECT sum(CAST(price AS DOUBLE)) {ROWS}) AS share {GROUPED}",
            False,
        ),
        # Groups by the key are small, and are recomputed.
        ("SELECT id, sum(n) AS n FROM s GROUP BY id HAVING sum(n) > (SELECT sum(n) / 9 FROM s)", False),
    ],
)
def test_which_queries_have_a_state_of_their_groups(sql: str, has_state: bool) -> None:
    made = state_of(sql)
    assert (made is not None) == has_state
    if made is None:
        return
    assert made.key == ("city",)
    over = outer_sql(made, "state", dict.fromkeys(made.state.output, "decimal(22,2)"), NAMES)
    assert " s AS " not in over, "the large table is read for the state only"


@pytest.mark.parametrize(
    ("total", "is_replaced"),
    [("sum(n)", True), ("count(DISTINCT n)", False), ("avg(n)", False), ("median(n)", False)],
)
def test_only_a_total_that_the_groups_give_is_replaced(total: str, is_replaced: bool) -> None:
    sql = f"SELECT city, count(*) AS n {GROUPED} HAVING count(*) > (SELECT {total} {ROWS})"
    node = analyse_query(sql, SCHEMAS).node
    assert (totals_of_groups.with_totals_of_groups(node) != node) == is_replaced


def test_small_tables_have_none() -> None:
    sql = f"SELECT city, count(*) AS n {GROUPED} HAVING count(*) > (SELECT count(*) / 100 {ROWS})"
    assert state_of(sql, worth=101) is None


def test_a_total_has_the_type_that_it_has_over_the_rows() -> None:
    made = state_of(f"SELECT city, sum(price) / (SELECT sum(price) {ROWS}) AS share {GROUPED}")
    assert made is not None
    types = {"city": "string", "_rows": "bigint", "_sum_1": "decimal(22,2)", "_count_1": "bigint"}
    assert "AS DECIMAL(22, 2)" in outer_sql(made, "state", types, NAMES).upper().replace("(22,2)", "(22, 2)")


@pytest.mark.parametrize(
    ("shown", "key"),
    [
        ("coalesce(city, '?') AS k", ("_key_1",)),
        ("(city) AS k", ("city",)),
        # A total is not a part of a group, whatever it is called.
        ("concat(city, (SELECT count(*) FROM s)) AS k", ("city",)),
    ],
)
def test_the_state_has_the_key_of_the_model_if_the_groups_give_it(shown: str, key: tuple[str, ...]) -> None:
    sql = f"SELECT {shown}, sum(n) AS n FROM s GROUP BY city HAVING sum(n) > (SELECT sum(n) / 9 FROM s)"
    made = state_of(sql, "k")
    assert made is not None
    assert made.key == key
    assert "GROUP BY `s`.`city`" in state_sql(made, NAMES)


BY_HAND = {
    "a count of no rows": (
        "SELECT t1.aid AS o1, count(*) AS o2 FROM b AS t1 WHERE t1.aid > 2 AND t1.v > 1 GROUP BY t1.aid "
        "HAVING count(*) > (SELECT count(*) - 1 FROM b AS t2 WHERE t2.aid > 2 AND t2.v > 1)"
    ),
    "one of no rows": (
        "SELECT coalesce(t1.aid, 9) AS o1, sum(t1.v) AS o2, (SELECT coalesce(count(*), 7) FROM b AS t2 "
        "WHERE t2.v > 2) AS o3 FROM b AS t1 WHERE t1.v > 2 GROUP BY t1.aid"
    ),
    "groups that are NULL": (
        "SELECT coalesce(t1.aid, 9) AS o1, count(*) AS o2 FROM b AS t1 GROUP BY t1.aid "
        "HAVING count(*) * 3 > (SELECT count(*) FROM b AS t2)"
    ),
    "a value of another table": (
        "SELECT coalesce(t1.aid, 9) AS o1, count(*) AS o2 FROM b AS t1 GROUP BY t1.aid "
        "HAVING count(*) >= (SELECT min(t2.z) FROM a AS t2)"
    ),
    "groups of two columns": (
        "SELECT coalesce(t1.aid, 9) AS o1, count(*) AS o2 FROM b AS t1 GROUP BY t1.aid, t1.v "
        "HAVING count(*) * 4 > (SELECT count(*) FROM b AS t2)"
    ),
    "a comparison that drops NULL": (
        "SELECT t1.aid AS o1, count(*) AS o2, count(*) - (SELECT count(*) FROM b AS t2) AS o3 FROM b AS t1 "
        "GROUP BY t1.aid HAVING t1.aid >= 0"
    ),
    "a condition on the total": (
        "SELECT t1.aid AS o1, count(*) AS o2, count(*) - (SELECT count(*) FROM b AS t2 WHERE t2.aid > 0 "
        "AND t2.v > 1) AS o3 FROM b AS t1 WHERE t1.aid > 0 GROUP BY t1.aid"
    ),
}


def verdict_of(sql: str) -> list[Verdict]:
    database, columns = Database(), tuple(f"o{place}" for place in (1, 2, 3) if f" AS o{place}" in sql)
    return [judge_totals(database, Case(seed, sql, columns, ("o1",), frozenset())) for seed in range(CHANGES)]


@pytest.mark.parametrize("name", BY_HAND)
def test_what_random_cases_rarely_have(name: str) -> None:
    outcomes = {one.outcome for one in verdict_of(BY_HAND[name])}
    assert "wrong" not in outcomes
    assert "incremental" in outcomes


def _any_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any total is thought to be one of the grouped rows."""
    monkeypatch.setattr(totals_of_groups, "canonical_sql", lambda node: "")


def _any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is computed from some groups is thought to identify a row."""
    monkeypatch.setattr(own_key, "unique_keys", lambda *_: [frozenset[str]()])


def _without_any_null_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that are NULL are left out although the query shows them."""
    right: Callable[..., Any] = null_groups._grouped

    def wrong(node: Any, names: Any, facts: Any) -> Any:
        return right(node, frozenset(name for name, _ in node.groups), facts)

    monkeypatch.setattr(null_groups, "_grouped", wrong)


WRONG: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "a total of other rows": (_any_rows, "a condition on the total"),
    "a key of several groups": (_any_key, "groups of two columns"),
    "a group that is NULL": (_without_any_null_group, "a value of another table"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_purpose_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, case = WRONG[name]
    wrong(monkeypatch)
    assert is_noticed(case)


def is_noticed(case: str) -> bool:
    try:
        return any(one.outcome == "wrong" for one in verdict_of(BY_HAND[case]))
    except SeveralGroupsError:
        return True
