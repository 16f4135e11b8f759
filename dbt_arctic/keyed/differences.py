"""SQL for the differences between the rows of two queries."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.keyed.compare import distinguishable, same_row
from dbt_arctic.keyed.names import quote

TOLERANCES = {"double": "1e-9D", "float": "1e-5D"}
"""Relative tolerance for floating-point values that may differ because they were added in a different
order."""


def differing_rows(one: str, other: str, columns: Sequence[tuple[str, str]]) -> str:
    """SQL for rows that only one of two queries returns, each as often as it is missing in the other.

    :param columns: name and type of the columns of both that matter.
    """
    values = ", ".join(f"{distinguishable(quote(name), type_)} AS {quote(name)}" for name, type_ in columns)
    left, right = f"SELECT {values}\nFROM (\n{one}\n)", f"SELECT {values}\nFROM (\n{other}\n)"
    return f"({left}\nEXCEPT ALL\n{right})\nUNION ALL\n({right}\nEXCEPT ALL\n{left})"


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
        _is_within_tolerance(f"l.{quote(name)}", f"r.{quote(name)}", type_)
        for name, type_ in within_tolerance
    ]
    same = " AND ".join(conditions or ["true"])
    return (
        f"SELECT 1 AS differs\nFROM (SELECT *, {here} FROM (\n{one}\n)) AS l\n"
        f"FULL JOIN (SELECT *, {here} FROM (\n{other}\n)) AS r\nON {same_row('l', 'r', dict(key))}\n"
        f"WHERE NOT coalesce(l._arctic_here AND r._arctic_here AND {same}, false)"
    )


def _is_within_tolerance(left: str, right: str, type_: str) -> str:
    distance = f"abs({left} - {right})"
    # In Spark, NaN is greater than any number and equal to itself. NaN and infinity equal no other value
    # within a tolerance.
    return (
        f"({left} <=> {right} OR ({distance} < double('Infinity') "
        f"AND {distance} <= {TOLERANCES[type_]} * greatest(abs({left}), abs({right}))))"
    )
