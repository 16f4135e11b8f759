"""Estimates the size of a query's result from Spark's plan, before the query runs.

For a join, Spark multiplies the sizes of both sides. So the estimate is limited to the total size of what the
query reads. It may still be far too high, for instance for an aggregate, or too low if rows are generated.
"""

from __future__ import annotations

import re

from dbt_arctic.store.context import Context

_OPTIMIZED = "== Optimized Logical Plan =="
_NODE = re.compile(
    r"(?P<indent>[ :+-]*)(?! ).*Statistics\(sizeInBytes=(?P<size>[\d.]+(?:E\+\d+)?) (?P<unit>[KMGTPE]i)?B"
)
_UNITS = {unit: 1024.0**power for power, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}


def estimate_bytes(context: Context, sql: str) -> float | None:
    """Spark's estimate of the size of a result, uncompressed; ``None`` if the plan has none.

    The query is planned, but not executed.
    """
    return bytes_of_plan("\n".join(str(row[0]) for row in context.query(f"EXPLAIN COST {sql}")))


def bytes_of_plan(plan: str) -> float | None:
    """The estimate in a plan that ``EXPLAIN COST`` returned.

    >>> bytes_of_plan(
    ...     "== Optimized Logical Plan ==\\n"
    ...     "Join Inner, (a#1 = b#2), Statistics(sizeInBytes=8.0 GiB)\\n"
    ...     ":- RelationV2[a#1] shop.a, Statistics(sizeInBytes=2.0 KiB, rowCount=9)\\n"
    ...     "+- RelationV2[b#2] shop.b, Statistics(sizeInBytes=100.0 B)\\n"
    ... )
    2148.0
    """
    nodes = [
        (len(node["indent"]), float(node["size"]) * _UNITS[node["unit"] or ""])
        for node in map(_NODE.match, plan.partition(_OPTIMIZED)[2].partition("\n==")[0].splitlines())
        if node
    ]
    if not nodes:
        return None
    depths = [depth for depth, _ in nodes[1:]] + [0]
    read = sum(size for (depth, size), next_depth in zip(nodes, depths, strict=True) if next_depth <= depth)
    return min(nodes[0][1], read)
