"""An expression over a column of a UNION has a plan where the parts of it are sure to have one type."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from dbt_arctic.planner.algebra.operators import Join, walk
from dbt_arctic.planner.algebra.scalars import SAME_TYPE
from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import InDuckDB, to_duckdb

SCHEMAS = {
    "o": [
        *(("id", "bigint"), ("n", "int"), ("amount", "decimal(10,2)"), ("at", "date"), ("s", "string")),
        ("d", "struct<price:decimal(10,2)>"),
    ],
}
NOW = Clock("2026-01-01", "2026-01-01 00:00:00Z")


def query(value: str, one: str, other: str, union: str = "UNION ALL") -> str:
    return (
        f"SELECT id, {value} AS v FROM (SELECT id, {one} AS x FROM o {union} SELECT id, {other} FROM o) AS u"
    )


@pytest.mark.parametrize(
    ("value", "one", "other"),
    [
        ("x / 3", "amount", "-amount"),
        ("x / 3", "amount", "coalesce(amount, amount)"),
        ("x / 3", "amount", "CASE WHEN n > 1 THEN amount END"),
        ("x / 3", "amount", "NULL"),
        ("2.5 / x", "length(s)", "NULL"),
        ("x / 3", "amount * 1.10", "amount * 1.25"),
        ("x / 3", "CAST(n AS decimal(10,2))", "amount"),
        ("upper(x)", "'here'", "'there'"),
        ("upper(x)", "s", "concat(s, '!')"),
        ("x + 1", "n", "id"),
        ("x + 1", "0", "CASE WHEN n > 1 THEN 1 ELSE 2 END"),
        ("year(x)", "at", "current_date()"),
        ("year(x)", "at", "date_add(at, 1)"),
        ("CASE WHEN x THEN 1 ELSE 2 END", "true", "n > 3"),
        ("lower(x)", "s", "s || '!'"),
        ("length(x)", "s", "substr(s, 2)"),
        ("x / 1.5", "n + 1", "abs(n) * 2"),
        ("lower(x)", "get_json_object(s, '$.a')", "get_json_object(s, '$.b')"),
        ("date_trunc('day', x)", "current_timestamp()", "to_timestamp(s)"),
    ],
)
def test_parts_of_one_type(value: str, one: str, other: str) -> None:
    for union in ("UNION ALL", "UNION"):
        analyse_query(query(value, one, other, union), SCHEMAS, now=NOW)
        analyse_query(query(value, other, one, union), SCHEMAS, now=NOW)


def test_a_sum_of_int_is_a_bigint() -> None:
    """A hash distinguishes it from an int, so the int is cast as Spark casts it."""
    for call in ("sum(n)", "try_sum(n)"):
        parts = f"SELECT n AS c FROM o UNION ALL SELECT {call} FROM o GROUP BY s"
        text = full_sql(analyse_query(f"SELECT xxhash64(c) AS k FROM ({parts}) AS q", SCHEMAS), InDuckDB())
        assert text.count("CAST(") == 1
        assert "CAST(`o`.`n` AS BIGINT)" in text


@pytest.mark.parametrize(
    ("value", "one", "other"),
    [
        ("x / 3", "amount * 0.19", "amount * 1.19"),
        ("length(x)", "s", "left(encode(s, 'utf-8'), 9)"),
    ],
)
def test_what_has_other_digits_in_one_part(value: str, one: str, other: str) -> None:
    with pytest.raises(CannotPlan):
        analyse_query(query(value, one, other), SCHEMAS, now=NOW)


def test_equal_numbers_of_two_widths_are_not_interchangeable_with_a_decimal() -> None:
    schemas = {"a": [("v", "int")], "b": [("v", "bigint"), ("k", "int")]}
    for value in ("3 / ceil(a.v, 0)", "100000000000000000000 / a.v", "decimal(3) / a.v"):
        sql = f"SELECT {value} AS g, bool_or(b.k > 1) AS s FROM a JOIN b ON a.v = b.v GROUP BY {value}"
        made = analyse_query(sql, schemas)
        (join,) = (one for one in walk(made.node) if isinstance(one, Join))
        assert not any(SAME_TYPE in condition.meta for condition in join.conditions), value
    made = analyse_query(
        "SELECT a.v + 1 AS g, count(*) AS n FROM a JOIN b ON a.v = b.v GROUP BY a.v + 1", schemas
    )
    (join,) = (one for one in walk(made.node) if isinstance(one, Join))
    assert any(SAME_TYPE in condition.meta for condition in join.conditions)


def test_a_date_that_is_moved_by_days_is_a_date() -> None:
    moved = "coalesce(at - 1, DATE'9999-12-31')"
    analyse_query(f"SELECT id, {moved} AS v FROM o UNION ALL SELECT id, at FROM o", SCHEMAS)
    analyse_query(query("year(x)", "n + at", "at"), SCHEMAS)
    with pytest.raises(CannotPlan, match="a computed type and date"):
        analyse_query(query("x + 1", "at - at", "at"), SCHEMAS)


@pytest.mark.parametrize(
    ("value", "one", "other"),
    [
        ("x / 3", "amount", "amount * 2"),
        ("x / 3", "amount * 1.1", "amount * 1.10"),
        ("concat(x, '')", "amount", "coalesce(amount, 0)"),
        ("x / 2.5", "floor(d.price)", "id"),
        ("concat(x, '')", "round(amount, 1)", "round(amount, 2)"),
        ("concat(x, '')", "CAST(s AS decimal(12,3)) * 1", "CAST(s AS decimal(14,5)) * 1"),
    ],
)
def test_parts_of_two_types(value: str, one: str, other: str) -> None:
    for union in ("UNION ALL", "UNION"):
        with pytest.raises(CannotPlan, match="an expression over a column of a UNION"):
            analyse_query(query(value, one, other, union), SCHEMAS, now=NOW)
        analyse_query(query("max(x)", one, other, union) + " GROUP BY id", SCHEMAS, now=NOW)


@pytest.mark.parametrize(
    ("value", "one", "other", "cast", "to"),
    [
        *(
            (value, "n", "id", "`n`", "BIGINT")
            for value in (
                *("x / 2.5", "2.5 / x", "hash(x)", "try_multiply(x, 100000)", "shiftleft(x, 40)", "x << 40"),
                *("format_string('%x', x)", "decimal(3) / x", "3 / ceil(x, 0)", "100000000000000000000 / x"),
                "(SELECT max(amount) FROM o) / x",
            )
        ),
        ("x / 2.5", "1234567890", "id", "", "BIGINT"),
        ("x / 2.5", "length(s)", "id", ".`s`))", "BIGINT"),
        ("1.5 / x", "n", "CAST(n AS smallint) + CAST(7 AS smallint)", "AS SMALLINT))", "INT"),
        ("1.5 / x", "n", "abs(CAST(n AS smallint))", "AS SMALLINT)))", "INT"),
        ("x / 3", "amount", "id", "`amount`", "DECIMAL(22, 2)"),
        ("concat(x, '')", "amount", "CAST(amount AS decimal(12,3))", "`amount`", "DECIMAL(12, 3)"),
        ("year(x)", "at", "current_timestamp()", "`at`", "TIMESTAMP"),
        ("x", "at", "current_timestamp()", "`at`", "TIMESTAMP"),
    ],
)
def test_parts_of_types_that_spark_widens_are_cast(
    value: str, one: str, other: str, cast: str, to: str
) -> None:
    for union in ("UNION ALL", "UNION"):
        for first, second in ((one, other), (other, one)):
            text = full_sql(analyse_query(query(value, first, second, union), SCHEMAS, now=NOW), InDuckDB())
            assert f"{cast} AS {to})" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("n > 1 AND id > 2", "true"),
        ("n > 1 OR NOT id > 2", "startswith(s, 'a')"),
        ("d", "d * 1.1"),
        ("d / 2", "avg(n) OVER (PARTITION BY id)"),
        ("date_trunc('day', t)", "t"),
        ("from_unixtime(n)", "s"),
        ("nullif(s, '')", "concat(s, '!')"),
        ("st.k", "NULL"),
        ("CASE WHEN n > 1 THEN s END", "'none'"),
        ("coalesce(d, 1.5D)", "NULL"),
        ("d", "1e0"),
        ("(SELECT max(p.s) FROM o AS p)", "s"),
        ("(SELECT count(*) FROM o AS p)", "n"),
        ("EXISTS (SELECT 1 FROM o AS p WHERE p.id = o.n)", "n > 1"),
    ],
)
def test_columns_of_unions_that_are_compared_in_the_same_way(one: str, other: str) -> None:
    schemas = {
        "o": [*SCHEMAS["o"], ("st", "struct<k:string>"), ("d", "double"), ("t", "timestamp")],
    }
    for left, right in ((one, other), (other, one)):
        union = f"(SELECT id, {left} AS x FROM o UNION ALL SELECT id, {right} FROM o) AS u"
        analyse_query(f"SELECT x, count(*) AS n FROM {union} WHERE x IS NOT NULL GROUP BY x", schemas)
        analyse_query(f"SELECT id, max(x) AS m FROM {union} GROUP BY id", schemas)


def test_elements_of_arrays_in_unions_are_compared_in_the_same_way() -> None:
    schemas = {"o": [("id", "bigint"), ("tags", "array<string>"), ("more", "array<bigint>")]}
    part = "SELECT id, x FROM o LATERAL VIEW explode({}) e AS x"
    both = f"SELECT x, count(*) AS n FROM ({part} UNION ALL {part}) AS u GROUP BY x"
    analyse_query(both.format("tags", "tags"), schemas)
    # A sum with a number in it is one of whole numbers, and no float.
    computed = part.replace("x FROM", "x + 1 AS x FROM", 1).format("more")
    mixed = (
        f"SELECT x, count(*) AS n FROM ({computed} UNION ALL SELECT id, id / 2 AS x FROM o) AS u GROUP BY x"
    )
    with pytest.raises(CannotPlan, match="is compared"):
        analyse_query(mixed, schemas)
    with pytest.raises(CannotPlan, match="have string and bigint"):
        analyse_query(both.format("tags", "more"), schemas)


@pytest.mark.parametrize(
    ("sql", "is_fine"),
    [
        ("SELECT x, count(*) AS n FROM {u} GROUP BY x", False),
        ("SELECT DISTINCT x FROM {u}", False),
        ("SELECT id, row_number() OVER (PARTITION BY x ORDER BY id) AS n FROM {u}", False),
        ("SELECT id FROM {u} WHERE x = '1'", False),
        ("SELECT id, max(x) AS m FROM {u} GROUP BY id", False),
        ("SELECT id, count(DISTINCT x) AS m FROM {u} GROUP BY id", False),
        ("SELECT o.id FROM o WHERE o.s IN (SELECT x FROM {u})", False),
        ("SELECT p.id FROM o AS p WHERE EXISTS (SELECT 1 FROM {u} WHERE u.x = p.s)", False),
        ("SELECT n AS x FROM o INTERSECT SELECT array_max(l) FROM o", False),
        ("SELECT x, id FROM {u}", True),
        ("SELECT id, count(x) AS n FROM {u} WHERE x IS NOT NULL GROUP BY id", True),
    ],
)
def test_of_a_type_that_is_not_known_equal_values_may_be_others_in_a_union(sql: str, is_fine: bool) -> None:
    schemas = {"o": [*SCHEMAS["o"], ("l", "array<string>")]}
    union = "(SELECT id, n AS x FROM o UNION ALL SELECT id, array_max(l) FROM o) AS u"
    text = sql.replace("{u}", union)
    if is_fine:
        analyse_query(text, schemas)
        return
    with pytest.raises(CannotPlan, match=r"have .* is compared"):
        analyse_query(text, schemas)
    analyse_query(text.replace("array_max(l)", "coalesce(n, 1)"), schemas)


@pytest.mark.parametrize(
    ("one", "other", "is_fine"),
    [
        ("st.k", "s", True),
        ("t.st.K", "'x'", True),
        ("st.inner.n", "n", True),
        ("ls[0].k", "element_at(l, 1)", True),
        ("split(s, ',')[0]", "m['a']", True),
        ("ls.k", "l", True),
        ("ls['k']", "l", True),
        ("st['k']", "s", True),
        ("st.inner.n", "s", False),
        ("st.k", "n", False),
        ("split(s, ',')", "s", False),
    ],
)
def test_what_stands_inside_of_a_column_has_a_type(one: str, other: str, is_fine: bool) -> None:
    inside = [
        *(("st", "struct<k:string,inner:struct<n:int>>"), ("ls", "array<struct<k:string>>")),
        *(("l", "array<string>"), ("m", "map<int,string>")),
    ]
    union = f"SELECT id, {one} AS x FROM o AS t UNION ALL SELECT id, {other} FROM o"
    sql = f"SELECT x, count(*) AS n FROM ({union}) AS u GROUP BY x"
    if is_fine:
        analyse_query(sql, {"o": [*SCHEMAS["o"], *inside]})
        return
    with pytest.raises(CannotPlan, match=r"have .* and .* in one column"):
        analyse_query(sql, {"o": [*SCHEMAS["o"], *inside]})


def test_a_null_has_the_type_of_the_others_in_unions_of_several() -> None:
    nothing = "id, NULL AS x FROM o"
    parts = ["SELECT id, amount AS x FROM o", f"SELECT {nothing}", f"SELECT DISTINCT {nothing}"]
    for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)):
        union = " UNION ALL ".join(parts[number] for number in order)
        analyse_query(f"SELECT id, coalesce(x, 7) / 3 AS v FROM ({union}) AS u", SCHEMAS)


def test_a_function_of_types_in_a_link_of_a_subquery_keeps_equal_numbers_apart() -> None:
    linked = (
        "SELECT o.id FROM o JOIN o AS p ON o.n = p.id WHERE EXISTS (SELECT 1 FROM o AS c WHERE c.id = {})"
    )
    schemas = {"o": [("id", "bigint"), ("n", "int")]}
    for value, same in (("p.id", True), ("xxhash64(p.id)", False), ("try_add(p.id, 1)", False)):
        joined = next(
            part for part in walk(analyse_query(linked.format(value), schemas).node) if isinstance(part, Join)
        )
        assert bool(joined.conditions[0].meta.get(SAME_TYPE)) is same


def test_a_number_with_a_suffix_is_not_a_cast() -> None:
    both = "SELECT id, sum(amount / 12L) AS a, sum(amount / CAST(12 AS bigint)) AS b FROM o GROUP BY id"
    (_, one), (_, other) = analyse_query(both, SCHEMAS).columns[1:]
    assert one != other


def test_without_ansi_numbers_of_two_widths_do_not_stand_for_each_other() -> None:
    """They wrap at different numbers."""
    tables = {"o": [("id", "int"), ("n", "int"), ("m", "int")], "c": [("id", "int"), ("n", "int")]}
    wide = "SELECT id, CAST(n AS bigint) AS w FROM c"
    sql = "SELECT q.w * 2 AS k, sum(o.m) AS s FROM o JOIN ({}) AS q ON q.w = o.n GROUP BY q.w * 2"
    for wrap_on_overflow, inner, same in (
        (False, wide, True),
        (True, wide, False),
        (True, wide.replace("bigint", "int"), True),
    ):
        query = analyse_query(sql.format(inner), tables, wrap_on_overflow=wrap_on_overflow)
        joined = next(part for part in walk(query.node) if isinstance(part, Join))
        assert bool(joined.conditions[0].meta.get(SAME_TYPE)) is same
    union = "SELECT id, n AS x FROM o UNION ALL SELECT id, CAST(n AS bigint) FROM c"
    both = f"SELECT id, x * 2 AS v FROM ({union}) AS u"
    analyse_query(both, tables)
    wide = full_sql(analyse_query(both, tables, wrap_on_overflow=True), InDuckDB())
    assert "CAST(`o`.`n` AS BIGINT)" in wide, "as Spark does it"


def test_a_date_to_which_hours_are_added_is_none() -> None:
    union = "SELECT id, date_add({}) AS x FROM o UNION ALL SELECT id, at FROM o"
    analyse_query(f"SELECT id, year(x) AS y FROM ({union.format('at, 1')}) AS u", SCHEMAS)
    with pytest.raises(CannotPlan):
        analyse_query(f"SELECT id, year(x) AS y FROM ({union.format('HOUR, 1, at')}) AS u", SCHEMAS)


@pytest.mark.parametrize("stored", ["bigint", "int", "boolean"])
@pytest.mark.parametrize(
    "columns", list(itertools.combinations(("b", "i", "p", "f", "r", "length(s) + f"), 2))
)
def test_the_parts_of_a_view_have_its_type_if_none_loses_a_digit(
    columns: tuple[str, str], stored: str
) -> None:
    """Spark casts BIGINT to DOUBLE first if another part is a float, whatever the type of the view."""
    types = {"b": "bigint", "i": "int", "p": "decimal(20,0)", "f": "double", "r": "float", "s": "string"}
    large = 2**53 + 1 if stored == "bigint" else 1
    values = ", ".join(
        f"CAST({large if name in 'bpf' else 1} AS {type_}) AS {name}" for name, type_ in types.items()
    )
    view = " UNION ALL ".join(f"SELECT {column} AS x FROM w" for column in columns)
    schemas = {"w": list(types.items()), "v": [("x", stored)]}
    # A computed type is not known exactly.
    if columns[1] == "length(s) + f" or (set(columns) & {"b", "p"} and set(columns) & {"f", "r"}):
        with pytest.raises(CannotPlan, match="UNION"):
            analyse_query("SELECT x FROM v", schemas, views={"v": parse(view)})
        return
    query = analyse_query("SELECT x FROM v", schemas, views={"v": parse(view)})
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE w AS SELECT {values}")
    wanted = connection.execute(f"SELECT CAST(x AS {stored}) AS x FROM ({view})").fetchall()
    assert connection.execute(to_duckdb(full_sql(query, InDuckDB()))).fetchall() == wanted
