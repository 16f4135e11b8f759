"""The affected rows and the restriction of each operator, one module for each.

Each rule has two functions.

``affected_rows(node, wanted, facts)`` returns the rows of the operator's output that may differ between the
old and the new state: ``minus`` rows of the old state and ``plus`` rows of the new one, with the columns
``wanted``. It may return additional rows, but must not miss any.

``restricted(node, pairs, keys)`` is the operator, filtered to the rows whose expressions match a row of
``keys``. It is equivalent to a filter above the operator, but pushes the keys down so that less is read.
"""

from dbt_arctic.planner.delta.rules import (
    aggregate,
    condition,
    generate,
    join,
    limit,
    project,
    restrict,
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
    "limit",
    "project",
    "restrict",
    "scan",
    "set_operation",
    "union",
    "values",
    "window",
]
