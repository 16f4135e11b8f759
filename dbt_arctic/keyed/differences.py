"""SQL for the differences between the rows of two queries."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.keyed.compare import distinguishable, same_row
from dbt_arctic.keyed.names import quote, quote_all

TOLERANCES = {"double": "1e-9D", "float": "1e-5D"}
"""Relative tolerance for floating-point values that may differ because they were added in a different
order."""


def count_differing(one: str, other: str, columns: Sequence[tuple[str, str]]) -> str:
    """SQL for the number of rows that only one of two queries returns, and the number of rows of the first.

    A row counts as often as it is missing in the other query. Each query is run once.

    :param columns: name and type of the columns of both that matter.
    """
    values = ", ".join(f"{distinguishable(quote(name), type_)} AS {quote(name)}" for name, type_ in columns)
    return (
        "SELECT coalesce(sum(abs(_arctic_surplus)), 0), coalesce(sum(_arctic_rows), 0)\nFROM (\n"
        "SELECT sum(_arctic_weight) AS _arctic_surplus, count_if(_arctic_weight = 1) AS _arctic_rows\n"
        "FROM (\n"
        f"SELECT {values}, 1 AS _arctic_weight\nFROM (\n{one}\n)\nUNION ALL\n"
        f"SELECT {values}, -1 AS _arctic_weight\nFROM (\n{other}\n)\n)\n"
        f"GROUP BY {quote_all([name for name, _ in columns])}\n)"
    )


def differing_keys(
    one: str,
    other: str,
    key: Sequence[tuple[str, str]],
    exact: Sequence[tuple[str, str]],
    within_tolerance: Sequence[tuple[str, str]],
) -> str:
    """SQL for keys that only one of two queries returns, and rows that differ between the two.

    :param within_tolerance: floating-point columns, which are compared with a tolerance.
    """
    here = "true AS _arctic_here"
    conditions = [same_row("l", "r", dict(exact))] if exact else []
    conditions += [
        is_within_tolerance(f"l.{quote(name)}", f"r.{quote(name)}", type_) for name, type_ in within_tolerance
    ]
    same = " AND ".join(conditions or ["true"])
    return (
        f"SELECT 1 AS differs\nFROM (SELECT *, {here} FROM (\n{one}\n)) AS l\n"
        f"FULL JOIN (SELECT *, {here} FROM (\n{other}\n)) AS r\nON {same_row('l', 'r', dict(key))}\n"
        f"WHERE NOT coalesce(l._arctic_here AND r._arctic_here AND {same}, false)"
    )


def is_within_tolerance(left: str, right: str, type_: str) -> str:
    """SQL that is true if two floating-point values are equal up to the tolerance of their type."""
    distance = f"abs({left} - {right})"
    # In Spark, NaN is greater than any number and equal to itself. NaN and infinity equal no other value
    # within a tolerance.
    return (
        f"({left} <=> {right} OR ({distance} < double('Infinity') "
        f"AND {distance} <= {TOLERANCES[type_]} * greatest(abs({left}), abs({right}))))"
    )
