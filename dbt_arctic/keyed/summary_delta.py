"""SQL for aggregate maintenance: a batch that adds changes to stored sums, counts, MIN and MAX values.

A group with a count of zero is deleted (counting algorithm, Gupta et al. 1993).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dbt_arctic.keyed.batch import ROWS_OF_KEY
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.group_totals import (
    BELOW_ZERO,
    IS_CHANGE,
    MOVED,
    Total,
    grouped,
    has_new_carried_values,
    kept_rows,
    remaining_value_counts,
    shared,
    totals_of,
)
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.one_task import in_one_task
from dbt_arctic.keyed.read import Logged, merge_on_read
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.version import Version

_IS_IMAGE = quote("_arctic_is_image")
_IS_RECOMPUTED = quote("_arctic_is_recomputed")
_IMAGE, _IMAGE_THERE = "_arctic_was_", "_arctic_was"
EXTREME_LOST = "the MIN or MAX value of a group was deleted, so the group must be recomputed"
"""The error of a statement for which the stored values do not suffice."""


@dataclass(frozen=True)
class AffectedGroups:
    """The affected groups.

    :param keys: SQL of their keys.
    :param ranges: conditions on key columns that hold for all of them.
    """

    keys: str
    ranges: tuple[str, ...] = ()


class OppositeEnd(NamedTuple):
    """The column of the opposite extreme of the same values, and the column that counts the values."""

    column: str
    counter: str


@dataclass(frozen=True)
class SumColumns:
    """The roles of the columns of a keyed table.

    :param rows: the column that counts rows; ``counts``: all columns that count.
    :param counted: for each sum, the column that counts its values.
    :param whole: whether there is a single group, which exists even without rows.
    :param extremes: ``min`` or ``max`` for each other column; changes contain its values.
    :param ends: for some extremes, the opposite one.
    :param spare: those extremes that become NULL when the value is deleted, until they are recomputed.
    :param derived: for each column that is not maintained itself, SQL of its value over the others.
    :param carried: columns with the values from which a key is computed: equal in all rows of the key.
    """

    rows: str
    counts: Sequence[str]
    counted: Mapping[str, str]
    whole: bool = False
    extremes: Mapping[str, Literal["min", "max"]] = field(default_factory=dict)
    ends: Mapping[str, OppositeEnd] = field(default_factory=dict)
    spare: Collection[str] = ()
    derived: Mapping[str, str] = field(default_factory=dict)
    carried: Sequence[str] = ()

    @property
    def numbers(self) -> list[str]:
        """The columns that changes are added to."""
        return [*self.counts, *self.counted]

    def _extremes(self, *, is_recomputed: bool = False) -> dict[str, _Extreme]:
        return {
            name: _Extreme(
                name,
                which,
                self.rows,
                *self.ends.get(name, OppositeEnd("", "")),
                name in self.spare,
                is_recomputed=is_recomputed,
            )
            for name, which in self.extremes.items()
        }


def groups_with_changes(
    table: KeyedTable,
    sums: SumColumns,
    changes: str,
    version: Version,
    known: ColumnsAt,
    *,
    images: bool = False,
    logged: Logged = "several",
    affected: AffectedGroups | None = None,
    one_task: bool = False,
) -> str:
    """SQL of each group with its stored values and its changes.

    ``changed_groups`` and ``groups_to_recompute`` read it.

    :param changes: SQL of the key and the change of each other column, with any number of rows per group.
    :param images: whether ``changed_groups`` returns the stored rows, too.
    :param logged: the contents of the change table at the version.
    :param affected: the groups of ``changes``, if only their stored rows are to be read; ``changes`` must
        then be a result of ``net_changes``.
    :param one_task: whether one task adds the changes, because there are few rows in one bucket.
    """
    ends = sums._extremes()
    if ends and not affected:
        changes = net_changes(in_one_task(changes) if one_task else changes, table, sums)
    kept = _Images(table) if images else None
    columns = quote_all([*table.key, *sums.numbers, *ends, *sums.carried])
    keys = affected.keys if affected else None
    stored = merge_on_read(table, version, known, logged, keys, in_place=one_task)
    if affected and affected.ranges:
        stored = f"SELECT *\nFROM (\n{stored}\n) AS m\nWHERE {' AND '.join(affected.ranges)}"
    rows = f"""\
    SELECT {columns}, true AS {IS_CHANGE}{kept.of_changes if kept else ""} FROM (
{changes}
    )
    UNION ALL
    SELECT {columns}, false AS {IS_CHANGE}{kept.of_stored if kept else ""} FROM (
{stored}
    )"""
    rows = in_one_task(rows) if one_task else rows
    totals = [
        *(total for name in sums.numbers for total in totals_of(name)),
        *(total for end in ends.values() for total in end.totals),
        *(
            total
            for counter in dict.fromkeys(end.counter for end in ends.values() if end.counter)
            for total in remaining_value_counts(counter)
        ),
        *(kept.of_group if kept else ()),
    ]
    if not sums.carried:
        return grouped(rows, table.key, totals)
    # A key may get other carried values: first it is known which of them still have rows.
    of_values = grouped(rows, [*table.key, *sums.carried], [*totals, kept_rows(sums.rows)])
    again = [Total(one.function, quote(one.name), one.name) for one in totals]
    values = [shared(name, table.types[name], sums.rows) for name in sums.carried]
    return grouped(of_values, table.key, again, [*values, has_new_carried_values(sums.rows)])


def changed_groups(
    table: KeyedTable, sums: SumColumns, groups: str, *, images: bool = False, recomputed: str = ""
) -> str:
    """SQL of the new rows. Groups without a change are excluded.

    Columns: those of the table, ``_action``, and ``ROWS_OF_KEY``, which is 1.

    :param groups: SQL of the groups with their changes, with or without ``images``.
    :param images: whether to add the stored row of each returned group as ``-U``.
    :param recomputed: SQL of the groups that have lost an extreme (see ``groups_to_recompute``): the key, and
        their current extremes.
    """
    ends = sums._extremes(is_recomputed=bool(recomputed))
    types = table.types
    shown = []
    for name in table.column_names:
        if name in sums.derived:
            continue
        value = quote(name)
        if name == sums.rows:
            value = f"CASE WHEN {value} < 0 THEN raise_error({literal(BELOW_ZERO)}) ELSE {value} END"
        elif name in sums.counted:
            value = f"CASE WHEN {quote(sums.counted[name])} > 0 THEN {value} END"
        elif name in ends:
            value = ends[name].shown
        shown.append(quote(name) if name in table.key else f"CAST({value} AS {types[name]}) AS {quote(name)}")
    differs = " OR ".join(
        [
            *(f"{quote('_arctic_added_' + name)} <> 0" for name in sums.numbers),
            *(end.differs for end in ends.values()),
            *([quote(MOVED)] if sums.carried else []),
        ]
    )
    rows = quote(sums.rows)
    action = "'U'" if sums.whole else f"CASE WHEN {rows} = 0 THEN 'D' ELSE 'U' END"
    # A group that appeared and disappeared between two refreshes was never stored.
    gone = "" if sums.whole else f"\n  AND NOT ({rows} = 0 AND {quote('_arctic_added_' + sums.rows)} = 0)"
    kept = _Images(table) if images else None
    if recomputed:
        groups = _with_recomputed(table, groups, recomputed, list(ends))
    found = f"""\
