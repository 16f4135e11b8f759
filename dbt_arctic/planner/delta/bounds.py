"""Range conditions on a column, where its order is that of the values it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from dbt_arctic.keyed.value_range import Ranges, ValueRange
from dbt_arctic.planner.algebra.operators import Node, Restrict, walk


def is_ordered_as(bounds: ValueRange, type_: str | None) -> bool:
    """Whether a column of a type lies between bounds where its values do. Texts have an order of their own:
    ``'10'`` comes before ``'9'``.
    """
    return type_ == "string" or not any(bound.startswith("'") for bound in bounds)


def fitting(bounds: Ranges, nodes: Iterable[Node], types: Mapping[str, str]) -> dict[str, ValueRange]:
    """The bounds without those that some Restrict would hold against a column of another order.

    :param types: of the columns of scans, by identifier; one that is not among them may have any.
    """
    other = {
        name
        for node in nodes
        for part in walk(node)
        if isinstance(part, Restrict)
        for value, name in part.pairs
        if isinstance(value, exp.Column) and name in bounds
        if not is_ordered_as(bounds[name], types.get(value.name))
    }
    return {name: pair for name, pair in bounds.items() if name not in other}
