"""Estimates the stored size of the rows of a query from the statistics of Spark's optimizer.

The estimate decides the initial number of buckets of a table and nothing else, so it may be wrong by a
factor: compaction corrects the number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dbt_arctic.errors import StatementError
from dbt_arctic.store.context import Context

_STORED_SHARE = 0.5
"""Stored bytes for each byte of Spark's estimate, which is that of uncompressed rows with short strings.
Order lines with a comment took 0.4, and long strings take more."""
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
_OPERATOR = re.compile(
    r"^(?P<depth>[ :]*(?:[+:]- )?)(?P<name>\w+).*?Statistics\(sizeInBytes=(?P<size>[\d.E+]+) (?P<unit>\w+)",
    re.MULTILINE | re.DOTALL,
)
_OPTIMIZED = "== Optimized Logical Plan =="
_PHYSICAL = "== Physical Plan =="


@dataclass
class _Operator:
    name: str
    depth: int
    size: float
    inputs: list[_Operator] = field(default_factory=list)


def estimate_stored_bytes(context: Context, sql: str) -> int | None:
    """The estimated size of the rows of a query when they are stored; ``None`` if there is no estimate."""
    try:
        rows = context.query(f"EXPLAIN COST\n{sql}")
    except StatementError:
        return None  # the statement that writes the rows reports what is wrong with the query
    size = estimate_output_bytes("\n".join(str(row[0]) for row in rows))
    return None if size is None else round(size * _STORED_SHARE)


def estimate_output_bytes(explained: str) -> float | None:
    """The uncompressed size of a query's result, from the text of ``EXPLAIN COST``.

    Spark multiplies the sizes of joined tables unless it has statistics of their columns. Most joins of
    models look up columns for the rows of one table, so here the sizes are added.

    :returns: ``None`` if the text has no statistics.
    """
    _, found, text = explained.partition(_OPTIMIZED)
    if not found:
        return None
    path: list[_Operator] = []
    root: _Operator | None = None
    for match in _OPERATOR.finditer(text.partition(_PHYSICAL)[0]):
        size = float(match["size"]) * _UNITS.get(match["unit"], 1)
        operator = _Operator(match["name"], len(match["depth"]), size)
        while path and path[-1].depth >= operator.depth:
            path.pop()
        if path:
            path[-1].inputs.append(operator)
        root = root or operator
        path.append(operator)
    return None if root is None else _estimate(root)


def _estimate(operator: _Operator) -> float:
    if not operator.inputs:
        return operator.size
    estimated = sum(map(_estimate, operator.inputs))
    if operator.name in ("Join", "Union") or len(operator.inputs) > 1:
        return estimated
    # Spark's factor for one operator: narrower rows, a limit.
    size_of_input = operator.inputs[0].size
    return estimated * operator.size / size_of_input if size_of_input else operator.size
