"""Aggregates whose value does not depend on the order of rows, although their function does.

These are a list that is sorted afterwards, a list in an order that distinguishes its values, the value that
belongs to the largest of distinct values, and any value if all rows of a group have the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Node
from dbt_arctic.planner.algebra.scalars import plain
from dbt_arctic.planner.properties.constant_columns import fixed_columns
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.functional_dependencies import is_of
from dbt_arctic.planner.properties.unique_keys import determined_by, is_unique
from dbt_arctic.planner.spark.collected_arrays import collected_in, is_count, is_search
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.spark.syntax import core

_ANY = frozenset(["any_value", "first", "first_value", "last", "last_value", "some_value"])
_ENDS = frozenset(["max_by", "min_by"])
_LISTS = frozenset(["listagg", "string_agg"])
_STRUCTS = frozenset(["named_struct", "struct"])

Identical = Callable[[exp.Expression], bool]
"""Whether values of an expression that compare equal are the same value. Zeros of a float are not."""


def independent_of_order(
    expression: exp.Expression, node: Node, facts: Facts, identical: Identical
) -> frozenset[int]:
    """The aggregate calls of an operator's expression that give the same for every order of its rows.

    :returns: each by its ``id``.
    """
    return frozenset(id(call) for call in _independent(expression, node, facts, identical))


def _independent(
    expression: exp.Expression, node: Node, facts: Facts, identical: Identical
) -> Iterator[exp.Expression]:
    for part in expression.walk():
        if not isinstance(part, exp.Expression):
            continue
        collected = collected_in(part)
        if collected is not None:
            if is_count(part) or is_search(part) or _are_identical(_arguments(collected)[:1], identical):
                yield collected
            continue
        if not isinstance(node, Aggregate) or function_name(core(part)) not in _LISTS | _ENDS | _ANY:
            continue
        if _Group(node, facts, identical).decides(part):
            yield core(part)


class _Group:
    """What the rows of one group have in common."""

    def __init__(self, node: Aggregate, facts: Facts, identical: Identical) -> None:
        self._child, self._facts, self._identical = node.child, facts, identical
        sets = node.grouping_sets
        self._groups = [
            value
            for place, (_, value) in enumerate(node.groups)
            # In a set without a column, the rows of a group have several values of it.
            if sets is None or all(place in places for places in sets)
        ]

    def decides(self, call: exp.Expression) -> bool:
        """Whether the value of an aggregate follows from the group, and from the order that it names."""
        function = core(call)
        name, arguments = function_name(function), _arguments(function)
        if not arguments:
            return False
        if name in _ANY:
            return self._follows(arguments[0], [])
        if name in _ENDS:
            return len(arguments) == 2 and self._is_distinguished(arguments[0], _fields(arguments[1]))
        order = call.expression if isinstance(call, exp.WithinGroup) else None
        if not isinstance(order, exp.Order):
            return False
        by = [part.this for part in order.expressions if isinstance(part, exp.Ordered)]
        return self._is_distinguished(arguments[0], by)

    def _is_distinguished(self, value: exp.Expression, by: list[exp.Expression]) -> bool:
        """Whether rows of a group that are equal in an order have the same value, or there are none."""
        named = {plain(part) for part in (*self._groups, *by)}
        return is_unique(self._child, named, self._facts) or self._follows(value, by)

    def _follows(self, value: exp.Expression, by: list[exp.Expression]) -> bool:
        same = [part for part in (*self._groups, *by) if self._identical(part)]
        columns = {name for part in same if (name := plain(part)) is not None}
        fixed = {name for name in fixed_columns(self._child) if self._identical(exp.column(name))}
        return is_of(_without(value, same), determined_by(self._child, {*columns, *fixed}, self._facts))


def _without(value: exp.Expression, parts: list[exp.Expression]) -> exp.Expression:
    """A value without what is known of it: parts of it stand for themselves, as a constant would."""
    made = value.copy().transform(lambda one: exp.Null() if one in parts else one, copy=False)
    assert isinstance(made, exp.Expression)
    return made


def _arguments(call: exp.Expression) -> list[exp.Expression]:
    """The arguments of a function, without ``DISTINCT`` and without how it takes NULLs."""
    found: list[exp.Expression] = []
    for part in call.iter_expressions():
        if isinstance(part, exp.Distinct):
            found += part.expressions
        elif isinstance(part, exp.IgnoreNulls | exp.RespectNulls):
            found.append(part.this)
        elif isinstance(part, exp.Expression):
            found.append(part)
    return found


def _fields(value: exp.Expression) -> list[exp.Expression]:
    """What a struct is compared by; of anything else, itself."""
    return _arguments(value) if function_name(value) in _STRUCTS else [value]


def _are_identical(values: list[exp.Expression], identical: Identical) -> bool:
    return bool(values) and all(identical(field) for value in values for field in _fields(value))


__all__ = ["Identical", "independent_of_order"]
