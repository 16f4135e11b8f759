"""From which columns the values of a query are computed."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.lineage import lineage

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.properties.column_lineage import Derivation, column_lineage
from tests.extent import extent
from tests.planner.random_queries import OPERATORS, draw
from tests.planner.random_tables import SCHEMAS

OWN = {
    "s": [("id", "bigint"), ("city", "string"), ("price", "decimal(12,2)"), ("n", "int")],
    "k": [("id", "bigint"), ("n", "int"), ("tags", "array<string>")],
}
SAME, MADE, SUMMED = Derivation.IDENTITY, Derivation.TRANSFORMATION, Derivation.AGGREGATION


def lineage_of(sql: str) -> dict[str, dict[str, Derivation]]:
    return {
        name: {f"{one.relation}.{one.name}": how for one, how in sources.items()}
        for name, sources in column_lineage(analyse_query(sql, OWN)).items()
    }


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id, city AS town FROM s", {"id": {"s.id": SAME}, "town": {"s.city": SAME}}),
        ("SELECT id, 1 AS one FROM s WHERE n > 2", {"id": {"s.id": SAME}, "one": {}}),
        ("SELECT id, price * n AS v FROM s", {"id": {"s.id": SAME}, "v": {"s.price": MADE, "s.n": MADE}}),
        (
            "WITH c AS (SELECT id, n + 1 AS m FROM k) SELECT s.id, c.m AS m FROM s JOIN c ON s.id = c.id",
            {"id": {"s.id": SAME}, "m": {"k.n": MADE}},
        ),
        (
            "SELECT city, sum(price) AS p, count(*) AS c FROM s GROUP BY city",
            {"city": {"s.city": SAME}, "p": {"s.price": SUMMED}, "c": {}},
        ),
        (
            "SELECT upper(city) AS u, max(m) AS m FROM (SELECT city, n + 1 AS m FROM s) GROUP BY upper(city)",
            {"u": {"s.city": MADE}, "m": {"s.n": SUMMED}},
        ),
        # The aggregate below counts, although the column is taken as it is.
        (
            "SELECT s.id, t.p FROM s JOIN (SELECT id, sum(n) AS p FROM k GROUP BY id) AS t ON s.id = t.id",
            {"id": {"s.id": SAME}, "p": {"k.n": SUMMED}},
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY city ORDER BY n) AS r, "
            "lag(price) OVER (PARTITION BY city ORDER BY n) AS l, "
            "n / sum(n) OVER (PARTITION BY city) AS share FROM s",
            {"id": {"s.id": SAME}, "r": {}, "l": {"s.price": MADE}, "share": {"s.n": SUMMED}},
        ),
        (
            "SELECT id, n FROM s UNION ALL SELECT id, n + 1 FROM k",
            {"id": {"s.id": SAME, "k.id": SAME}, "n": {"s.n": SAME, "k.n": MADE}},
        ),
        ("SELECT id FROM s EXCEPT SELECT id FROM k", {"id": {"s.id": SAME}}),
        (
            "SELECT id, (SELECT max(n) FROM k WHERE k.id = s.id) AS m FROM s",
            {"id": {"s.id": SAME}, "m": {"k.n": SUMMED}},
        ),
        ("SELECT id FROM s WHERE id IN (SELECT id FROM k)", {"id": {"s.id": SAME}}),
        ("SELECT s.id FROM s LEFT SEMI JOIN k ON s.id = k.id", {"id": {"s.id": SAME}}),
        (
            "SELECT id, tag FROM k LATERAL VIEW explode(tags) t AS tag",
            {"id": {"k.id": SAME}, "tag": {"k.tags": MADE}},
        ),
        ("SELECT id, n FROM k ORDER BY id LIMIT 3", {"id": {"k.id": SAME}, "n": {"k.n": SAME}}),
        ("SELECT DISTINCT city FROM s", {"city": {"s.city": SAME}}),
        (
            "SELECT s.id, coalesce(k.n, s.n) AS n FROM s FULL JOIN k ON s.id = k.id",
            {"id": {"s.id": SAME}, "n": {"k.n": MADE, "s.n": MADE}},
        ),
    ],
)
def test_values_come_from_these_columns(sql: str, expected: dict[str, dict[str, Derivation]]) -> None:
    assert lineage_of(sql) == expected


OTHERWISE_IN_SQLGLOT = frozenset(
    # There, also conditions of subqueries, both keys of USING, and the partition and order of windows.
    operator
    for operator in OPERATORS
    if re.search(r"exists|\bin\b|scalar|correlated|subquery|window|explode|intersect|except|using", operator)
)


def test_random_queries_have_the_lineage_that_sqlglot_finds() -> None:
    compared = 0
    for seed in range(extent(60, 600)):
        case = draw(seed)
        if case.operators & OTHERWISE_IN_SQLGLOT:
            continue
        sources = column_lineage(analyse_query(case.sql, SCHEMAS))
        ours = {name: {f"{one.relation}.{one.name}" for one in found} for name, found in sources.items()}
        assert ours == by_sqlglot(case.sql), case.sql
        compared += 1
    assert compared > 10


def by_sqlglot(sql: str) -> dict[str, set[str]]:
    schema = {table: dict(columns) for table, columns in SCHEMAS.items()}
    return {
        name: {
            f"{one.source.name}.{one.name.rpartition('.')[2]}"
            for one in lineage(name, sql, schema, dialect="spark").walk()
            if isinstance(one.source, exp.Table)
        }
        for name in sqlglot.parse_one(sql, read="spark").named_selects
    }
