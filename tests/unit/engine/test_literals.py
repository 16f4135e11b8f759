"""Values as literals. That Spark reads them back is tested with Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from dbt_arctic.engine.literals import bind, literal
from dbt_arctic.errors import StatementError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-5, "-5"),
        (2**40, "1099511627776L"),
        (1.5, "1.5D"),
        (float("nan"), "DOUBLE('NaN')"),
        (Decimal("1E+2"), "100BD"),
        (b"\x00\xff", "X'00FF'"),
        (dt.date(2024, 2, 29), "DATE '2024-02-29'"),
        (dt.datetime(2024, 2, 29, 1, 2, 3), "TIMESTAMP '2024-02-29 01:02:03'"),
        (dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc), "TIMESTAMP '2024-02-29 00:00:00+00:00'"),
        ("it's\n", "'it\\'s\\n'"),
        ("${env:HOME}", "'\\u0024{env:HOME}'"),
    ],
)
def test_a_literal(value: object, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize("value", [object(), [1], Decimal("NaN")])
def test_a_value_without_a_literal_is_refused(value: object) -> None:
    with pytest.raises(StatementError):
        literal(value)


def test_only_placeholders_of_the_code_are_replaced() -> None:
    assert bind("SELECT '%s', `%s` /* %s */ = %s -- %s", [1]) == "SELECT '%s', `%s` /* %s */ = 1 -- %s"


def test_a_value_that_looks_like_a_placeholder_is_not_replaced_again() -> None:
    assert bind("SELECT %s, %s", ["%s", 2]) == "SELECT '%s', 2"


def test_without_bindings_the_statement_is_left_alone() -> None:
    assert bind("SELECT 5 %s", None) == "SELECT 5 %s"
    assert bind("SELECT '100%' LIKE '%s'", []) == "SELECT '100%' LIKE '%s'"


@pytest.mark.parametrize("values", [[1], [1, 2, 3]])
def test_the_number_of_values_must_fit(values: list[int]) -> None:
    with pytest.raises(StatementError, match="2 placeholders"):
        bind("SELECT %s, %s", values)
