"""Rows of two queries are compared as Spark compares them, and floats with a tolerance if requested."""

from __future__ import annotations

from dbt_arctic.adapter.diff_report import ModelDiff, match_columns
from dbt_arctic.adapter.relation_diff import DiffOptions, Relation, compare_relations
from dbt_arctic.auto.key_selection import ProjectKey
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.null_safe_equality import same_value
from dbt_arctic.keyed.row_diff import compare_as_bags, count_differing, differing_keys, sample_of_bags
from tests.spark.conftest import Sql

KEY, EXACT, NEAR = [("id", "int")], [("id", "int"), ("name", "string")], [("x", "double")]


PAIRS = [
    ("1, 'a', 100D", "1, 'a', 100D", 0),
    ("1, 'a', 100D", "1, 'a', 100.00000001D", 0),
    ("1, 'a', -1e-20D", "1, 'a', -1.0000000001e-20D", 0),
    ("1, 'a', 100D", "1, 'a', 100.001D", 1),
    ("1, 'a', 100D", "1, 'b', 100D", 1),
    ("1, 'a', 100D", "2, 'a', 100D", 2),
    ("1, 'a', 100D", "1, NULL, 100D", 1),
    ("1, NULL, CAST(NULL AS DOUBLE)", "1, NULL, CAST(NULL AS DOUBLE)", 0),
    ("1, 'a', CAST(NULL AS DOUBLE)", "1, 'a', 0D", 1),
    ("1, 'a', double('NaN')", "1, 'a', double('NaN')", 0),
    ("1, 'a', double('NaN')", "1, 'a', 1D", 1),
    ("1, 'a', double('Infinity')", "1, 'a', double('Infinity')", 0),
    ("1, 'a', double('Infinity')", "1, 'a', 1D", 1),
    ("1, 'a', double('Infinity')", "1, 'a', double('-Infinity')", 1),
]
"""Two rows, and how many keys differ between them."""


def test_floats_that_are_near_are_alike_and_nothing_else(sql: Sql) -> None:
    counts = []
    for number, (one, other, _) in enumerate(PAIRS):
        left, right = (f"SELECT * FROM VALUES ({values}) AS t(id, name, x)" for values in (one, other))
        counts.append(f"SELECT {number}, count(*) FROM (\n{differing_keys(left, right, KEY, EXACT, NEAR)}\n)")
    found = sql("\nUNION ALL\n".join(counts))
    assert sorted(found) == [(number, apart) for number, (_, _, apart) in enumerate(PAIRS)]


def test_rows_differ_as_often_as_they_are_missing(sql: Sql) -> None:
    left = (
        "SELECT 1 AS id, map('a', 1) AS m UNION ALL SELECT 1, map('a', 1) UNION ALL SELECT 2, NULL "
        "UNION ALL SELECT 3, NULL UNION ALL SELECT 3, NULL"
    )
    right = "SELECT 1 AS id, map('a', 1) AS m UNION ALL SELECT 2, map('b', 1)"
    id_, values = ("id", "int"), ("m", "map<string,int>")
    # 1 once of twice, both versions of 2, and 3 twice: with the number of rows of the first query.
    assert sql(count_differing(left, right, [id_, values])) == [(5, 5)]
    assert sql(count_differing(right, left, [id_, values])) == [(5, 2)]
    assert sql(count_differing(left, right, [id_])) == [(3, 5)]
    assert sql(count_differing(left, left, [id_, values])) == [(0, 5)]
    assert sql(count_differing(f"{left} LIMIT 0", f"{right} LIMIT 0", [id_])) == [(0, 0)]


Z, A = ("0.0", "-0.0"), ("a", "A")
ALIKE = [
    ("double", "double(z)", Z),
    ("array<double>", "array(1D, double(z), NULL, double('NaN'))", Z),
    ("struct<a:int,b:array<float>>", "named_struct('a', 1, 'b', array(float(z)))", Z),
    ("map<string,double>", "map('k', double(z), 'l', 1D)", Z),
    ("map<string,array<double>>", "map('k', array(double(z)))", Z),
    ("struct<b:double>", "CASE WHEN z = 'a' THEN named_struct('b', CAST(NULL AS DOUBLE)) END", A),
    ("string collate UTF8_LCASE", "z COLLATE UTF8_LCASE", A),
    ("array<string collate UTF8_LCASE>", "array(z COLLATE UTF8_LCASE)", A),
]
"""A type, an expression of it, and two texts of which it makes values that Spark may consider equal."""


