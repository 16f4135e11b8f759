"""Averages over stored sums: where Spark would round differently, there is no state."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import pytest

from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    AuxiliaryView,
    NoState,
    changes_types,
    columns_in_model_table,
    find_auxiliary_view,
    outer_sql,
    without_spare,
)
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.frontend.parse import named, parse


def query_of(sql: str, schemas: dict[str, tuple[tuple[str, str], ...]]) -> Query:
    return analyse_query(named(parse(sql), lambda written: written), schemas)


def averaged(type_: str) -> AuxiliaryView:
    query = query_of("SELECT g, avg(x) AS a FROM t GROUP BY g", {"t": (("g", "int"), ("x", type_))})
    made = find_auxiliary_view(query, ("g",), {"t": ("id",)})
    assert made is not None
    return made


def over(type_: str, of_sum: str) -> str:
    made = averaged(type_)
    types = dict.fromkeys(made.state.output, "bigint")
    types.update({part.total: of_sum for part in made.parts.values() if part.total})
    return " ".join(outer_sql(made, "state", types).split())


def test_an_average_of_decimals_is_that_of_their_exact_sum() -> None:
    text = over("decimal(15,2)", "decimal(25,2)")
    assert "AS DECIMAL(19, 6))" in text, "avg(decimal(15,2)) is a decimal(19,6)"
    assert ">= 1000000000 THEN RAISE_ERROR" in text.upper()


@pytest.mark.parametrize("scale", [0, 2, 9])
def test_rounding_twice_changes_no_average_of_so_few_rows(scale: int) -> None:
    """Where two states of rounding could differ, the quotient is close to a tie: no count below 10^9 is."""
    exact = Context(prec=60, rounding=ROUND_HALF_UP)
    kept, shown = scale + 4 + 9, scale + 4
    once, twice = Decimal(1).scaleb(-shown), Decimal(1).scaleb(-kept)
    for count in (3, 7, 999_999_937, 10**9 - 1):
        # The sums whose average lies next to a tie, on either side of it.
        tie = Decimal(5).scaleb(-shown - 1)
        nearest = int((tie * count).scaleb(scale))
        for total in range(nearest - 2, nearest + 3):
            value = exact.divide(Decimal(total).scaleb(-scale), Decimal(count))
            rounded = value.quantize(twice, context=exact).quantize(once, context=exact)
            assert rounded == value.quantize(once, context=exact)


@pytest.mark.parametrize("of_sum", ["decimal(38,2)", "decimal(38,35)", "decimal(35,0)"])
def test_what_could_be_rounded_twice_has_no_state(of_sum: str) -> None:
    with pytest.raises(NoState):
        over("decimal(28,2)", of_sum)


def test_averages_of_floats_have_no_state() -> None:
    query = query_of("SELECT g, avg(x) AS a FROM t GROUP BY g", {"t": (("g", "int"), ("x", "double"))})
    assert find_auxiliary_view(query, ("g",), {"t": ("id",)}) is None


@pytest.mark.parametrize(
    ("sql", "stored"),
    [
        ("SELECT g, sum(x) AS s FROM t GROUP BY g",
         {"_rows": "_rows", "_sum_1": "s", "_count_1": "_count_1"}),
        ("SELECT g, count(*) AS n, max(x) AS m FROM t GROUP BY g",
         {"_rows": "n", "_count_1": "_count_1", "_min_1": "_min_1", "_max_1": "m"}),
        ("SELECT q.g, q.s + 1 AS r FROM (SELECT g, sum(x) AS s FROM t GROUP BY g) AS q",
         {"_rows": "_rows", "_sum_1": "_sum_1", "_count_1": "_count_1"}),
        # Not a row for each group.
        ("SELECT g, sum(x) AS s FROM t GROUP BY g HAVING sum(x) > 1", None),
        ("SELECT g, sum(x) AS s FROM t GROUP BY g ORDER BY s LIMIT 3", None),
        # The model has a column of that name.
        ("SELECT g, sum(x) AS _Rows FROM t GROUP BY g", None),
    ],
)  # fmt: skip
def test_where_a_state_has_the_rows_of_the_model(sql: str, stored: dict[str, str] | None) -> None:
    made = find_auxiliary_view(
        query_of(sql, {"t": (("id", "int"), ("g", "int"), ("x", "int"))}), ("g",), {"t": ("id",)}
    )
    assert made is not None
    assert columns_in_model_table(made) == stored


def test_a_state_in_a_table_of_its_own_keeps_no_other_end() -> None:
    """Once it had left its group, each refresh of the state would end late."""
    schemas = {"t": (("g", "int"), ("x", "int"))}
    made = find_auxiliary_view(
        query_of("SELECT g, max(x) AS m, sum(x) AS s FROM t GROUP BY g", schemas), ("g",), {}
    )
    assert made is not None
    assert made.spare == {"_min_1"}, "the sum needs the count of values, too"
    assert set(made.state.output) - set(without_spare(made).state.output) == {"_min_1"}
    alone = find_auxiliary_view(query_of("SELECT max(x) AS m FROM t", schemas), (), {})
    assert alone is not None
    assert without_spare(alone).state.output == ("_one", "_rows", "_max_1")


SETS = "SELECT coalesce(g, 0) AS k, {} AS n, count(*) AS c FROM t GROUP BY ROLLUP (g, x) ORDER BY 1 LIMIT 3"


@pytest.mark.parametrize(
    ("value", "cast"),
    [
        ("grouping(g)", True),
        ("grouping(g) + grouping(x)", True),
        ("-(grouping(g) - grouping(x))", True),
        ("grouping(g) + 2", False),
        ("grouping(g) = 1", False),
        ("CASE WHEN grouping(g) = 1 THEN 'all' ELSE 'one' END", False),
        ("rank() OVER (PARTITION BY grouping(g) ORDER BY count(*))", False),
        ("grouping_id()", False),
        ("CASE WHEN g > 1 THEN grouping(g) END", True),
        ("abs(grouping(g))", True),
        ("lag(grouping(g)) OVER (ORDER BY g)", True),
        # This is stored as an INT as well, and the other one may be: its type is not inferred.
        ("CAST(g AS SMALLINT)", None),
        ("array_max(array(grouping(g)))", None),
    ],
)
def test_what_a_state_has_in_another_type_is_cast_back(value: str, cast: bool | None) -> None:
    query = query_of(SETS.format(value), {"t": (("g", "int"), ("x", "int"))})
    made = find_auxiliary_view(query, ("k", "n"), {"t": ()})
    assert made is not None
    assert changes_types(made) is (cast is None)
    if cast is not None:
        text = outer_sql(made, "state", dict.fromkeys(made.state.output, "int"))
        assert text.count("AS TINYINT)") == cast
