"""Rules for rows as SQL text: a row that breaks one fails the statement that writes it.

It knows nothing of dbt's constraints; they come here as conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.names import literal, quote, quote_all


@dataclass(frozen=True)
class Check:
    """A rule that every written row meets.

    :param title: how an error names it, for instance ``not_null on id``.
    :param text: the rule as it was declared.
    :param broken: SQL condition that is true for a row that breaks it. NULL is not true.
    """

    title: str
    text: str
    broken: str


def raising(code: str, what: str, value: str, where: str, why: str, fix: str) -> str:
    """``raise_error`` with the parts of an ``ArcticError``, which the cursor puts together again.

    :param value: SQL of the text that follows ``what``.
    """
    before = literal(f"{code}|{what}")
    after = literal(f"|{where}|{why}|{fix}")
    return f"raise_error(concat({before}, {value}, {after}))"


def when_broken(checks: Sequence[Check], shown: Sequence[str], where: str, only_if: str = "") -> list[str]:
    """``WHEN`` branches that fail the statement, to be put into a ``CASE``.

    :param shown: the columns that an error shows of the row.
    :param only_if: SQL condition on the rows that are checked; empty for all.
    """
    # A vertical bar is what separates the parts of the error.
    row = f"replace(left(to_json(struct({quote_all(shown)})), 300), '|', '/')"
    branches = []
    for check in checks:
        error = raising(
            "AR-307",
            f"a row breaks the constraint {check.title.replace('|', '/')}: ",
            row,
            where,
            "the model's contract is checked by each write; nothing was written",
            f"correct or filter such rows in the model, or change the constraint: {check.text}",
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
    """The columns of a query in an order, its rows checked by whatever stores the column ``carrier``.

    The check is part of that column and not a filter: Spark may move a filter below a join, and would
    there see rows that the query leaves out.
    """
    selected = [quote(column) for column in columns]
    if checks:
        branches = "\n    ".join(when_broken(checks, shown, where))
        at = [column.lower() for column in columns].index(carrier.lower())
        selected[at] = f"CASE\n    {branches}\n    ELSE {selected[at]}\n  END AS {selected[at]}"
    listed = ",\n  ".join(selected)
    return f"SELECT\n  {listed}\nFROM (\n{sql}\n) AS model_subq"
