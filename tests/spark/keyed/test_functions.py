"""The planner's rendering of an expression has the same meaning in Spark as the user's text, for each
function of Spark.

Spark's own examples of its functions are queries. Each is parsed, rendered from the tree of operators, and
optimised by Spark, like the original text: the plans, or at least the rows, must be the same. Queries that
the planner refuses, or that are not deterministic, are not compared: they run unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.function_types import NUMERIC
from dbt_arctic.planner.spark.functions import kind_of
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import is_known, read_type
from tests.extent import extent, first
from tests.planner.oracle import InDuckDB
from tests.unit.planner.typed_expressions import BY_KIND, COLUMNS, EXACTLY, agrees

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
CAST(x AS DECIMAL(10,2)) / +3
CAST(x AS DECIMAL(10,2)) / -3
CAST(x AS DECIMAL(10,2)) / -(3)
CAST(x AS DECIMAL(10,2)) / - -3
concat(+s, 'x')
coalesce(nullif(s, s), -1::STRING)
concat(x, -1L::STRING)
-128::TINYINT
-x::STRING
2 -1::INT
x + +1
d + INTERVAL +1 DAY
s LIKE ANY ('1%', '2')
s NOT LIKE ALL ('1%', '2')
(DATE '2020-01-05')::TIMESTAMP
x > 1 IS DISTINCT FROM y > 2
-2147483648 + x
100000000000000000000 + x
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
]

OPERATORS = ["+", "-", "*", "/", "%", "DIV", "&", "^", "|", "<<", ">>", "||"]
TESTS = ["=", "<=>", "<", ">=", "<>", "AND", "OR", "IS DISTINCT FROM"]

QUERIES = """
SELECT x FROM given WHERE d > DATE '2024-03-01' - INTERVAL 1 DAY 2 HOURS
SELECT CAST(d AS TIMESTAMP) - INTERVAL 1 DAY 2 HOURS 3 MINUTES AS t FROM given
SELECT 2 * INTERVAL 1 DAY 2 HOURS AS i, -INTERVAL 1 DAY 2 HOURS AS j, x FROM given
SELECT id, u, v, w FROM lefts FULL JOIN rights USING (id) LEFT JOIN thirds USING (id)
SELECT id, u, v, w FROM lefts RIGHT JOIN rights USING (id) JOIN thirds USING (id)
SELECT id, u, v, w FROM lefts LEFT JOIN rights USING (id) FULL JOIN thirds USING (id)
SELECT id, u, v FROM lefts NATURAL FULL JOIN rights
SELECT id, u, v FROM (SELECT lpad(id, 2, '0') AS id, u FROM lefts) l INNER JOIN rights USING (id)
SELECT id, u, v FROM (SELECT lpad(id, 2, '0') AS id, u FROM lefts) l LEFT JOIN rights USING (id)
SELECT id, u, v FROM (SELECT lpad(id, 2, '0') AS id, u FROM lefts) l RIGHT JOIN rights USING (id)
SELECT id, u, v FROM (SELECT lpad(id, 2, '0') AS id, u FROM lefts) l FULL JOIN rights USING (id)
SELECT id, u, v FROM lefts RIGHT JOIN (SELECT lpad(id, 2, '0') AS id, v FROM rights) r USING (id)
SELECT * FROM (SELECT lpad(id, 2, '0') AS id FROM lefts) l JOIN rights USING (id) LEFT JOIN thirds USING (id)
SELECT id FROM lefts l JOIN rights USING (id) FULL JOIN (SELECT bigint(id) AS id FROM thirds) t USING (id)
SELECT id FROM lefts LEFT ANTI JOIN rights USING (id)
SELECT * FROM lefts JOIN rights USING (id) LEFT JOIN thirds USING (id)
SELECT m.k AS a, m.K AS b, T.Q.R AS c FROM given
SELECT map_filter(map('userId', x), (k, v) -> v > 0).userId AS u FROM given
SELECT transform(array(map('Key', x)), e -> e.Key) AS k FROM given
SELECT (SELECT max(u) FROM lefts JOIN rights USING (id) WHERE id = given.x) AS m, x FROM given
SELECT id, u, v, w FROM lefts NATURAL FULL JOIN rights NATURAL LEFT JOIN thirds
WITH q AS (SELECT x, y AS customer FROM given) SELECT x, to_json(struct(x, customer)) AS j FROM q
SELECT to_json(struct(x AS customerName, y, t.p, x + y, 'a', CAST(s AS INT))) AS j FROM given
SELECT to_json(struct(x, struct(y AS inside), transform(a, e -> struct(e, e AS Other)))) AS j FROM given
SELECT k, max(struct(x, y)).y AS m FROM (SELECT s AS k, y AS x, x AS y FROM given) q GROUP BY k
SELECT to_json(CAST(t AS STRUCT<Foo: INT, Bar: STRUCT<Baz: STRING>>)) AS j FROM given
SELECT to_json(arrays_zip(a, b)) AS j FROM (SELECT a, a AS b FROM given) q
SELECT id FROM lefts WHERE EXISTS (SELECT v + 1 AS u FROM rights WHERE u > 3)
SELECT id FROM lefts WHERE NOT EXISTS (SELECT v AS u FROM rights WHERE u = 5 AND rights.id = lefts.id)
SELECT -x AS x, count(*) AS n FROM given GROUP BY -x HAVING count_if(x > 0) > 0
SELECT -x AS x, count(*) AS n FROM given GROUP BY -x HAVING sum(x) FILTER (WHERE x > 0) > 0
SELECT -x AS x, count(*) AS n FROM given GROUP BY -x HAVING max(x) > 0
SELECT x FROM given CROSS JOIN (VALUES (DATE '2024-02-01', 'a')) AS v(day, name) WHERE d >= day
SELECT to_json(struct((x), (t.p), (y) AS z)) AS j FROM given
WITH q AS (SELECT x AS a1, y AS b1 FROM given) SELECT to_json(CASE WHEN a1 > 0 THEN (a1, b1) END) AS j FROM q
WITH q AS (SELECT x AS a1, y AS b1 FROM given) SELECT ((a1, b1), 1).col1.b1 AS j, (a1, b1).a1 AS k FROM q
SELECT (x, s) AS k, count(*) AS n FROM given GROUP BY (x, s)
SELECT transform(a, d -> dateadd(DAY, d, DATE '2024-01-01')) AS j FROM given
SELECT -x AS x, count(*) AS n FROM given GROUP BY -x HAVING max_by(x, y) > 0
SELECT x FROM given WHERE d = (SELECT max(d) AS d FROM given WHERE d < DATE '2024-12-01')
SELECT array(x, 7)[0] AS one, size(array(a, a)[0]) AS two FROM given
SELECT x, count(*) AS n, 1 AS one FROM given GROUP BY x ORDER BY one, n DESC, x DESC LIMIT 2
SELECT x, count(*) AS n, 2 + 0 AS two FROM given GROUP BY x ORDER BY two, x DESC LIMIT 1
SELECT x, s, grouping_id() AS g, count(*) AS n FROM given GROUP BY ROLLUP (x), s
SELECT x, s, grouping_id() AS g, count(*) AS n FROM given GROUP BY ROLLUP (x), CUBE (s)
SELECT x, s, grouping_id(x, s) AS g, count(*) AS n FROM given GROUP BY x, ROLLUP (s)
SELECT filter(a, x -> X > 1) AS f FROM given
SELECT filter(items, i -> i.p > p) AS f FROM (SELECT array(t) AS items, x AS p FROM given) i
SELECT filter(items, q -> q.p > z) AS f FROM (SELECT array(t) AS items, x + 0 AS z FROM given) i
SELECT transform(a, x -> transform(a, x -> x + 1)) AS f, x FROM given
SELECT q.x FROM (SELECT x, window(CAST(NULL AS TIMESTAMP), '1 hour') AS w FROM given) q
WITH q AS (SELECT x, y FROM given) SELECT x, xxhash64(*) AS h, count(*) OVER (PARTITION BY x) AS n FROM q
SELECT x AS y, y AS x FROM given WHERE x > 0
SELECT x + 1 AS y, y + 1 AS z FROM given
SELECT x AS y, sum(y) AS x FROM given GROUP BY x HAVING y > 0 ORDER BY x
SELECT id FROM lefts WHERE id IN (SELECT v AS id FROM rights WHERE id > 1)
SELECT x FROM given EXCEPT SELECT y FROM given UNION ALL SELECT x FROM given INTERSECT SELECT y FROM given
""".strip().split("\n")

ROWS = """SELECT CAST(id AS INT) AS x, CAST(id + 1 AS INT) AS y, string(id) AS s, array(int(id), 2) AS a,
map('k', CAST(id AS INT)) AS m, date_add(DATE '2024-01-31', CAST(id AS INT)) AS d,
named_struct('p', CAST(id AS INT), 'q', named_struct('r', string(id))) AS t FROM range(3)"""
"""Nothing that is a constant: Spark would compute it before the plans are compared."""

SCHEMA = {
    "given": [
        *(("x", "int"), ("y", "int"), ("s", "string"), ("a", "array<int>"), ("m", "map<string,int>")),
        *(("d", "date"), ("t", "struct<p:int,q:struct<r:string>>")),
    ],
    "lefts": [("id", "int"), ("u", "int")],
    "rights": [("id", "int"), ("v", "int")],
    "thirds": [("id", "int"), ("w", "int")],
}

OF_TABLES = Facts({name: UpstreamFacts(changed=True) for name in SCHEMA})
"""Nothing is known of them: no key either."""


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


def type_of(connection: SessionConnection, sql: str) -> str:
    """That of its rows: the digits of decimals and the spelling of fields included."""
    return str([field.dataType.simpleString() for field in connection.session.sql(sql).schema])


def type_of_column(connection: SessionConnection, sql: str) -> str:
    return str(connection.session.sql(sql).schema[0].dataType.simpleString())


def rows(found: list[Any]) -> list[str]:
    return sorted(repr(tuple(row)) for row in found)


def other_than_written(connection: SessionConnection, sql: str) -> str:
    """How the query that the planner writes differs from ``sql``; empty where it does not.

    :raises CannotPlan: it would not be written.
    """
    query = analyse_query(sql, SCHEMA)
    require_determinism(query.node, query.types, OF_TABLES, ACCEPTED)
    text = full_sql(query, InDuckDB())
    try:
        if optimised(connection, text).sameResult(optimised(connection, sql)):
            return ""
        types = [type_of(connection, one) for one in (text, sql)]
        if types[0] != types[1]:
            return f"{sql} of {types[1]} became {text} of {types[0]}"
        found, expected = (connection.session.sql(one).collect() for one in (text, sql))
    except PySparkException as error:
        return f"{sql} became {text}: {error}"
    return "" if rows(found) == rows(expected) else f"{sql} became {text}"


COMPARED = ("scalar", "exact", "sum")
"""Functions that a plan may have: of each at least one example is compared, but for these."""

NOT_COMPARED = {
    # Spark's examples are errors: of what has to be installed, and of what is not switched on.
    **dict.fromkeys(("from_avro", "schema_of_avro", "to_avro", "from_protobuf", "to_protobuf"), "an error"),
    **dict.fromkeys(("st_asbinary", "st_geogfromwkb", "st_geomfromwkb", "st_setsrid", "st_srid"), "an error"),
    # No plan, so that nothing is written again.
    **dict.fromkeys(("arrays_zip", "collate"), "unsupported"),
    **dict.fromkeys(("bitmap_and_agg", "bitmap_count", "bitmap_or_agg"), "not-parsed"),
    **dict.fromkeys(("session_window", "window", "window_time"), "not-resolved"),
}


@pytest.fixture
def with_time_types(connection: SessionConnection) -> SessionConnection:
    connection.session.conf.set("spark.sql.timeType.enabled", "true")
    optimised(connection, f"CREATE OR REPLACE TEMPORARY VIEW given AS {ROWS}")
    for place, (name, columns) in enumerate(list(SCHEMA.items())[1:]):
        value = columns[1][0]
        text = (
            f"SELECT CAST(id AS INT) AS id, CAST(id + 2 AS INT) AS {value} FROM range({place}, {place + 4})"
        )
        optimised(connection, f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {text}")
    return connection


def test_functions_mean_what_was_written(with_time_types: SessionConnection) -> None:
    found: Counter[str] = Counter()
    others, left = [], {}
    for function, sql in examples(with_time_types):
        try:
            optimised(with_time_types, sql)
        except PySparkException:
            left.setdefault(function, "an error")
            continue
        try:
            other = other_than_written(with_time_types, sql)
        except CannotPlan as error:
            left[function] = error.reason.code
            continue
        found[function] += 1
        if other:
            others.append(f"{function}: {other}")
    assert others == [], "\n".join(others)
    assert found.total() > 900
    alone = {name: code for name, code in left.items() if not found[name] and kind_of(name) in COMPARED}
    assert alone == NOT_COMPARED


@pytest.mark.parametrize(
    ("queries", "refused"),
    [
        pytest.param(
            [f"SELECT CAST(s AS {one}), TRY_CAST(s AS {one}) FROM given" for one in TYPES], 0, id="types"
        ),
        pytest.param([f"SELECT {one} FROM given" for one in EXPRESSIONS], 0, id="expressions"),
        pytest.param(
            [f"SELECT x, s, grouping_id() AS g, count(*) AS n FROM given GROUP BY {one}" for one in GROUPS],
            0,
            id="groups",
        ),
        pytest.param(QUERIES, 12, id="queries"),
    ],
)
def test_expressions_mean_what_was_written(
    with_time_types: SessionConnection, queries: list[str], refused: int
) -> None:
    others, left, failed = [], [], []
    for sql in queries:
        try:
            optimised(with_time_types, sql)
        except PySparkException as error:
            failed.append(f"{sql}: {error}")
            continue
        try:
            other = other_than_written(with_time_types, sql)
        except CannotPlan:
            left.append(sql)
            continue
        if other:
            others.append(other)
    assert failed == [], "\n".join(failed)
    assert others == [], "\n".join(others)
    assert len(left) == refused, "\n".join(left)


@pytest.mark.parametrize(
    ("operators", "form", "at_least"),
    first(
        1,
        [
            (OPERATORS, "SELECT x {} y {} 2 AS c, x FROM given", 90),
            (TESTS, "SELECT x FROM given WHERE x > 1 {} y < 2 {} x = 1", 7),
        ],
    ),
    ids=["operators", "tests"],
)
def test_operators_bind_as_they_do_in_spark(
    with_time_types: SessionConnection, operators: list[str], form: str, at_least: int
) -> None:
    others, compared = [], 0
    for sql in (form.format(one, two) for one in operators for two in operators):
        try:
            optimised(with_time_types, sql)
        except PySparkException:
            continue  # of two types that do not go together
        try:
            other = other_than_written(with_time_types, sql)
        except CannotPlan:
            assert "<<" in sql or ">>" in sql or ("||" in sql and ("+" in sql or "-" in sql))
            continue
        compared += 1
        if other:
            others.append(other)
    assert others == [], "\n".join(others)
    assert compared > at_least


ARGUMENTS = [
    *("", "x", "s", "CAST(x AS DECIMAL(6,2))", "d, d"),
    *extent(
        (),
        (
            *(
                "*",
                "CAST(x AS BIGINT)",
                "x, CAST(y AS BIGINT)",
                "d",
                "a",
                "CAST(x AS SMALLINT)",
                "CAST(x AS DECIMAL(6,2)), 1",
                "CAST(x AS DOUBLE)",
                "s, s",
            ),
            *("CAST(y AS BIGINT), x", "CAST(d AS TIMESTAMP)", "x > 1", "DAY, d, d", "x > 1, x, y"),
        ),
    ),
]
_NEEDS_A_WINDOW = ("dense_rank", "lag", "lead", "nth_value", "ntile", "rank", "row_number")


def test_the_types_of_functions_are_those_of_spark(with_time_types: SessionConnection) -> None:
    """As far as the type is known, for any arguments of a function."""
    wrong, told = [], set()
    for name in sorted(NUMERIC):
        over = " OVER (ORDER BY y)" if name in _NEEDS_A_WINDOW else ""
        for sql in (f"SELECT {name}({arguments}){over} AS v FROM given" for arguments in ARGUMENTS):
            try:
                query = analyse_query(sql, SCHEMA)
                type_ = type_of_column(with_time_types, sql)
            except (PySparkException, CannotPlan):
                continue
            found = Types(query.node, query.types).column(query.columns[0][1])
            if is_known(found):
                told.add(name)
                wrong += [] if agrees(found, type_) else [f"{sql}: {type_}, not {found}"]
    assert wrong == [], "\n".join(wrong)
    assert len(told) > extent(0.7, 0.9) * len(NUMERIC), NUMERIC - told


def test_the_types_of_expressions_are_those_of_spark(with_time_types: SessionConnection) -> None:
    """``tests/unit/planner/test_inference.py`` compares the same table with what the planner infers."""
    columns = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in COLUMNS.items())
    optimised(with_time_types, f"CREATE OR REPLACE TEMPORARY VIEW typed AS SELECT {columns}")
    expected = {**EXACTLY, **BY_KIND}
    found = {sql: type_of_column(with_time_types, f"SELECT {sql} AS v FROM typed") for sql in expected}
    assert {sql: type_ for sql, type_ in found.items() if read_type(type_) != read_type(expected[sql])} == {}
