"""Random queries over random changes: the refresh of affected keys equals the full query.

``make soak-planner`` runs many more.
"""

from __future__ import annotations

import pytest

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.qualify import without_qualify
from tests.extent import extent
from tests.planner import extended_queries, rewritings
from tests.planner.common_queries import SHAPES
from tests.planner.random_queries import OPERATORS, draw
from tests.planner.random_tables import KEYS, SCHEMAS
from tests.planner.tally import Tally, tally

CASES = extent(150, 1_500)
MORE = extent(8, 0)
OF_TYPES = extent(60, 400)
OF_WORDS = extent(50, 400)
OF_LIMITS = extent(30, 150)
OF_SHAPES = extent(90, 600)
OF_REWRITINGS = extent(40, 300)
OF_EXTENSIONS = extent(60, 400)


@pytest.fixture(scope="module")
def total() -> Tally:
    return tally(range(CASES), "plain")


@pytest.fixture(scope="module")
def typed() -> Tally:
    return tally(range(OF_TYPES), "typed")


def test_no_case_differs(total: Tally) -> None:
    assert not total.wrong, "\n\n".join(total.wrong[:3])


def test_most_cases_are_incremental(total: Tally) -> None:
    assert total.incremental >= 0.8 * CASES
    # The queries are such that there are no other reasons.
    assert set(total.full) <= {"guard", "not-in", "too-large"}
    assert sum(total.not_run.values()) < 0.01 * CASES
    assert total.changed >= 0.5 * CASES


def test_each_operator_occurs(total: Tally) -> None:
    """The short form runs more of the cases that have the operators that its first cases lack."""
    assert set(total.operators) <= set(OPERATORS)
    least = 0.004 * CASES
    rare = set(total.rare(OPERATORS, least))
    more = tally([seed for seed in range(CASES, 3 * CASES) if rare & draw(seed).operators][:MORE], "plain")
    assert not more.wrong, "\n\n".join(more.wrong[:3])
    assert all(total.operators[name] + more.operators[name] >= least for name in rare), rare


def test_no_case_of_several_types_differs(typed: Tally) -> None:
    assert not typed.wrong, "\n\n".join(typed.wrong[:3])
    # Sums of floats are refused, and expressions over unions of two types.
    assert typed.incremental >= extent(0.7, 0.75) * OF_TYPES


def test_other_spellings_have_the_same_plan() -> None:
    worded = tally(range(OF_WORDS), "in other words")
    assert not worded.wrong, "\n\n".join(worded.wrong[:3])
    assert worded.incremental >= 0.85 * OF_WORDS
    assert set(worded.full) <= {"guard", "not-in", "too-large", "extreme", "limit"}


def test_equivalent_queries_have_the_same_result() -> None:
    """Conditions in ON or WHERE, joins in another order, subqueries named or inlined."""
    rewritten = tally(range(OF_REWRITINGS), "rewritten")
    assert not rewritten.wrong, "\n\n".join(rewritten.wrong[:3])
    assert rewritten.incremental >= 0.85 * OF_REWRITINGS
    assert set(rewritten.operators) == set(rewritings.OPERATORS)


def test_the_first_rows_follow_from_a_state() -> None:
    limited = tally(range(OF_LIMITS), "limited")
    assert not limited.wrong, "\n\n".join(limited.wrong[:3])
    assert limited.incremental > 0.8 * OF_LIMITS
    # The state has all rows, or sums of groups; mostly the first rows change with it.
    assert limited.operators["limit"] > 0.3 * OF_LIMITS
    assert limited.operators["stored sums of groups"] > 0


def test_shapes_of_analysts_are_incremental_and_equal() -> None:
    shaped = tally(range(OF_SHAPES), "shaped")
    assert not shaped.wrong, "\n\n".join(shaped.wrong[:3])
    assert shaped.incremental >= 0.9 * OF_SHAPES
    assert set(shaped.operators) == set(SHAPES)


def test_extensions_of_sql_are_refreshed_like_the_query_without() -> None:
    extended = tally(range(OF_EXTENSIONS), "extended")
    assert not extended.wrong, "\n\n".join(extended.wrong[:3])
    assert extended.incremental >= 0.9 * OF_EXTENSIONS
    assert not extended.rare(extended_queries.OPERATORS, 0.05 * OF_EXTENSIONS)


def test_what_is_drawn_for_declared_keys_is_not_determined_without_them() -> None:
    facts = Facts({name: UpstreamFacts(True, key) for name, key in KEYS.items()})
    cases = [extended_queries.draw_extended(seed) for seed in range(150)]
    for case in (case for case in cases if "declared key" in case.operators):
        query = analyse_query(without_qualify(case.written), SCHEMAS)
        with pytest.raises(CannotPlan, match=r"the order (of|in which) rows"):
            require_determinism(query.node, query.types, facts)