def test_values_that_spark_considers_equal_differ_at_every_depth(sql: Sql) -> None:
    counts, same = [], []
    for number, (type_, value, (one, other)) in enumerate(ALIKE):
        # Not as constants, of which Spark takes one for the other.
        rows = [f"SELECT {value} AS x FROM VALUES ('{text}') AS t(z)" for text in (one, other)]
        for left, right in ((rows[0], rows[1]), (rows[1], rows[1])):
            count = count_differing(left, right, [("x", type_)])
            counts.append(f"SELECT {number} AS n, c FROM (\n{count}\n) AS t(c, rows)")
            sides = f"({left}) AS l CROSS JOIN ({right}) AS r"
            same.append(f"SELECT {number}, {same_value('l.x', 'r.x', type_)} FROM {sides}")
    both = [(number, apart) for number in range(len(ALIKE)) for apart in (False, True)]
    assert sorted(sql("\nUNION ALL\n".join(counts))) == [(number, 2 * apart) for number, apart in both]
    assert sorted(sql("\nUNION ALL\n".join(same))) == both


def test_a_float_and_a_double_are_compared_as_numbers(sql: Sql) -> None:
    here, there = "SELECT CAST(0.1 AS FLOAT) AS x, map('a', 1) AS m", "SELECT 0.1D AS x, map('a', 1) AS m"
    of_map = ("m", "map<string,int>")
    for types in (("float", "double"), ("double", "float")):
        sides = (here, there) if types[0] == "float" else (there, here)
        columns = match_columns([("x", types[0]), of_map], [("x", types[1]), of_map]).columns
        assert sql(compare_as_bags(*sides, columns)) == [(1, 1, 1, 1)]
        half = [f"SELECT CAST(0.5 AS {type_}) AS x, map('a', 1) AS m" for type_ in types]
        assert sql(compare_as_bags(*half, columns)) == [(1, 1, 0, 0)]
        shown = sorted(sql(sample_of_bags(*sides, columns, 3)), key=repr)
        assert sorted(row[1] for row in shown) == ["0.1", "0.10000000149011612"]
        assert {str(row[2]) for row in shown} == {"{'a': 1}"}


def test_a_sample_shows_each_value_that_differs_and_no_other(sql: Sql) -> None:
    names = [Name("lake", schema, "orders") for schema in ("ci", "prod")]
    columns = [("id", "int"), ("x", "double"), ("m", "map<string,int>"), ("same", "double")]
    here, there = (
        Relation(
            name,
            f"SELECT id, if(id = 1, {zero}, 1D) AS x, map({entries}) AS m, double('NaN') AS same "
            f"FROM range({first}, {first} + 4) AS t(id)",
            columns,
        )
        for name, zero, entries, first in zip(
            names, ("0D", "-0D"), ("'k', 1, 'l', 2", "'l', 2, 'k', 1"), (0, 1), strict=True
        )
    )
    nothing = ModelDiff("orders", "here", "there", "not built")
    keys = {names[0].dotted: [ProjectKey(("id",), "")]}
    found = compare_relations(sql, nothing, here, there, keys, DiffOptions(samples=1))
    assert (found.changed, found.only_here, found.only_there) == (3, 1, 1)
    assert found.columns == {"x": 1, "m": 3}
    assert found.share == 1, "5 rows, of which each differs"
    (changed,) = (one for one in found.samples if one.kind == "changed")
    assert repr(changed.values["x"]) == "(-0.0, 0.0)"
    assert set(changed.values) == {"x", "m"}, "not the column that is NaN in both"
    # Without a key: at most so many rows of each kind.
    bags = compare_relations(sql, nothing, here, there, {}, DiffOptions(samples=2))
    assert [one.kind for one in bags.samples] == ["here", "here", "there", "there"]
    assert (bags.differing, bags.share) == (8, 1)
