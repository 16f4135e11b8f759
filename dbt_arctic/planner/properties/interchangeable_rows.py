"""Rows that are equal in the order of a window, and in every column that the query uses.

Such rows can change places without changing the result: ``row_number() OVER (ORDER BY n)`` over rows of which
only ``n`` is used has the same numbers for any order of equal rows. So these ties decide nothing.

Spark sorts the rows once for all functions with one ``PARTITION BY`` and ``ORDER BY``. For functions with
different orders it sorts them again, and may put equal rows into another order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.functional_dependencies import dependencies
from dbt_arctic.planner.properties.order_independence import Identical


def used_of_windows(node: Node) -> dict[int, frozenset[str]]:
    """For each window operator, by ``id``, the columns of its input that the query uses.

    They include what its functions compute with, but not what they are partitioned and ordered by.
    """
    found: dict[int, frozenset[str]] = {}
    _follow(node, frozenset(node.output), found)
    return found


def ties_decide_nothing(
    node: Window,
    item: exp.Expression,
    tied: Collection[exp.Expression],
    used: frozenset[str],
    facts: Facts,
    same: Identical,
) -> bool:
    """Whether rows that are equal in the order of a window function are equal in all that the query uses.

    :param tied: the functions of the operator that distinguish rows that their order leaves equal.
    :param used: the columns of the input that the query uses, as ``used_of_windows`` finds them.
    :param same: whether values of an expression that compare equal are identical.
    """
    order = item.args.get("order")
    # Which row has which of two numbers is open if each is one of any order of equal rows.
    if any(one.args.get("order") != order for one in tied):
        return False
    others = (one.args.get("order") for _, one in node.items)
    used |= columns_of(*(one for one in others if one is not None and one != order))
    parts = (*node.partition, *(part.this for part in (order.expressions if order is not None else ())))
    equal = {name for part in parts if (name := plain(part)) is not None}
    if not all(same(column(name)) for name in used & equal):
        return False
    known = dependencies(node.child, facts)
    while not used <= equal:
        more = {name for one in known if one.key <= equal for name in one.columns} - equal
        if not more:
            return False
        equal |= more
    return True


def _follow(node: Node, wanted: frozenset[str], found: dict[int, frozenset[str]]) -> None:
    """Find what the operators of a tree use.

    :param wanted: the columns of the node that are used above it.
    """
    for subquery in getattr(node, "subqueries", ()):
        _follow(subquery.plan, frozenset(subquery.plan.output), found)
    match node:
        case Scan() | Values():
            return
        case Project():
            items = dict(node.items)
            below = columns_of(*(items[name] for name in wanted)) | _linked(node)
        case Filter():
            below = wanted | columns_of(*node.conditions) | _linked(node)
        case Join():
            below = wanted | columns_of(*node.conditions)
        case Aggregate():
            calls = (value for name, value in node.aggregates if name in wanted)
            below = columns_of(*(value for _, value in node.groups), *calls)
        case Window():
            below = _of_window(node, wanted, found)
        case UnionAll() | SetOperation():
            for child in node.parts:
                pairs = zip(node.columns, child.output, strict=True)
                is_row = isinstance(node, SetOperation)
                _follow(child, frozenset(one for name, one in pairs if is_row or name in wanted), found)
            return
        case Generate():
            below = wanted | columns_of(node.function)
        case Limit():
            below = wanted | columns_of(*node.order)
        case KeySemiJoin():
            for child in (node.child, node.keys):
                _follow(child, frozenset(child.output), found)
            return
    for child in (node.left, node.right) if isinstance(node, Join) else (node.child,):
        _follow(child, below & frozenset(child.output), found)


def _linked(node: Project | Filter) -> frozenset[str]:
    """The columns that subqueries refer to."""
    if not node.subqueries:
        return frozenset()
    operands = (subquery.operand for subquery in node.subqueries)
    return columns_of(*all_expressions(node), *operands) & frozenset(node.child.output)


def _of_window(node: Window, wanted: frozenset[str], found: dict[int, frozenset[str]]) -> frozenset[str]:
    items: Mapping[str, frozenset[str]] = {name: columns_of(item) for name, item in node.items}
    own = frozenset(node.child.output)
    arguments = columns_of(*(item.this for _, item in node.items))
    # An operator may occur twice in a tree.
    found[id(node)] = found.get(id(node), frozenset()) | (wanted & own) | arguments
    return (wanted & own) | columns_of(*node.partition) | frozenset().union(*items.values())


__all__ = ["ties_decide_nothing", "used_of_windows"]