SELECT {", ".join(shown)},
  {action} AS {quote(ACTION)}, 1L AS {quote(ROWS_OF_KEY)}{kept.names if kept else ""}
FROM (
{groups}
)
WHERE ({differs}){gone}"""
    if sums.derived:
        found = _with_derived(table, found, sums.derived, kept.names if kept else "")
    return kept.with_images(found) if kept else found


def groups_to_recompute(sums: SumColumns, groups: str, key: Sequence[str]) -> str:
    """The remaining groups that have lost an extreme that is not ``spare``; columns ``key_0``, ``key_1``, ...

    :param groups: SQL of the groups with their changes.
    :param key: the columns that hold the groups, in the order in which they are numbered.
    """
    listed = ", ".join(f"{quote(name)} AS key_{place}" for place, name in enumerate(key))
    left = " OR ".join(end.has_lost_extreme for end in sums._extremes().values() if not end.is_spare)
    return f"SELECT {listed}\nFROM (\n{groups}\n)\nWHERE {left}"


def _with_recomputed(table: KeyedTable, groups: str, recomputed: str, ends: Sequence[str]) -> str:
    """Join groups with their recomputed extremes."""
    values = "".join(f", a.{quote(name)} AS {quote('_recomputed_' + name)}" for name in ends)
    same = " AND ".join(f"g.{quote(name)} = a.{quote(name)}" for name in table.key)
    return f"""\
SELECT g.*, a.{_IS_RECOMPUTED}{values}
FROM (
{groups}
) AS g
LEFT JOIN (
SELECT *, true AS {_IS_RECOMPUTED}
FROM (
{recomputed}
)
) AS a
  ON {same}"""


def _with_derived(table: KeyedTable, sums: str, derived: Mapping[str, str], more: str) -> str:
    """Add the derived columns.

    They are not computed for a deleted group, because they might divide by its count.
    """
    shown = ",\n  ".join(
        f"CAST(CASE WHEN {quote(ACTION)} = 'U' THEN {derived[name]} END AS {type_}) AS {quote(name)}"
        if name in derived
        else quote(name)
        for name, type_ in table.types.items()
    )
    return f"SELECT {shown},\n  {quote_all([ACTION, ROWS_OF_KEY])}{more}\nFROM (\n{sums}\n)"


class _Images:
    """The stored row of each group, carried along as columns and returned as a separate row at the end."""

    def __init__(self, table: KeyedTable) -> None:
        self.table = table
        self.others = {name: type_ for name, type_ in table.types.items() if name not in table.key}

    @property
    def names(self) -> str:
        return ", " + quote_all([_IMAGE_THERE, *(_IMAGE + name for name in self.others)])

    @property
    def of_changes(self) -> str:
        nulls = (f"CAST(NULL AS {type_}) AS {quote(_IMAGE + name)}" for name, type_ in self.others.items())
        return "".join(f", {one}" for one in nulls)

    @property
    def of_stored(self) -> str:
        return "".join(f", {quote(name)} AS {quote(_IMAGE + name)}" for name in self.others)

    @property
    def of_group(self) -> list[Total]:
        """The stored row. A group has at most one, so the first one is the only one."""
        first = (Total("first", quote(_IMAGE + name), _IMAGE + name) for name in self.others)
        return [Total("bool_or", f"NOT {IS_CHANGE}", _IMAGE_THERE), *first]

    def with_images(self, rows: str) -> str:
        shown = ",\n  ".join(
            f"CASE WHEN {_IS_IMAGE} THEN {quote(_IMAGE + name)} ELSE {quote(name)} END AS {quote(name)}"
            if name in self.others
            else quote(name)
            for name in self.table.column_names
        )
        each = f"CASE WHEN {quote(_IMAGE_THERE)} THEN array(false, true) ELSE array(false) END"
        return f"""\
