"""Joins: the changed rows of each side, joined with the other side in the same state.

In an outer join, changed rows of the null-supplying side also affect the rows of the preserved side that they
match: these gain or lose their partner (Larson and Zhou 2007).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Join, KeySemiJoin, Node, Project, scans
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities
from dbt_arctic.planner.delta.affected_keys import (
    NOTHING,
    AffectedRows,
    Wanted,
    affected_keys_rule,
    affected_rows,
    only,
    union_of,
)
from dbt_arctic.planner.delta.old_or_new import filters, old_or_new
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule, some_of
from dbt_arctic.planner.properties.column_equivalences import joined_to
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.unique_keys import has_one_row

_MANY = 0.1
"""The share of a result's rows. If more keys than this may have changed, a full refresh is cheaper."""


@affected_keys_rule.register
def _affected(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    if node.kind == "right":
        turned = Join(node.right, node.left, "left", node.conditions)
        return affected_rows(turned, wanted, facts)
    if node.kind == "inner":
        return _inner(node, wanted, facts) + _inner(_turned(node), wanted, facts)
    if node.kind == "left":
        return _preserved(node, wanted, facts) + _null_side(node, wanted, facts)
    assert node.kind == "full"
    return _full(node, wanted, facts)


def _turned(node: Join) -> Join:
    return Join(node.right, node.left, node.kind, node.conditions)


def _inner(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    """Changed rows of the left side, joined with the right side."""
    if not facts.changed(node.left):
        return NOTHING
    left = frozenset(node.left.output)
    same = joined_to(node, left)
    values = {name: name if name in left else same.get(name, "") for name in wanted}
    if wanted and all(value in left for value in values.values()) and not _leaves_few(node, facts):
        # The wanted columns of the right side equal columns of the left side, so the join is not needed.
        own = tuple(dict.fromkeys(values.values()))
        items = tuple((name, column(values[name])) for name in wanted)
        return affected_rows(node.left, own, facts).map(lambda rows: Project(rows, items))
    if not node.conditions and not wanted and has_one_row(node.right):
        return affected_rows(node.left, (), facts)
    if not node.conditions and has_one_row(node.left) and not left & set(wanted):
        # The changed row is joined with every row of the right side.
        whole = _without_one_rows(node.right, wanted)
        return AffectedRows((only(facts.before(whole), wanted),), (only(whole, wanted),))
    used = columns_of(*node.conditions) | set(wanted)
    own = tuple(name for name in node.left.output if name in used)
    found = affected_rows(node.left, own, facts)
    other = old_or_new(node.right, tuple(name for name in node.right.output if name in used), facts)
    if other is not None:
        rows = tuple(Join(part, other, "inner", node.conditions) for part in found.both())
        return AffectedRows(rows, rows)
    return AffectedRows(
        tuple(Join(rows, facts.before(node.right), "inner", node.conditions) for rows in found.minus),
        tuple(Join(rows, node.right, "inner", node.conditions) for rows in found.plus),
    )


def _without_one_rows(node: Node, wanted: Wanted) -> Node:
    """The same rows, without one-row relations of which no column is wanted."""
    while isinstance(node, Join) and node.kind == "inner" and not node.conditions:
        if has_one_row(node.right) and set(wanted) <= set(node.left.output):
            node = node.left
        elif has_one_row(node.left) and set(wanted) <= set(node.right.output):
            node = node.right
        else:
            return node
    return node


def _leaves_few(node: Join, facts: Facts) -> bool:
    """Whether the right side filters out most changed rows of the left side, as the result is far smaller."""
    changed = max((facts.of(scan).changed_rows or 0 for scan in scans(node.left)), default=0)
    few = facts.result_rows is not None and facts.result_rows * _MANY < changed
    return few and filters(node.right) and not facts.changed(node.right)


def _preserved(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    """Changed rows of the preserved side of an outer join."""
    if not facts.changed(node.left):
        return NOTHING
    left = frozenset(node.left.output)
    if wanted and left.issuperset(wanted):
        return affected_rows(node.left, wanted, facts)
    used = columns_of(*node.conditions) | set(wanted)
    own = tuple(name for name in node.left.output if name in used)
    found = affected_rows(node.left, own, facts)
    return AffectedRows(
        tuple(Join(rows, facts.before(node.right), "left", node.conditions) for rows in found.minus),
        tuple(Join(rows, node.right, "left", node.conditions) for rows in found.plus),
    )


def _changed_right_rows(node: Join, facts: Facts) -> Node | None:
    """Changed rows of the right side, of either state, with the columns of the join condition."""
    inner = tuple(name for name in node.right.output if name in columns_of(*node.conditions))
    changed = affected_rows(node.right, inner, facts).both() if facts.changed(node.right) else ()
    return union_of(changed, inner) if changed else None


def _null_side(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    """Rows of the left side that match a changed row of the right side: they may gain or lose a partner."""
    changed = _changed_right_rows(node, facts)
    if changed is None:
        return NOTHING
    left = frozenset(node.left.output)
    # The join condition equates these columns, so a left row has the value of its partner.
    same = {mine: theirs for mine, theirs in equalities(node.conditions, True) if theirs in changed.output}
    if wanted and all(name in left and name in same for name in wanted):
        found = Project(changed, tuple((name, column(same[name])) for name in wanted))
        return AffectedRows((found,), (found,))
    old, new = facts.before(node.left), node.left
    if left.issuperset(wanted):
        used = columns_of(*node.conditions) | set(wanted)
        kept = old_or_new(node.left, tuple(name for name in node.left.output if name in used), facts)
        if kept is not None:
            rows = (Join(kept, changed, "semi", node.conditions),)
            return AffectedRows(rows, rows)
        return AffectedRows(
            (Join(old, changed, "semi", node.conditions),), (Join(new, changed, "semi", node.conditions),)
        )
    return AffectedRows(
        (
            Join(
                Join(old, changed, "semi", node.conditions), facts.before(node.right), "left", node.conditions
            ),
        ),
        (Join(Join(new, changed, "semi", node.conditions), node.right, "left", node.conditions),),
    )


def _full(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    """In a full join, both sides are preserved and null-supplying. Unmatched right rows are affected too."""
    found = NOTHING
    for side in (node, _turned(node)):
        as_left = replace(side, kind="left")
        # All columns: an unmatched row may now have a partner, with other values in the remaining columns.
        everything = tuple(name for name in node.output if name in wanted)
        found += _preserved_whole(as_left, everything, facts) + _null_side_whole(as_left, everything, facts)
    return found


def _preserved_whole(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    if not facts.changed(node.left):
        return NOTHING
    used = columns_of(*node.conditions) | set(wanted)
    own = tuple(name for name in node.left.output if name in used)
    found = affected_rows(node.left, own, facts)
    return AffectedRows(
        tuple(Join(rows, facts.before(node.right), "left", node.conditions) for rows in found.minus),
        tuple(Join(rows, node.right, "left", node.conditions) for rows in found.plus),
    )


def _null_side_whole(node: Join, wanted: Wanted, facts: Facts) -> AffectedRows:
    changed = _changed_right_rows(node, facts)
    if changed is None:
        return NOTHING
    old, new = facts.before(node.left), node.left
    return AffectedRows(
        (
            Join(
                Join(old, changed, "semi", node.conditions), facts.before(node.right), "left", node.conditions
            ),
        ),
        (Join(Join(new, changed, "semi", node.conditions), node.right, "left", node.conditions),),
    )


@restricted_rule.register
def _restricted(node: Join, pairs: Pairs, keys: Node) -> Node:
    left_names, right_names = frozenset(node.left.output), frozenset(node.right.output)
    to_left = [pair for pair in pairs if columns_of(pair[0]) and columns_of(pair[0]) <= left_names]
    to_right = [pair for pair in pairs if columns_of(pair[0]) and columns_of(pair[0]) <= right_names]
    exact = len(to_left) == len(pairs) or len(to_right) == len(pairs)
    left, right = node.left, node.right
    keeps_left, keeps_right = node.kind in ("left", "full"), node.kind in ("right", "full")
    if to_left and not keeps_right:
        left = restricted(left, tuple(to_left), some_of(keys, to_left))
    if to_right and not keeps_left:
        right = restricted(right, tuple(to_right), some_of(keys, to_right))
    # Rows of the other side that match none of these rows are not needed.
    if not keeps_right:
        carried = _carried(to_left, node, right_names)
        if carried and not to_right:
            right = restricted(right, carried, some_of(keys, carried))
    if not keeps_left:
        carried = _carried(to_right, node, left_names)
        if carried and not to_left:
            left = restricted(left, carried, some_of(keys, carried))
    made = Join(left, right, node.kind, node.conditions)
    pushed = (to_left and not keeps_right) or (to_right and not keeps_left)
    if exact and pushed:
        return made
    return KeySemiJoin(made, some_of(keys, pairs), pairs)


def _carried(pairs: list[tuple[exp.Expression, str]], node: Join, other: frozenset[str]) -> Pairs:
    """The pairs that also apply to the other side, because the join condition equates its column."""
    same = {mine: theirs for mine, theirs in equalities(node.conditions) if theirs in other}
    same = {**joined_to(node, other), **same}
    found = []
    for value, name in pairs:
        if isinstance(value, exp.Column) and value.name in same:
            found.append((column(same[value.name]), name))
    return tuple(found)
