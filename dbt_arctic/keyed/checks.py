"""Constraints on rows as SQL: a row that violates one fails the statement that writes it.

This module knows nothing about dbt's constraints; it receives conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic import data_type
from dbt_arctic.keyed.names import literal, quote, quote_all

EXACT_JSON = data_type.EXACT_JSON
"""The options of ``to_json`` with which its texts differ for different values."""


@dataclass(frozen=True)
class Check:
    """A constraint on every written row.

    :param title: its name in errors, for instance ``not_null on id``.
    :param text: the constraint as it was declared.
    :param broken: SQL condition that is true for a row that violates it. NULL is not true.
    """

    title: str
    text: str
    broken: str


def raise_error_sql(code: str, what: str, value: str, where: str, why: str, fix: str) -> str:
    """SQL for ``raise_error`` with the parts of an ``ArcticError``, from which the cursor rebuilds the error.

    :param value: SQL for the text that follows ``what``.
    """
    before = literal(f"{code}|{what}")
    after = literal(f"|{where}|{why}|{fix}")
    return f"raise_error(concat({before}, {value}, {after}))"


def shown_row(columns: Sequence[str]) -> str:
    """SQL for the values of some columns as JSON, also NULL, for an error. At most 300 characters."""
    row = f"to_json(struct({quote_all(columns)}), {EXACT_JSON})"
    # A vertical bar separates the parts of the error.
    return f"replace(left({row}, 300), '|', '/')"


def when_broken(checks: Sequence[Check], shown: Sequence[str], where: str, only_if: str = "") -> list[str]:
    """``WHEN`` branches that fail the statement, to be put into a ``CASE``.

    :param shown: the columns that an error shows of the row.
    :param only_if: SQL condition on the rows that are checked; empty for all.
    """
    row = shown_row(shown)
    branches = []
    for check in checks:
        error = raise_error_sql(
            "AR-307",
            f"a row violates the constraint {check.title.replace('|', '/')}: ",
            row,
            where,
            "every write checks the model's contract; nothing was written",
            f"correct these rows or filter them out in the model, or change the constraint: {check.text}",
        )
        condition = f"({only_if}) AND ({check.broken})" if only_if else check.broken
        branches.append(f"WHEN {condition} THEN {error}")
    return branches


def checked_select(
    sql: str,
    columns: Sequence[str],
    checks: Sequence[Check],
    shown: Sequence[str],
    carrier: str,
    where: str,
) -> str:
    """SQL that selects columns of a query in order, and checks its rows.

    The checks run when the column ``carrier`` is stored.

    The check is part of that column and not a filter: Spark may move a filter below a join, where it would
    check rows that the query discards.
    """
    selected = [quote(column) for column in columns]
    if checks:
        branches = "\n    ".join(when_broken(checks, shown, where))
        at = [column.lower() for column in columns].index(carrier.lower())
        selected[at] = f"CASE\n    {branches}\n    ELSE {selected[at]}\n  END AS {selected[at]}"
    listed = ",\n  ".join(selected)
    return f"SELECT\n  {listed}\nFROM (\n{sql}\n) AS model_subq"
