"""Expressions and the types that Spark gives them.

``tests/unit/planner/test_inference.py`` compares them with what the planner infers, and
``tests/spark/keyed/test_functions.py`` with Spark's own answer.
"""

from __future__ import annotations

from dbt_arctic.keyed.type_categories import category_of_type, family
from dbt_arctic.planner.typing.inferred_type import Inferred, Kind, category_of, exact, is_known, read_type

COLUMNS = {
    **{"i": "int", "l": "bigint", "h": "smallint", "b": "tinyint", "f": "float", "r": "double"},
    **{"c": "decimal(10,2)", "s": "string", "d": "date", "t": "timestamp", "n": "timestamp_ntz"},
    **{"y": "binary", "o": "boolean", "a": "array<int>", "m": "map<string,decimal(5,1)>"},
    **{"p": "struct<net:decimal(8,3),at:date>", "q": "array<struct<k:string>>"},
}
"""The columns of ``typed``, the relation of all expressions."""

EXACTLY = {
    "i": "int",
    "-2147483648": "int",
    "2147483648": "bigint",
    "12L": "bigint",
    "7Y": "tinyint",
    "1.5D": "double",
    "'a'": "string",
    "i > 1": "boolean",
    "o AND i > 1 OR NOT o": "boolean",
    "s LIKE 'a%'": "boolean",
    "(i)": "int",
    "-l": "bigint",
    "-h": "smallint",
    "-c": "decimal(10,2)",
    "i + 1": "int",
    "h + b": "smallint",
    "b * b": "tinyint",
    "l - i": "bigint",
    "i % 2": "int",
    "i DIV 2": "bigint",
    "d + 3": "date",
    "d - i": "date",
    "CAST(s AS DECIMAL)": "decimal(10,0)",
    "CAST(s AS NUMERIC(5))": "decimal(5,0)",
    "CAST(s AS VARCHAR(3))": "string",
    "CAST(s AS LONG)": "bigint",
    "CAST(s AS TIME(3))": "time(3)",
    "CAST(s AS TIME)": "time(6)",
    "CAST(s AS TIMESTAMP_NTZ)": "timestamp_ntz",
    "try_cast(s AS INT)": "int",
    "CASE WHEN o THEN i END": "int",
    "CASE WHEN o THEN i ELSE l END": "bigint",
    "CASE WHEN o THEN h ELSE b END": "smallint",
    "CASE WHEN o THEN s ELSE 'x' END": "string",
    "if(o, b, h)": "smallint",
    "nvl2(s, d, d)": "date",
    "coalesce(i, h)": "int",
    "coalesce(NULL, c)": "decimal(10,2)",
    "nullif(s, 'x')": "string",
    "greatest(i, l)": "bigint",
    "abs(h)": "smallint",
    "abs(c)": "decimal(10,2)",
    "round(l, -1)": "bigint",
    "ceil(r)": "bigint",
    "floor(i)": "bigint",
    "ceil(s)": "bigint",
    "length(s)": "int",
    "hour(t)": "int",
    "second(t)": "int",
    "datediff(d, d)": "int",
    "datediff(HOUR, t, t)": "bigint",
    "tinyint(i)": "tinyint",
    "bit_get(i, 1)": "tinyint",
    "add_months(d, 1)": "date",
    "trunc(d, 'MM')": "date",
    "date_trunc('DAY', t)": "timestamp",
    "to_timestamp(s)": "timestamp",
    "startswith(s, 'a')": "boolean",
    "upper(s)": "string",
    "s || i": "string",
    "concat(i, s)": "string",
    "substr(s, 2)": "string",
    "split(s, ',')": "array<string>",
    "split(s, ',')[0]": "string",
    "a[0]": "int",
    "element_at(m, 'x')": "decimal(5,1)",
    "m['x']": "decimal(5,1)",
    "p.net": "decimal(8,3)",
    "p.at": "date",
    "q.k": "array<string>",
    "q[0].k": "string",
    "array(i, h)": "array<int>",
    "(SELECT max(i) FROM typed)": "int",
    "EXISTS (SELECT 1 FROM typed WHERE i > 1)": "boolean",
    "count(*)": "bigint",
    "count(DISTINCT s)": "bigint",
    "count_if(o)": "bigint",
    "sum(i)": "bigint",
    "sum(h)": "bigint",
    "max(s)": "string",
    "min(d)": "date",
    "max(c)": "decimal(10,2)",
    "max(i) FILTER (WHERE o)": "int",
    "first(s) IGNORE NULLS": "string",
    "max_by(d, i)": "date",
    "bool_or(o)": "boolean",
    "row_number() OVER (ORDER BY i)": "int",
    "lag(l, 1, 0) OVER (ORDER BY i)": "bigint",
    "lead(h, 1) OVER (ORDER BY i)": "smallint",
    "sum(i) OVER (PARTITION BY s)": "bigint",
    "nth_value(s, 2) OVER (ORDER BY i)": "string",
}
"""What is inferred exactly."""

BY_KIND = {
    **{"1.50": "decimal(3,2)", "100000000000000000000": "decimal(21,0)", "1e3": "double"},
    **{"c + 1": "decimal(11,2)", "c * 1.10": "decimal(14,4)", "c / 3": "decimal(14,6)"},
    **{"i / 2": "double", "r * i": "double", "f + f": "float", "c % 2": "decimal(3,2)"},
    **{"CASE WHEN o THEN c ELSE i END": "decimal(12,2)", "coalesce(i, r)": "double"},
    **{"-s": "double", "abs(s)": "double", "round(c, 1)": "decimal(10,1)", "ceil(c)": "decimal(9,0)"},
    **{"ceil(r, 1)": "decimal(17,1)", "ceil(p.net)": "decimal(6,0)", "sum(c)": "decimal(20,2)"},
    **{"sum(r)": "double", "sum(s)": "double", "avg(i)": "double", "avg(c)": "decimal(14,6)"},
    **{"avg(s)": "double", "coalesce(d, t)": "timestamp", "extract(SECOND FROM t)": "decimal(8,6)"},
    **{"extract(HOUR FROM t)": "int", "t - t": "interval day to second", "d - d": "interval day"},
}
"""Of which the kind of value is inferred, and no more."""


def agrees(found: Inferred | None, type_: str) -> bool:
    """Whether an inferred type says nothing that is wrong of Spark's."""
    if not is_known(found):
        return True
    if exact(found) is not None:
        return found == read_type(type_)
    if found is Kind.LONG:
        return category_of_type(type_) in ("bigint", "decimal")
    if found is Kind.FLOATING:
        return family(type_) == "float"
    if found is Kind.NO_NUMBER:
        return type_.startswith("interval") or category_of_type(type_) == "other"
    return category_of(found) == category_of_type(type_)
