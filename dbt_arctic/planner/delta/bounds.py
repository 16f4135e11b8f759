"""Range conditions on a column, if its order is that of the values that it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from dbt_arctic.keyed.value_range import Ranges, ValueRange
from dbt_arctic.planner.algebra.operators import KeySemiJoin, Node, walk


def is_ordered_as(bounds: ValueRange, type_: str | None) -> bool:
    """Whether a column of this type can be compared with bounds in the order of the bounds.

    Strings have their own order: ``'10'`` sorts before ``'9'``.
    """
    return type_ == "string" or not any(bound.startswith("'") for bound in bounds)


def fitting(bounds: Ranges, nodes: Iterable[Node], types: Mapping[str, str]) -> dict[str, ValueRange]:
    """The bounds without those that a KeySemiJoin would compare with a column of another order.

    :param types: the types of the columns of scans, by identifier; a missing one may be any type.
    """
    other = {
        name
        for node in nodes
        for part in walk(node)
        if isinstance(part, KeySemiJoin)
        for value, name in part.pairs
        if isinstance(value, exp.Column) and name in bounds
        if not is_ordered_as(bounds[name], types.get(value.name))
    }
    return {name: pair for name, pair in bounds.items() if name not in other}
