"""Window functions: a changed row affects all rows of its partition.

Several operators on top of each other, one for each PARTITION BY, are taken as one over the columns that they
all partition by. This finds more rows than each of them by itself, in a far smaller statement.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, KeySemiJoin, Node, Project, Window
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain
from dbt_arctic.planner.delta.affected_keys import (
    NOTHING,
    AffectedRows,
    Wanted,
    affected_keys_rule,
    affected_rows,
    only,
    union_of,
)
from dbt_arctic.planner.delta.old_or_new import old_or_new
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule, some_of
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Window, wanted: Wanted, facts: Facts) -> AffectedRows:
    input_, partition = _shared(node)
    used = columns_of(*partition)
    rows = affected_rows(input_, tuple(name for name in input_.output if name in used), facts).both()
    if not rows:
        return NOTHING
    if wanted and {plain(part) for part in partition} >= set(wanted):
        return AffectedRows(rows, rows).map(
            lambda part: Project(part, tuple((name, column(name)) for name in wanted))
        )
    if not partition:
        return AffectedRows((facts.before(node),), (node,))
    names = tuple(f"partition_{place}" for place in range(len(partition)))
    items = tuple(zip(names, partition, strict=True))
    keys = Aggregate(
        union_of([Project(part, items) for part in rows], names),
        tuple((name, column(name)) for name in names),
    )
    pairs: Pairs = tuple((value, name) for name, value in items)
    used_names = used | set(wanted)
    kept = (
        old_or_new(input_, tuple(name for name in input_.output if name in used_names), facts)
        if set(wanted) <= set(input_.output)
        else None
    )
    if kept is not None:
        # Only columns of the input are wanted, not the values of window functions.
        found = (only(restricted(kept, pairs, keys), wanted),)
        return AffectedRows(found, found)
    return AffectedRows((restricted(facts.before(node), pairs, keys),), (restricted(node, pairs, keys),))


def _shared(node: Window) -> tuple[Node, tuple[exp.Expression, ...]]:
    """The input of operators on top of each other, and the columns that all of them partition by.

    If they share none, it is those of the first operator alone.
    """
    below, shared = node.child, node.partition
    while isinstance(below, Window):
        both = tuple(part for part in shared if part in below.partition)
        if not both:
            return node.child, node.partition
        below, shared = below.child, both
    return below, shared


@restricted_rule.register
def _restricted(node: Window, pairs: Pairs, keys: Node) -> Node:
    """Restrict whole partitions only: over a part of a partition, a window function has another value."""
    down = tuple((value, name) for value, name in pairs if _is_of_partition(value, node))
    below = restricted(node.child, down, some_of(keys, down)) if down else node.child
    made = replace(node, child=below)
    return made if len(down) == len(pairs) else KeySemiJoin(made, some_of(keys, pairs), pairs)


def _is_of_partition(value: exp.Expression, node: Window) -> bool:
    return any(value == part for part in node.partition)
