"""The affected rows and the restriction of each operator, one module for each.

Each module registers two functions.

A function of ``affected_keys_rule`` gets ``(node, wanted, facts)``. It returns the rows of the operator's
output that may differ between the old and the new state: ``minus`` rows of the old state and ``plus`` rows of
the new one, with the columns ``wanted``. It may return additional rows, but must not miss any.

A function of ``restricted_rule`` gets ``(node, pairs, keys)``. It returns the operator, filtered to the rows
whose expressions match a row of ``keys``. This is equivalent to a filter above the operator, but pushes the
keys down so that less is read.

``affected_keys.affected_rows`` and ``restriction.restricted`` call them.
"""

from dbt_arctic.planner.delta.rules import (
    aggregate,
    condition,
    generate,
    join,
    key_semi_join,
    limit,
    project,
    scan,
    set_operation,
    union,
    values,
    window,
)

__all__ = [
    "aggregate",
    "condition",
    "generate",
    "join",
    "key_semi_join",
    "limit",
    "project",
    "scan",
    "set_operation",
    "union",
    "values",
    "window",
]
