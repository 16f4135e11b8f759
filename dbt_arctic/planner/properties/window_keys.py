"""Windows whose rows the key of the result identifies, because each of them is written.

Two rows of a window that are equal in what the key is computed from would be two rows of the result with one
key, which are refused when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.properties.functional_dependencies import is_of


def windows_of_written_rows(node: Node, key: frozenset[str]) -> Iterator[tuple[Window, frozenset[str]]]:
    """The windows of whose rows each is in at least one row of the result, and what identifies them there.

    :param key: the columns of ``node`` that identify a row of the result.
    :returns: for each window, columns below it from which the key follows.
    """
    match node:
        case Project():
            items = dict(node.items)
            values = [items[name] for name in key]
            if all(is_of(value, columns_of(value)) for value in values):
                yield from windows_of_written_rows(node.child, columns_of(*values))
        case Window():
            if key <= set(node.child.output):
                yield node, key
                yield from windows_of_written_rows(node.child, key)
        case UnionAll():
            for part in node.children:
                names = dict(zip(node.columns, part.output, strict=True))
                yield from windows_of_written_rows(part, frozenset(names[name] for name in key))
        case Join():
            kept = {"left": node.left, "right": node.right}.get(node.kind)
            if kept is not None and key <= set(kept.output):
                yield from windows_of_written_rows(kept, key)
        case Filter() | Limit() | Aggregate() | Generate() | KeySemiJoin() | SetOperation():
            conservative(None, "a row of a window below need not be in the result")
        case Scan() | Values():
            return


__all__ = ["windows_of_written_rows"]
