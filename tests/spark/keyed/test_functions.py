"""What the planner makes of an expression means to Spark what the user wrote: for each function of Spark.

Spark's own examples of its functions are queries. Each is understood, written again from the tree of
operators, and optimised by Spark beside the text that it came from: the plans, or at least the rows, are
to be the same. What the planner does not understand, or does not take for determined, is not compared: it
runs as it was written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.planner.determined import check_determined
from dbt_arctic.planner.facts import Facts
from dbt_arctic.planner.plan import full_sql, understand
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import InDuckDB

_EXAMPLE = re.compile(r"^\s*> (SELECT .*?);\s*$", re.MULTILINE | re.DOTALL)

ACCEPTED = frozenset({"ties", "float_sum", "order_dependent", "approximate"})
"""What only makes the last digits, or the order, of a result open: the meaning is compared all the same."""

TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(12,3)",
    "decimal",
    "byte",
    "short",
    "integer",
    "long",
    "real",
    "dec(5,2)",
    "numeric(7,1)",
    "string",
    "binary",
    "char(4)",
    "varchar(7)",
    "date",
    "time",
    "time(3)",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
    "interval year",
    "interval year to month",
    "interval day",
    "interval day to second",
    "interval hour",
    "interval second",
    "interval minute to second",
]

EXPRESSIONS = r"""
x + y
x - y
x * y
x / y
x % y
x DIV y
-x
~x
x & y
x ^ y
(x | y)
x << 2
x >> 1
x = y
x == y
x <> y
x != y
x <=> y
NOT x > y AND x < 3 OR y >= 4
x BETWEEN 1 AND y
x IN (1, y, 3)
x NOT IN (1, 2)
x IS NULL
x IS NOT NULL
x IS DISTINCT FROM y
x IS NOT DISTINCT FROM y
s || 'a' || x
s LIKE 'a%'
s LIKE 'a!%%' ESCAPE '!'
s NOT LIKE 'b_'
s ILIKE 'A%'
s RLIKE 'a.b'
s REGEXP '[0-9]+'
s NOT ILIKE '%x'
CASE x WHEN 1 THEN 'a' ELSE s END
CASE WHEN x > 1 THEN y END
IF(x > 1, 'a', 'b')
x::string
a[0]
a[x]
m['k']
m[s]
t.p
t.q.r
transform(a, e -> e + x)
transform(a, (e, i) -> e * i)
aggregate(a, 0, (b, e) -> b + e, b -> b * 2)
1L
1S
2Y
1.5
1.5D
1.5F
1.5BD
1e3
'it''s'
"double"
r'raw\d'
X'1F'
TIME '10:11:12'
DATE '2024-02-29'
TIMESTAMP '2024-02-29 10:11:12'
TIMESTAMP_NTZ '2024-02-29 10:11:12'
TIMESTAMP_LTZ '2024-02-29 10:11:12'
INTERVAL '1' DAY
INTERVAL 2 HOURS
INTERVAL '1-2' YEAR TO MONTH
INTERVAL '1 02:03:04' DAY TO SECOND
INTERVAL 1 DAY 2 HOURS
d + INTERVAL 1 DAY
d - INTERVAL '2' MONTH
EXTRACT(YEAR FROM d)
EXTRACT(DAYOFWEEK FROM d)
TRIM(BOTH 'x' FROM s)
TRIM(LEADING FROM s)
TRIM(s)
SUBSTRING(s FROM 2 FOR 3)
SUBSTRING(s, 2)
POSITION('a' IN s)
OVERLAY(s PLACING 'zz' FROM 2 FOR 1)
CAST(s AS DATE)
TRY_CAST(s AS INT)
date_add(d, x)
dateadd(DAY, x, d)
datediff(MONTH, d, d)
timestampadd(HOUR, x, d)
timestampdiff(DAY, d, d)
date_trunc('MONTH', d)
s COLLATE UTF8_LCASE
NULL
array(1, x)
map('k', x)
struct(x, y)
named_struct('a', x)
(x, s)
CAST(NULL AS ARRAY<INT>)
CAST(m AS MAP<STRING, BIGINT>)
CAST(t AS STRUCT<p: BIGINT, q: STRUCT<r: STRING>>)
!(x > 1)
true AND NOT false
"it''s"
"it""s"
'say ""'
'x' 'y'
''''
""".strip().split("\n")

GROUPS = [
    "CUBE (x, s)",
    "ROLLUP (x, s)",
    "x, s WITH CUBE",
    "x, s GROUPING SETS ((s), (x, s), ())",
    "GROUPING SETS ((s), (x, s), (x))",
    "x, ROLLUP (s)",
]

ROWS = """SELECT CAST(id AS INT) AS x, CAST(id + 1 AS INT) AS y, string(id) AS s, array(int(id), 2) AS a,
map('k', CAST(id AS INT)) AS m, date_add(DATE '2024-01-31', CAST(id AS INT)) AS d,
named_struct('p', CAST(id AS INT), 'q', named_struct('r', string(id))) AS t FROM range(3)"""
"""Nothing that is a constant: Spark would compute it before the plans are compared."""

SCHEMA = {
    "given": [
        *(("x", "int"), ("y", "int"), ("s", "string"), ("a", "array<int>"), ("m", "map<string,int>")),
        *(("d", "date"), ("t", "struct<p:int,q:struct<r:string>>")),
    ]
}


def examples(connection: SessionConnection) -> Iterator[tuple[str, str]]:
    """Each function, with the queries that Spark shows for it."""
    registry = connection.session._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction().iterator()
    while names.hasNext():
        name = names.next()
        for found in _EXAMPLE.finditer(registry.lookupFunction(name).get().getExamples()):
            yield name.unquotedString(), " ".join(found[1].split())


def optimised(connection: SessionConnection, sql: str) -> Any:
    return connection.session.sql(sql)._jdf.queryExecution().optimizedPlan()


def rows(found: list[Any]) -> list[str]:
    return sorted(repr(tuple(row)) for row in found)


def other_than_written(connection: SessionConnection, sql: str) -> str:
    """How the query that the planner writes differs from ``sql``; empty where it does not.

    :raises CannotPlan: it would not be written.
    """
    query = understand(sql, SCHEMA)
    check_determined(query.node, query.types, Facts({}), ACCEPTED)
    text = full_sql(query, InDuckDB())
    try:
        if optimised(connection, text).sameResult(optimised(connection, sql)):
            return ""
        found, expected = (connection.session.sql(one).collect() for one in (text, sql))
    except PySparkException as error:
        return f"{sql} became {text}: {error}"
    return "" if rows(found) == rows(expected) else f"{sql} became {text}"


@pytest.fixture
def given(connection: SessionConnection) -> SessionConnection:
    connection.session.conf.set("spark.sql.timeType.enabled", "true")
    optimised(connection, f"CREATE OR REPLACE TEMPORARY VIEW given AS {ROWS}")
    return connection


def test_functions_mean_what_was_written(given: SessionConnection) -> None:
    found: Counter[str] = Counter()
    others = []
    for function, sql in examples(given):
        try:
            optimised(given, sql)
        except PySparkException:
            continue  # an example of an error
        try:
            other = other_than_written(given, sql)
        except CannotPlan:
            found["left as it is"] += 1
            continue
        found["compared"] += 1
        if other:
            others.append(f"{function}: {other}")
    assert others == [], "\n".join(others)
    assert found["compared"] > 900


@pytest.mark.parametrize(
    "queries",
    [
        pytest.param(
            [f"SELECT CAST(s AS {one}), TRY_CAST(s AS {one}) FROM given" for one in TYPES], id="types"
        ),
        pytest.param([f"SELECT {one} FROM given" for one in EXPRESSIONS], id="expressions"),
        pytest.param(
            [f"SELECT x, s, grouping_id() AS g, count(*) AS n FROM given GROUP BY {one}" for one in GROUPS],
            id="groups",
        ),
    ],
)
def test_expressions_mean_what_was_written(given: SessionConnection, queries: list[str]) -> None:
    others = [other for sql in queries if (other := other_than_written(given, sql))]
    assert others == [], "\n".join(others)
