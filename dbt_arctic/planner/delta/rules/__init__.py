"""What a change upstream can touch: one operator a file.

Each rule has two functions.

``touched(node, wanted, facts)`` gives the rows of the operator's output that can differ between the old
and the new state: ``minus`` rows of the old state, ``plus`` rows of the new one, both with the columns
``wanted``. More than what differs is right, less never is.

``restricted(node, pairs, keys)`` is the operator over those rows only whose expressions meet a row of
``keys``. It is as the operator itself, filtered; what it does not read is what makes it cheap.
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
