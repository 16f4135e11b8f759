"""An expression over a column of a UNION has a plan where the parts of it are sure to have one type."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.moment import Clock
from dbt_arctic.planner.plan import understand
from dbt_arctic.planner.reasons import CannotPlan

SCHEMAS = {
    "o": [("id", "bigint"), ("n", "int"), ("amount", "decimal(10,2)"), ("at", "date"), ("s", "string")],
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
        ("lower(x)", "get_json_object(s, '$.a')", "get_json_object(s, '$.b')"),
        ("date_trunc('day', x)", "current_timestamp()", "to_timestamp(s)"),
    ],
)
def test_parts_of_one_type(value: str, one: str, other: str) -> None:
    for union in ("UNION ALL", "UNION"):
        understand(query(value, one, other, union), SCHEMAS, now=NOW)
        understand(query(value, other, one, union), SCHEMAS, now=NOW)


@pytest.mark.parametrize(
    ("value", "one", "other"),
    [
        ("x / 3", "amount", "id"),
        ("x / 3", "amount", "amount * 2"),
        ("x / 3", "amount * 1.1", "amount * 1.10"),
        ("concat(x, '')", "amount", "coalesce(amount, 0)"),
        ("x / 2.5", "n", "id"),
        ("hash(x)", "n", "id"),
        ("concat(x, '')", "amount", "CAST(amount AS decimal(12,3))"),
        ("concat(x, '')", "round(amount, 1)", "round(amount, 2)"),
        ("concat(x, '')", "CAST(s AS decimal(12,3)) * 1", "CAST(s AS decimal(14,5)) * 1"),
        ("2.5 / x", "length(s)", "NULL"),
    ],
)
def test_parts_of_two_types(value: str, one: str, other: str) -> None:
    for union in ("UNION ALL", "UNION"):
        with pytest.raises(CannotPlan, match="an expression over a column of a UNION"):
            understand(query(value, one, other, union), SCHEMAS, now=NOW)
        understand(query("max(x)", one, other, union) + " GROUP BY id", SCHEMAS, now=NOW)


def test_a_null_has_the_type_of_the_others_in_unions_of_several() -> None:
    nothing = "id, NULL AS x FROM o"
    parts = ["SELECT id, amount AS x FROM o", f"SELECT {nothing}", f"SELECT DISTINCT {nothing}"]
    for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)):
        union = " UNION ALL ".join(parts[number] for number in order)
        understand(f"SELECT id, coalesce(x, 7) / 3 AS v FROM ({union}) AS u", SCHEMAS)


def test_a_number_with_a_suffix_is_not_a_cast() -> None:
    both = "SELECT id, sum(amount / 12L) AS a, sum(amount / CAST(12 AS bigint)) AS b FROM o GROUP BY id"
    (_, one), (_, other) = understand(both, SCHEMAS).columns[1:]
    assert one != other
