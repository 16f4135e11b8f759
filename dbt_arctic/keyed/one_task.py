"""SQL of statements over so few rows that one task computes them.

Spark prepares each stage, task and broadcast of a statement separately. Over a few thousand rows, this takes
longer than the rows. In one task, rows are grouped, joined and written without a shuffle.
"""

from __future__ import annotations

JOIN_IN_PLACE = "/*+ SHUFFLE_HASH(c) */ "
"""The hint of a join with the relation ``c`` that has the same single bucket: nothing is broadcast, and the
side tables of one bucket are not shuffled either."""


def in_one_task(rows: str) -> str:
    """SQL of the same rows in a single task.

    >>> print(in_one_task("SELECT 1 AS one"))
    SELECT /*+ COALESCE(1) */ *
    FROM (
    SELECT 1 AS one
    )
    """
    return f"SELECT /*+ COALESCE(1) */ *\nFROM (\n{rows}\n)"
