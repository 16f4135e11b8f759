"""A superset of the rows of the old and the new state, for places where additional rows are harmless.

The old rows of an upstream are its current rows and those that were deleted or changed since. So the old
state itself need not be read. This holds for monotonic operators only: not for the null-supplying side of an
outer join, nor for the value of an aggregate. Relations that only filter are left out.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
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
    SubqueryRef,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import column, columns_of
from dbt_arctic.planner.delta.static_filters import referenced_columns, static_filters
from dbt_arctic.planner.frontend.point_in_time import at_last_refresh, time_has_changed
from dbt_arctic.planner.properties.column_equivalences import joined_to
from dbt_arctic.planner.properties.facts import Facts


def old_or_new(node: Node, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    """A superset of the rows that ``node`` has in either state, with the columns ``wanted``.

    ``None`` if the exact states are needed.
    """
    match node:
        case Scan():
            return _scan(node, wanted, facts)
        case Values():
            return _only(node, wanted)
        case Project():
            return _project(node, wanted, facts)
        case Filter():
            return _filter(node, wanted, facts)
        case Join():
            return _join(node, wanted, facts)
        case Aggregate():
            return _aggregate(node, wanted, facts)
        case Window():
            own = set(wanted) <= set(node.child.output)
            return old_or_new(node.child, wanted, facts) if own else None
        case UnionAll():
            return _union(node, wanted, facts)
        case SetOperation():
            # The rows of INTERSECT and EXCEPT are a subset of the rows of the left side.
            names = dict(zip(node.columns, node.left.output, strict=True))
            return _renamed(node.left, names, wanted, facts)
        case Generate():
            return _generate(node, wanted, facts)
        case Limit():
            return old_or_new(node.child, wanted, facts)
        case KeySemiJoin():
            return conservative(None, "only rules create it, from the result of this analysis")


def _only(node: Node, wanted: tuple[str, ...]) -> Node:
    return node if node.output == wanted else Project(node, tuple((name, column(name)) for name in wanted))


def _scan(node: Scan, wanted: tuple[str, ...], facts: Facts) -> Node:
    used = tuple(one for one in node.columns if one.identifier in wanted)
    now = replace(node, columns=used, state="new")
    upstream = facts.of(node)
    if not upstream.changed:
        return _only(now, wanted)
    key_only = bool(upstream.key) and {stored for _, stored in used} <= set(upstream.key)
    gone = replace(now, state="keys" if key_only else "minus")
    return UnionAll((_only(now, wanted), _only(gone, wanted)), wanted)


def _project(node: Project, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    items = dict(node.items)
    kept = tuple((name, items[name]) for name in wanted)
    if any(value.find(SubqueryRef) is not None or time_has_changed(value) for _, value in kept):
        return None
    used = columns_of(*(value for _, value in kept))
    below = old_or_new(node.child, tuple(name for name in node.child.output if name in used), facts)
    return None if below is None else Project(below, kept)


def _filter(node: Filter, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    simple = tuple(_ever(part) for part in node.conditions if part.find(SubqueryRef) is None)
    same = static_filters(node, facts)
    used = columns_of(*simple) | referenced_columns(same) | set(wanted)
    below = old_or_new(node.child, tuple(name for name in node.child.output if name in used), facts)
    if below is None:
        return old_or_new(node.child, wanted, facts)
    if simple:
        below = Filter(below, simple)
    return _only(below if same is None else replace(same, child=below), wanted)


def _ever(part: exp.Expression) -> exp.Expression:
    """A condition that holds if the given one holds now, or held at the time of the last refresh."""
    if not time_has_changed(part):
        return part
    return exp.Paren(
        this=exp.Or(this=exp.Paren(this=part.copy()), expression=exp.Paren(this=at_last_refresh(part)))
    )


def _join(node: Join, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    left, right = node.left, node.right
    if node.kind == "right":
        left, right = right, left
    own = set(wanted) <= set(left.output)
    if own and (
        node.kind in ("left", "right", "semi") or (node.kind == "inner" and wanted and not filters(right))
    ):
        # An outer join preserves these rows; an inner join or a semi-join only removes some.
        return old_or_new(left, wanted, facts)
    if node.kind != "inner":
        return None
    for side, other in ((left, right), (right, left)):
        same = joined_to(node, side.output)
        values = {name: name if name in side.output else same.get(name) for name in wanted}
        if wanted and all(values.values()) and not filters(other):
            needed = tuple(dict.fromkeys(str(value) for value in values.values()))
            found = old_or_new(side, needed, facts)
            if found is not None:
                return Project(found, tuple((name, column(str(values[name]))) for name in wanted))
    used = columns_of(*node.conditions) | set(wanted)
    first = old_or_new(left, tuple(name for name in left.output if name in used), facts)
    second = old_or_new(right, tuple(name for name in right.output if name in used), facts)
    if first is None or second is None:
        return None
    return _only(Join(first, second, "inner", node.conditions), wanted)


def filters(node: Node) -> bool:
    """Whether a relation has a condition of its own, so that joining with it leaves few rows."""
    return isinstance(node, Filter) or any(filters(child) for child in _inputs(node))


def _inputs(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Join):
        return (node.left, node.right)
    return (node.child,) if hasattr(node, "child") else ()


def _aggregate(node: Aggregate, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    groups = dict(node.groups)
    # An aggregate without groups has a row even if its input is empty.
    if node.grouping_sets is not None or not groups or not set(wanted) <= groups.keys():
        return None
    used = columns_of(*(groups[name] for name in wanted))
    below = old_or_new(node.child, tuple(name for name in node.child.output if name in used), facts)
    return None if below is None else Project(below, tuple((name, groups[name]) for name in wanted))


def _union(node: UnionAll, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    parts = []
    for child in node.children:
        part = _renamed(child, dict(zip(node.columns, child.output, strict=True)), wanted, facts)
        if part is None:
            return None
        parts.append(part)
    return UnionAll(tuple(parts), wanted)


def _renamed(child: Node, names: dict[str, str], wanted: tuple[str, ...], facts: Facts) -> Node | None:
    found = old_or_new(child, tuple(dict.fromkeys(names[name] for name in wanted)), facts)
    return None if found is None else Project(found, tuple((name, column(names[name])) for name in wanted))


def _generate(node: Generate, wanted: tuple[str, ...], facts: Facts) -> Node | None:
    own = frozenset(node.child.output)
    if wanted and own.issuperset(wanted):
        return old_or_new(node.child, wanted, facts)
    used = columns_of(node.function) | set(wanted)
    below = old_or_new(node.child, tuple(name for name in node.child.output if name in used), facts)
    return None if below is None else _only(replace(node, child=below), wanted)
