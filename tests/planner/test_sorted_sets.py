"""The text of a query whose sets are sorted, where their order would be arbitrary and nothing else is."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.delta.sorted_sets import sort_sets
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan

SCHEMAS = {"t": [("id", "bigint"), ("g", "string"), ("v", "bigint"), ("f", "double"), ("d", "date")]}
FACTS = Facts({"t": UpstreamFacts(True, ("id",))})

SORTED = [
    # At « and » is what is added.
    "SELECT g, array_join(«sort_array(»collect_set(g || v)«)», ', ') AS s FROM t GROUP BY g",
    "SELECT g, «sort_array(»Collect_Set(v) FILTER (WHERE v > 1)«)» AS s, count(*) AS n FROM t GROUP BY g",
    "SELECT g, «sort_array(»array_agg(DISTINCT v)«)» AS s FROM t GROUP BY g",
    "SELECT g, «sort_array(»collect_list(DISTINCT v)«)» AS s, size(array_agg(v)) AS n FROM t GROUP BY g",
    "WITH q AS (SELECT g, «sort_array(»collect_set(d)«)» AS s FROM t GROUP BY g) SELECT g, s[0] AS x FROM q",
]

AS_IT_IS = [
    # Their order does not matter.
    "SELECT g, size(collect_set(v)) AS n, array_contains(collect_set(v), 3L) AS c FROM t GROUP BY g",
    "SELECT g, sort_array(collect_set(v)) AS s, array_sort(collect_list(DISTINCT v)) AS l FROM t GROUP BY g",
    # A list keeps the order in which rows come, which a user may have chosen.
    "SELECT g, collect_list(v) AS l FROM t GROUP BY g",
    "SELECT g, collect_list(v) AS l, collect_set(v) AS s FROM t GROUP BY g",
    # Equal values are not the same.
    "SELECT g, collect_set(f) AS s FROM t GROUP BY g",
    # The name of the column would be another one.
    "SELECT g, array_agg(DISTINCT v) FROM t GROUP BY g",
    # A window function, and text that is no call.
    "SELECT id, collect_set(v) OVER (PARTITION BY g) AS s FROM t",
    "SELECT g, 'collect_set(v)' AS s FROM t GROUP BY g",
    # They are not understood.
    "SELECT g, collect_set(nothing) AS s FROM t GROUP BY g",
    "SELECT g, collect_set(v AS s FROM t GROUP BY g",
]


def sorted_sets_of(sql: str) -> str:
    return sort_sets(sql, FACTS, lambda tree: analyse_query(tree, SCHEMAS))


@pytest.mark.parametrize("marked", SORTED)
def test_a_set_is_sorted_where_its_order_matters(marked: str) -> None:
    parts = [part.partition("»") for part in marked.split("«")]
    written = parts[0][0] + "".join(rest for _, _, rest in parts[1:])
    with pytest.raises(CannotPlan, match="depends on the order"):
        plan_incremental(analyse_query(written, SCHEMAS), ["g"], FACTS)
    made = sorted_sets_of(written)
    assert made == marked.replace("«", "").replace("»", "")
    assert sorted_sets_of(made) == made
    assert plan_incremental(analyse_query(made, SCHEMAS), ["g"], FACTS).rows is not None


@pytest.mark.parametrize("sql", AS_IT_IS)
def test_other_queries_stay_as_they_are(sql: str) -> None:
    assert sorted_sets_of(sql) == sql
