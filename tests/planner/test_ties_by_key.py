"""The text of a query with the key in the orders that leave rows equal, and nothing else changed."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.delta.ties_by_key import ordered_by_key
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

SCHEMAS = {
    "t": [("id", "bigint"), ("g", "string"), ("v", "bigint"), ("d", "date"), ("odd`name", "int")],
    "o": [("id", "bigint"), ("oid", "bigint"), ("v", "bigint")],
    "raw": [("k", "bigint"), ("v", "string")],
}
KEYS = {"t": ("id",), "o": ("id", "oid"), "raw": ()}
FACTS = Facts({name: UpstreamFacts(True, key) for name, key in KEYS.items()})

ORDERED = {
    # Windows: at « what is added is put.
    "SELECT id, row_number() OVER (PARTITION BY g ORDER BY d«, `t`.`id`») AS n FROM t": "id",
    "SELECT id, lag(v) OVER (ORDER BY d DESC NULLS LAST«, `q`.`id`») AS n FROM (SELECT * FROM t) AS q": "id",
    "SELECT id, sum(v) OVER (ORDER BY (d)«, `t`.`id`» ROWS UNBOUNDED PRECEDING) AS n FROM t": "id",
    "SELECT id, ntile(4) OVER (ORDER BY coalesce(v, length(concat(g, ')')))«, `t`.`id`») AS n FROM t": "id",
    "SELECT id, first_value(v) OVER (ORDER BY d«, `t`.`id`» /* day ) */) AS n FROM t": "id",
    "SELECT t.id, o.oid, lead(o.v) OVER (PARTITION BY t.id ORDER BY t.d«, `o`.`id`, `o`.`oid`») AS n "
    "FROM t JOIN o ON o.id = t.id": "id oid",
    "WITH a AS (SELECT g, d, sum(v) AS s FROM t GROUP BY g, d) "
    "SELECT g, d, row_number() OVER (PARTITION BY g ORDER BY s«, `a`.`d`») AS n FROM a": "g d",
    "SELECT g, d, row_number() OVER (PARTITION BY g ORDER BY sum(v)«, `t`.`d`») AS n FROM t "
    "GROUP BY g, d": "g d",
    "SELECT g, year(d) AS y, row_number() OVER (ORDER BY sum(v)«, `t`.`g`, YEAR(`t`.`d`)») AS n FROM t "
    "GROUP BY g, year(d)": "n",
    # A relation that has no name.
    "SELECT id, row_number() OVER (ORDER BY v«, `id`») AS n FROM (SELECT id, v FROM t)": "id",
    # A number is unique once its order is.
    "SELECT id, lag(v) OVER (ORDER BY n, g) AS p FROM (SELECT id, v, g, "
    "row_number() OVER (ORDER BY d«, `t`.`id`») AS n FROM t) AS q": "id",
    # A name for two windows that both take any of the rows.
    "SELECT id, row_number() OVER w AS n, lag(v) OVER w AS p FROM t WINDOW w AS (PARTITION BY g ORDER BY d«, "
    "`t`.`id`»)": "id",
    # The first rows.
    "SELECT id, v FROM t ORDER BY v DESC«, `id`» LIMIT 3": "id",
    "SELECT id, v FROM t« ORDER BY `id`» LIMIT 3": "id",
    "SELECT g, sum(v) AS s, d FROM t GROUP BY g, d ORDER BY s«, `g`, `d`» LIMIT 3 OFFSET 1": "g d",
    "SELECT id, v FROM t UNION ALL SELECT id, v FROM o ORDER BY v«, `id`, `v`» LIMIT 3": "id v",
    "SELECT id, n FROM (SELECT id, row_number() OVER (ORDER BY d«, `t`.`id`») AS n FROM t) AS q "
    "ORDER BY n % 2«, `id`» LIMIT 3": "id",
    # The first rows of a LATERAL subquery.
    "SELECT t.id, m.v FROM t LEFT JOIN LATERAL (SELECT o.v FROM o WHERE o.id = t.v "
    "ORDER BY coalesce(o.v, 1) DESC«, `o`.`oid`» LIMIT 1) m ON true": "id",
    "SELECT t.id, m.w FROM t, LATERAL (SELECT o.v + 1 AS w FROM o "
    "WHERE o.id = t.v ORDER BY length(v)«, `o`.`oid`» LIMIT 2 /* ORDER BY v */) m": "id w",
    # Sets, in the order of their values.
    "SELECT g, replace(CAST(«sort_array(»collect_set(v)«)» AS STRING), '[', 'collect_set(v)') AS s FROM t "
    "GROUP BY g": "g",
    "SELECT g, «sort_array(»COLLECT_SET(DISTINCT (v)) FILTER (WHERE (v) > 1)«)» AS s, "
    "array_join(array_sort(collect_set(v)), ',') AS x /* collect_set(v) */ FROM t GROUP BY g": "g",
}

AS_IT_IS = {
    # Equal rows have one rank, and a frame of values has all of them.
    "SELECT id, rank() OVER (PARTITION BY g ORDER BY d) AS n FROM t": "id",
    "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY d) AS n FROM t": "id",
    "SELECT id, last_value(v) OVER (PARTITION BY g ORDER BY d) AS n FROM t": "id",
    "SELECT id, collect_list(v) OVER (PARTITION BY g ORDER BY d) AS n FROM t": "id",
    "SELECT id, rank() OVER w AS n, row_number() OVER w AS p FROM t WINDOW w AS (ORDER BY d)": "id",
    # There are no ties.
    "SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM t": "id",
    "SELECT g, sum(v) AS s FROM t GROUP BY g ORDER BY s, g LIMIT 3": "g",
    # No key is known.
    "SELECT k, row_number() OVER (PARTITION BY v ORDER BY length(v)) AS n FROM raw": "n",
    "SELECT q.n, row_number() OVER (ORDER BY q.v) AS m FROM (SELECT v, d AS n FROM t) AS q": "m",
    # The name of the column would be another one.
    "SELECT g, size(array_distinct(collect_set(v))) FROM t GROUP BY g": "g",
    # A window has a set for each row.
    "SELECT id, collect_set(v) OVER (PARTITION BY g ORDER BY id) AS n FROM t": "id",
    # It is not understood.
    "SELECT id, row_number() OVER (ORDER BY d) AS n FROM t TABLESAMPLE (10 PERCENT)": "id",
}


def by_key(sql: str, key: str) -> str:
    return ordered_by_key(sql, key.split(), FACTS, lambda tree: analyse_query(tree, SCHEMAS))


@pytest.mark.parametrize("marked", ORDERED)
def test_a_key_is_added_where_rows_are_equal(marked: str) -> None:
    parts = [part.partition("»") for part in marked.split("«")]
    written = parts[0][0] + "".join(rest for _, _, rest in parts[1:])
    key = ORDERED[marked]
    made = by_key(written, key)
    assert made == marked.replace("«", "").replace("»", "")
    assert by_key(made, key) == made
    query = analyse_query(made, SCHEMAS)
    require_determinism(query.node, query.types, FACTS, key=query.identifiers(key.split()))


@pytest.mark.parametrize("sql", AS_IT_IS)
def test_other_orders_stay_as_they_are(sql: str) -> None:
    assert by_key(sql, AS_IT_IS[sql]) == sql