SELECT {shown},
  CASE WHEN {_IS_IMAGE} THEN '-U' ELSE {quote(ACTION)} END AS {quote(ACTION)}, {quote(ROWS_OF_KEY)}
FROM (
{rows}
)
LATERAL VIEW explode({each}) AS {_IS_IMAGE}"""


def net_changes(changes: str, table: KeyedTable, sums: SumColumns) -> str:
    """The net change for each group and each value of its extremes.

    A value that was added and removed again is excluded.
    """
    values = quote_all([*table.key, *sums.extremes, *sums.carried])
    listed = ", ".join(f"sum({quote(name)}) AS {quote(name)}" for name in sums.numbers)
    return f"SELECT {values}, {listed}\nFROM (\n{changes}\n)\nGROUP BY {values}"


@dataclass(frozen=True)
class _Extreme:
    """A MIN or MAX value of a group.

    :param which: ``min`` or ``max``.
    :param rows: the column that counts rows.
    :param other: the column of the opposite extreme, and ``counter``: that of the number of values; both
        optional.
    :param is_recomputed: whether the groups that have lost it were recomputed.
    """

    name: str
    which: Literal["min", "max"]
    rows: str
    other: str
    counter: str
    is_spare: bool
    is_recomputed: bool = False

    @property
    def totals(self) -> list[Total]:
        """The stored value combined with the added ones.

        Reads the stored value, and the best removed and the best added value.
        """
        value, count = quote(self.name), quote(self.rows)
        parts = {
            self.name: f"NOT {IS_CHANGE} OR {count} > 0",
            f"_arctic_stored_{self.name}": f"NOT {IS_CHANGE}",
            f"_arctic_lost_{self.name}": f"{IS_CHANGE} AND {count} < 0",
            f"_arctic_gained_{self.name}": f"{IS_CHANGE} AND {count} > 0",
        }
        return [
            Total(self.which, f"CASE WHEN {condition} THEN {value} END", alias)
            for alias, condition in parts.items()
        ]

    @property
    def shown(self) -> str:
        value, left, gone = quote(self.name), self.has_lost_extreme, f"{quote(self.rows)} = 0"
        recomputed = (
            f"WHEN {_IS_RECOMPUTED} THEN {quote('_recomputed_' + self.name)} " if self.is_recomputed else ""
        )
        if self.is_spare:
            left = f"{left} OR {self._is_unknown}"
        # A group that was not recomputed has lost its extreme since.
        found = "NULL" if self.is_spare else f"raise_error({literal(EXTREME_LOST)})"
        return f"CASE WHEN {gone} THEN NULL {recomputed}WHEN {left} THEN {found} ELSE {value} END"

    @property
    def differs(self) -> str:
        stored = quote("_arctic_stored_" + self.name)
        if self.is_recomputed:
            return f"NOT ({self.shown} <=> {stored})"
        found = f"NOT ({quote(self.name)} <=> {stored}) OR {self.has_lost_extreme}"
        return f"NOT ({self._is_unknown}) AND ({found})" if self.is_spare else found

    @property
    def _is_unknown(self) -> str:
        """SQL condition: the group has lost its extreme before, so it has values and none is stored."""
        return (
            f"{quote('_arctic_stored_' + self.name)} IS NULL AND {quote('_arctic_were_' + self.counter)} > 0"
        )

    @property
    def has_lost_extreme(self) -> str:
        """SQL condition: a remaining group has lost its stored value and gained no better one.

        If all values were equal, this requires that none of them is left.
        """
        stored, lost, gained = (quote(f"_arctic_{kind}_{self.name}") for kind in ("stored", "lost", "gained"))
        reaches = "<=" if self.which == "min" else ">="
        stays = ""
        if self.other:
            other, counter = quote(f"_arctic_stored_{self.other}"), quote(f"_arctic_staying_{self.counter}")
            stays = f" AND NOT ({stored} <=> {other} AND {counter} > 0)"
        return (
            f"({quote(self.rows)} <> 0 AND coalesce({lost} {reaches} {stored}, false) "
            f"AND NOT coalesce({gained} {reaches} {lost}, false){stays})"
        )
