"""SQL of the totals of stored groups and their changes: one row for each key.

A key may be computed from other values, such as a hash of two columns. These values are carried with the
group, and may be replaced by others: the name of a customer in a query that groups by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dbt_arctic.keyed.names import literal, quote, quote_all

IS_CHANGE = quote("_arctic_is_change")
KEPT, MOVED = "_arctic_kept", "_arctic_moved"
BELOW_ZERO = "a row count became negative: the stored sums do not match the rows that were read"
SEVERAL_GROUPS = "two groups have the same key, so their sums cannot be added to one row"


@dataclass(frozen=True)
class Total:
    """A column of each group: an aggregate of a value. The aggregate of partial results is the same one.

    :param is_zero: whether the result is 0 without values.
    """

    function: Literal["bool_or", "first", "max", "min", "sum"]
    value: str
    name: str
    is_zero: bool = False

    @property
    def sql(self) -> str:
        call = f"{self.function}({self.value}{', true' * (self.function == 'first')})"
        return f"{f'coalesce({call}, 0)' if self.is_zero else call} AS {quote(self.name)}"


def grouped(rows: str, by: Sequence[str], totals: Sequence[Total], more: Sequence[str] = ()) -> str:
    """SQL of one row for each value of some columns.

    :param more: SQL of other columns.
    """
    listed = ",\n    ".join([*(one.sql for one in totals), *more])
    return f"""\
  SELECT {quote_all(by)},
    {listed}
  FROM (
{rows}
  )
  GROUP BY {quote_all(by)}"""


def shared(name: str, type_: str, rows: str) -> str:
    """SQL of the value that all rows of a key share. It is an error if they do not.

    The input has one row for each value, with the number of its rows.
    """
    count, value = quote(rows), f"CASE WHEN {quote(rows)} > 0 THEN {quote(name)} END"
    is_one = f"min({value}) <=> max({value}) AND count({value}) IN (0, count_if({count} > 0))"
    # GROUP BY writes -0.0 as 0.0.
    shown = f"min({value}) + 0D" if type_ in ("float", "double") else f"min({value})"
    return (
        f"CASE WHEN min({count}) < 0 THEN raise_error({literal(BELOW_ZERO)})\n"
        f"      WHEN {is_one} THEN {shown}\n"
        f"      ELSE raise_error({literal(SEVERAL_GROUPS)}) END AS {quote(name)}"
    )


def totals_of(name: str) -> list[Total]:
    """A sum or count with its changes, and the changes alone."""
    value = quote(name)
    return [
        Total("sum", value, name),
        Total("sum", f"CASE WHEN {IS_CHANGE} THEN {value} END", "_arctic_added_" + name, is_zero=True),
    ]


def kept_rows(rows: str) -> Total:
    """The number of stored rows.

    :param rows: the column that counts rows.
    """
    return Total("sum", f"CASE WHEN NOT {IS_CHANGE} THEN {quote(rows)} END", KEPT, is_zero=True)


def has_new_carried_values(rows: str) -> str:
    """SQL of whether a key has other carried values than the stored row, which may have the same sums.

    The input has one row for each value, with ``kept_rows``.
    """
    return f"bool_or({quote(rows)} > 0 AND {quote(KEPT)} = 0) AS {quote(MOVED)}"


def remaining_value_counts(counter: str) -> list[Total]:
    """The number of stored values, and a lower bound of those that remain."""
    count = quote(counter)
    were = f"CASE WHEN NOT {IS_CHANGE} THEN {count} END"
    remaining_value_counts = f"CASE WHEN NOT {IS_CHANGE} OR {count} < 0 THEN {count} END"
    return [
        Total("sum", were, "_arctic_were_" + counter, is_zero=True),
        Total("sum", remaining_value_counts, "_arctic_staying_" + counter, is_zero=True),
    ]
