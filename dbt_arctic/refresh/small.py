"""Statements over few rows: what they cost is to be planned, and code that is compiled for them.

Spark makes Java classes for each statement, compiles them, and has them compiled again to machine code as
they run. Over few rows that takes longer than to interpret the same plan with classes that are warm.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from dbt_arctic.refresh.edge import Edge

ROWS = 100_000
"""Up to so many rows that statements may read, no code is made for them."""

CONF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def over(edge: Edge, rows: int) -> AbstractContextManager[None]:
    """The settings of statements that read up to ``rows`` rows; -1 where that is not known."""
    return edge.tuned(CONF) if 0 <= rows <= ROWS else nullcontext()
