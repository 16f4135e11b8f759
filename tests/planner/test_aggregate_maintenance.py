"""Stored sums with what changed added to them are those of the full query; and which queries have them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Node, Scan, map_children
from dbt_arctic.planner.auxiliary import aggregate_maintenance
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.delta.shared_lookups import SIDE
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.typing.stored_types import may_change_types
from tests.extent import extent
from tests.planner.random_tables import SCHEMAS
from tests.planner.sums_of_queries import OPERATORS
from tests.planner.tally import Tally, tally

CASES = extent(60, 400)


@pytest.fixture(scope="module")
def sums_tally() -> Tally:
    return tally(range(CASES), "summed")


def test_what_changed_added_to_the_stored_sums_gives_those_of_the_full_query(sums_tally: Tally) -> None:
    assert not sums_tally.wrong, "\n\n".join(sums_tally.wrong[:3])
    assert sums_tally.incremental > 0.8 * CASES
    assert set(sums_tally.full) <= {"extreme", "guard", "too-large", "unsupported"}


def test_sums_extremes_and_counts_of_distinct_values_occur(sums_tally: Tally) -> None:
    assert not sums_tally.rare(OPERATORS, 0.04 * CASES)
    # Extremes follow from the changes, unless they have left their group: then its rows are read.
    kept, lost = (sums_tally.operators[name] for name in OPERATORS[2:4])
    assert kept > 2 * lost


@pytest.mark.parametrize("mistake", ["what was lost is added", "the rows of before are asked"])
def test_mistakes_with_sums_are_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, new_extremes = (
        aggregate_maintenance._weighted_value,
        aggregate_maintenance._new_extremes,
    )

    def added(argument: exp.Expression | None, *, is_count: bool, is_short: bool = False) -> exp.Expression:
        if argument is not None and not is_count:
            return argument
        return right(argument, is_count=is_count, is_short=is_short)

    def at_old(node: Node) -> Node:
        is_upstream = isinstance(node, Scan) and node.source in SCHEMAS
        return replace(node, state="old") if is_upstream else map_children(node, at_old)

    if mistake == "what was lost is added":
        monkeypatch.setattr(aggregate_maintenance, "_weighted_value", added)
    else:
        monkeypatch.setattr(
            aggregate_maintenance, "_new_extremes", lambda *given: at_old(new_extremes(*given))
        )
    assert tally(range(200), "summed", to_first=True).wrong


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
    query = analyse_query(f"SELECT {columns} FROM a GROUP BY x", schemas)
    facts = Facts({"a": UpstreamFacts(True, ("id",))})
    assert (plan_summary_delta(query, ["x"], facts, frozenset({"float_sum"})) is not None) == is_one


@pytest.mark.parametrize("accepted", ["", "ties"])
def test_nothing_is_taken_away_that_may_come_out_otherwise(accepted: str) -> None:
    """Which row is the first may be another one when the old rows are computed again."""
    sql = (
        "SELECT x, count(*) AS n, sum(y) AS s, count(y) AS c FROM (SELECT x, y, row_number() OVER "
        "(PARTITION BY x ORDER BY {}) AS r FROM a) AS q WHERE r = 1 GROUP BY x"
    )
    schemas = {"a": [("id", "int"), ("x", "int"), ("y", "bigint")]}
    facts, accept = Facts({"a": UpstreamFacts(True, ("id",))}), frozenset({accepted})
    # Rows that are equal in y are equal in all that is used, so id decides nothing.
    for order in ("y, id", "y"):
        assert plan_summary_delta(analyse_query(sql.format(order), schemas), ["x"], facts, accept) is not None
    if accepted:
        assert plan_summary_delta(analyse_query(sql.format("x"), schemas), ["x"], facts, accept) is None


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
        query = analyse_query(f"SELECT {shown}{more} FROM a GROUP BY x", schemas)
        assert (plan_summary_delta(query, ["x"], facts) is not None) == is_planned


def test_a_text_may_say_the_type_of_a_value() -> None:
    schemas = {"a": [("id", "int"), ("j", "string")]}
    for text, changes in (("v INT", False), ("v TINYINT", True)):
        query = analyse_query(f"SELECT id, from_json(j, '{text}').v AS v FROM a", schemas)
        assert may_change_types(query.node) == changes
    for value in ("getbit(id, 0)", "xpath_short('<a>1</a>', 'a')"):
        assert may_change_types(analyse_query(f"SELECT id, {value} AS v FROM a", schemas).node)
    for row, changes in (("7S", True), ("smallint(7)", True), ("7", False)):
        query = analyse_query(f"SELECT id, v FROM a JOIN VALUES ({row}) AS t(v) ON a.id = t.v", schemas)
        assert may_change_types(query.node) == changes


def test_distinct_values_of_small_groups_are_recounted() -> None:
    """All lines of an order are as quickly read as those that changed."""
    schemas = {"l": [("o", "int"), ("n", "int"), ("s", "int"), ("d", "double")]}
    facts = Facts({"l": UpstreamFacts(True, ("o", "n"))})
    for group, is_one in (("o", False), ("n", True)):
        query = analyse_query(
            f"SELECT {group}, count(*) AS r, count(DISTINCT s) AS c FROM l GROUP BY {group}", schemas
        )
        assert (plan_summary_delta(query, [group], facts) is not None) == is_one


def test_what_may_come_out_otherwise_when_it_is_looked_up_is_not_counted_so() -> None:
    schemas = {"l": [("o", "int"), ("n", "int"), ("s", "int"), ("d", "double")]}
    facts = Facts({"l": UpstreamFacts(True, ("o",))})
    query = analyse_query(
        "SELECT n, count(*) AS r, count(DISTINCT t) AS c "
        "FROM (SELECT n, s, sum(d) AS t FROM l GROUP BY n, s) AS q GROUP BY n",
        schemas,
    )
    assert plan_summary_delta(query, ["n"], facts, frozenset({"float_sum"})) is None


def test_what_is_counted_once_is_looked_up_without_the_columns_of_sums() -> None:
    sql = "SELECT y, count(*) AS n, count(DISTINCT x) AS d, sum(z) AS s, count(z) AS c FROM a GROUP BY y"
    made = plan_summary_delta(analyse_query(sql, SCHEMAS), ["y"], Facts({"a": UpstreamFacts(True, ("id",))}))
    assert made is not None
    (gathered,) = made.staged.shared_lookups
    assert set(gathered.rows.output) == {"x", "y", SIDE}


@pytest.mark.parametrize("name", ["_txn", "_offset", "_action", "_row_id", "_rows", "_sum_1"])
def test_a_state_has_no_column_that_no_table_of_ours_can_have(name: str) -> None:
    schemas = {"raw": [("id", "int"), (name, "int"), ("x", "int")]}
    query = analyse_query(
        f"SELECT {name} AS k, sum(x) AS s FROM raw GROUP BY {name} HAVING count(*) > 1", schemas
    )
    made = find_auxiliary_view(query, ["k"], {"raw": ("id",)})
    assert made is not None
    assert name not in made.key
    assert len(set(made.state.output)) == len(made.state.output)
