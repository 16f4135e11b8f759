"""The versions of one row, and what a commit did to it. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.log import PROPERTY_RUN

Effect = Literal["new", "changed", "deleted", "unchanged", "late", "written"]
"""What a commit did to the row. ``late``: the row was newer, by ``sequence_by``. ``written``: the values
before are not recorded any more."""

Stored = Literal["pending", "merged", "base", "older versions"]
"""Where what a commit wrote is stored. ``pending``: in the change table only; ``merged``: in the change table
and merged into the base table; ``base``: in the base table only; ``older versions``: in older snapshots
only."""

Values = Mapping[str, Any]
"""The values of a row by column."""


class TypedValues(dict[str, Any]):
    """The values of a row by column, and the Spark types that its columns had in its generation."""

    def __init__(self, values: Mapping[str, Any], types: Mapping[str, str]) -> None:
        super().__init__(values)
        self.types = types


MANUAL = "manual"
"""The kind of a commit of another program."""


@dataclass(frozen=True)
class StoredRow:
    """One version of the row in a snapshot of a side table.

    :param txn: the transaction that wrote it; ``None`` in a base table.
    :param action: ``U``, ``D`` or ``-U``; ``None`` in a base table.
    :param sequence: Iceberg's sequence number of the commit that wrote it.
    """

    is_change: bool
    snapshot_id: int
    txn: int | None
    offset: int | None
    action: str | None
    sequence: int
    values: Values


@dataclass(frozen=True)
class RowChange:
    """One commit that wrote the row.

    :param kind: the kind of the commit, as in the history of the table.
    :param before: the row before; ``None`` if there was none, or if ``is_before_known`` is false.
    :param after: the row after; ``None`` if there is none.
    :param commit: the snapshot of the commit; ``None`` if it has expired or is not one of dbt-arctic's.
    :param is_base: whether the commit is one of the base table.
    :param txn: the transaction in the change table, and ``offset`` the position in it.
    """

    kind: str
    effect: Effect
    time_ms: int | None
    before: Values | None
    after: Values | None
    is_before_known: bool = True
    commit: Snapshot | None = None
    is_base: bool = False
    txn: int | None = None
    offset: int | None = None
    stored: Stored = "older versions"

    @property
    def run(self) -> str:
        """The invocation and the model of the commit; empty if it is not recorded."""
        return "" if self.commit is None else self.commit.summary.get(PROPERTY_RUN, "")

    @property
    def changed(self) -> tuple[str, ...]:
        """The columns whose value changed; all columns if there was no row before or there is none now.

        They include the columns that only one of the two generations has, if a full refresh changed them.
        """
        if self.effect in ("unchanged", "late"):
            return ()
        if self.before is None or self.after is None:
            return tuple(self.after or self.before or ())
        before, after = self.before, self.after
        names = (*after, *(name for name in before if name not in after))
        return tuple(
            name
            for name in names
            if name not in before or name not in after or not is_same(before[name], after[name])
        )


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same. NaN equals itself, 0.0 does not equal -0.0, and maps have no order.

    >>> is_same(float("nan"), float("nan")), is_same(1, 2), is_same(None, None)
    (True, False, True)
    >>> is_same(0.0, -0.0), is_same([0.0], [-0.0]), is_same(1, 1.0)
    (False, False, True)
    >>> is_same({"a": 1, "b": [2.0]}, {"b": [2.0], "a": 1})
    True
    """
    if isinstance(one, _DISTINCT_IF_EQUAL) and isinstance(other, _DISTINCT_IF_EQUAL):
        return bool(_distinct(one) == _distinct(other))
    return bool(one == other) or (one is not None and other is not None and str(one) == str(other))


_DISTINCT_IF_EQUAL = (float, datetime, list, dict)
"""Types of which Python finds values equal that are different: the two zeros, and the two instants of an hour
that a time zone repeats. Nested values contain them."""


def _distinct(value: Any) -> Any:
    """A value in a form that is equal only for the same values."""
    match value:
        case dict():
            return {repr(name): _distinct(one) for name, one in value.items()}
        case list():
            return [_distinct(one) for one in value]
    return repr(value)


def is_same_row(one: Values | None, other: Values | None) -> bool:
    """Whether two rows have the same values."""
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(is_same(value, other[name]) for name, value in one.items())


def values_of(row: StoredRow | None) -> Values | None:
    """The row that readers see after a write; ``None`` after a delete."""
    return None if row is None or row.action == "D" else row.values


def change_of(kind: str, before: Values | None, after: Values | None, *, is_known: bool = True) -> RowChange:
    """What a commit of a kind did to a row, given the row before and after it."""
    effect: Effect
    if not is_known:
        effect = "deleted" if after is None else "written"
    elif before is None:
        effect = "unchanged" if after is None else "new"
    elif after is None:
        effect = "deleted"
    else:
        effect = "unchanged" if is_same_row(before, after) else "changed"
    return RowChange(kind, effect, None, before, after, is_known)
