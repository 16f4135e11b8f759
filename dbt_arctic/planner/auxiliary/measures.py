"""Classifies the columns of an aggregate query: key, counts, sums, extremes, and columns derived from them.

The key may be computed from the groups, such as ``coalesce(g, '?')`` or a hash of several columns. Then the
groups are stored as well, because two groups might have the same key.

This module does not know about changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dbt_arctic.keyed.summary_delta import OppositeEnd
from dbt_arctic.planner.algebra.operators import Aggregate, Project
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain, substitute
from dbt_arctic.planner.auxiliary.null_preserving import counted_value
from dbt_arctic.planner.delta.count_distinct import counted_once
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.planner.typing.inference import Types

_EXACT = ("int", "bigint", "decimal")

Extreme = Literal["min", "max"]
_Items = dict[str, exp.Expression]


@dataclass(frozen=True)
class Roles:
    """The columns of an aggregate query.

    :param keys: the key columns, over the groups.
    :param values: the calls of other columns.
    :param derived: columns computed from other columns of the result.
    :param carried: columns that hold the groups that are not key columns themselves.
    """

    aggregate: Aggregate
    keys: _Items
    values: _Items
    derived: _Items
    carried: _Items

    @property
    def group_columns(self) -> tuple[str, ...]:
        """For each group, the column that holds it."""
        shown = {plain(value): name for name, value in (*self.keys.items(), *self.carried.items())}
        return tuple(shown[name] for name, _ in self.aggregate.groups)


@dataclass(frozen=True)
class Measures:
    """The aggregates of a query that can be maintained from their stored values and changes.

    :param arguments: the argument of each aggregate, ``None`` for ``count(*)``; without those of
        ``distinct``.
    :param distinct: for each count of distinct values, its argument.
    :param rows: the column that counts rows.
    :param counts: the columns that count, with their arguments.
    :param counted: for each sum, the column that counts its values.
    :param extremes: for each ``min`` and ``max``, which of the two it is.
    """

    arguments: Mapping[str, exp.Expression | None]
    distinct: Mapping[str, exp.Expression]
    rows: str
    counts: Mapping[str, exp.Expression | None]
    counted: dict[str, str]
    extremes: dict[str, Extreme]

    @property
    def ends(self) -> dict[str, OppositeEnd]:
        """The opposite of each extreme that is stored with its opposite and a count."""
        return _ends_of(self.extremes, self.arguments, self.counts)


def read_measures(values: _Items, types: Types) -> Measures | None:
    """Classify the aggregates of a query.

    :param values: the call of each column.
    :param types: the types of columns.

    :returns: ``None`` if one of them cannot be maintained from its stored value, or if rows are not counted.
    """
    distinct = {name: value for name, call in values.items() if (value := counted_once(call)) is not None}
    arguments = {name: _argument(value) for name, value in values.items() if name not in distinct}
    counts = {name: value for name, value in arguments.items() if isinstance(values[name], exp.Count)}
    rows = next((name for name, argument in counts.items() if argument is None), None)
    if rows is None:
        return None
    counted = {}
    extremes: dict[str, Extreme] = {}
    for name, argument in arguments.items():
        if name in counts:
            continue
        if isinstance(values[name], exp.Min | exp.Max):
            if argument is None or not types.is_ordered(argument):
                return None
            extremes[name] = "min" if isinstance(values[name], exp.Min) else "max"
            continue
        counter = _counter(argument, counts, types)
        if isinstance(argument, exp.Literal):
            counter = rows
        if counter is None or argument is None or types.category(argument) not in _EXACT:
            return None
        counted[name] = counter
    return Measures(arguments, distinct, rows, counts, counted, extremes)


def _counter(
    argument: exp.Expression | None, counts: Mapping[str, exp.Expression | None], types: Types
) -> str | None:
    """The column that counts the values of a sum; ``None`` if there is none."""
    if argument is None:
        return None
    counted = (argument, counted_value(argument, types))
    return next((name for name, value in counts.items() if value is not None and value in counted), None)


def _ends_of(
    extremes: Mapping[str, Extreme],
    arguments: Mapping[str, exp.Expression | None],
    counts: Mapping[str, exp.Expression | None],
) -> dict[str, OppositeEnd]:
    found = {}
    for name, which in extremes.items():
        value = arguments[name]
        others = (one for one, end in extremes.items() if end != which and arguments[one] == value)
        other, counter = next(others, None), next((one for one in counts if counts[one] == value), None)
        if other is not None and counter is not None:
            found[name] = OppositeEnd(other, counter)
    return found


def roles(query: Query, key: Sequence[str]) -> Roles | None:
    """The role of each column; ``None`` for queries of another form."""
    shown: dict[str, exp.Expression] = {name: column(identifier) for name, identifier in query.columns}
    node = query.node
    while isinstance(node, Project) and not node.subqueries:
        items = dict(node.items)
        shown = {name: substitute(value, items) for name, value in shown.items()}
        node = node.child
    if not isinstance(node, Aggregate) or node.grouping_sets is not None:
        return None
    groups, calls = dict(node.groups), dict(node.aggregates)
    wanted = {name.lower() for name in key}
    keys = {name: value for name, value in shown.items() if name.lower() in wanted}
    if len(keys) != len(wanted) or not all(_is_key(value, groups) for value in keys.values()):
        return None
    # The column that holds each group and each call.
    stored = {below: name for name, value in keys.items() if (below := plain(value)) is not None}
    values: dict[str, exp.Expression] = {}
    carried: dict[str, exp.Expression] = {}
    others: dict[str, exp.Expression] = {}
    for name, value in shown.items():
        below = plain(value)
        if name in keys:
            continue
        if below in calls:
            values[name] = calls[str(below)]
        elif below in groups and below not in stored:
            carried[name] = value
        else:
            others[name] = value
            continue
        stored.setdefault(str(below), name)
    if not groups.keys() <= stored.keys() or any(_is_other(call) for call in values.values()):
        return None
    if not columns_of(*others.values()) <= stored.keys():
        return None
    known = {below: column(name) for below, name in stored.items()}
    derived = {name: substitute(value, known) for name, value in others.items()}
    return Roles(node, keys, values, derived, carried)


def _is_key(value: exp.Expression, groups: Mapping[str, exp.Expression]) -> bool:
    """Whether a key column is a group, is computed from groups alone, or is the constant of a single row."""
    if not groups:
        return isinstance(value, exp.Literal)
    used = columns_of(value)
    return bool(used) and used <= groups.keys() and value.find(TimeFunction) is None


def _is_other(call: exp.Expression) -> bool:
    plain_call = isinstance(call, exp.Count | exp.Sum | exp.Min | exp.Max) and not call.args.get(
        "expressions"
    )
    is_distinct = isinstance(call.this, exp.Distinct) and counted_once(call) is None
    return not plain_call or is_distinct or call.find(exp.Filter) is not None


def _argument(call: exp.Expression) -> exp.Expression | None:
    """The expression that a call counts or sums; ``None`` for ``count(*)`` and counts of a literal."""
    value = call.this
    return None if isinstance(value, exp.Star | exp.Literal) and isinstance(call, exp.Count) else value
