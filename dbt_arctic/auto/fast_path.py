"""Session settings for statements over few rows, where planning and code generation cost most.

Spark makes Java classes for each statement, compiles them, and has them compiled again to machine code as
they run. Over few rows that takes longer than to interpret the same plan with classes that are warm.

And after each stage Spark plans the rest of a statement anew, by what the stage has given. A statement that
adds few changes to stored sums says itself what is to be sent to each task, and its stages take less time
than the planning after them. Nor has each stage more tasks then than its rows ask for: those that have
nothing to do take longer to start than the others work.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

from dbt_arctic.engine.api import PARTITIONS
from dbt_arctic.store.context import Context

ROWS = 100_000
"""Up to so many rows that statements may read, no code is made for them."""

CONF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

CHANGES = 1_000_000
"""Up to so many changed rows, a statement over changes is planned once."""

ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}


def over(context: Context, rows: int | None) -> AbstractContextManager[None]:
    """The settings of statements that read up to ``rows`` rows; ``None`` where that is not known."""
    return context.tuned(CONF) if rows is not None and rows <= ROWS else nullcontext()


_ROWS_OF_TASK = 500_000
"""After a shuffle."""

_TASKS = 8
"""At least, where there are so many cores. Rows that a join makes more of are not counted."""


def changes(context: Context, rows: int | None, read: int | None) -> AbstractContextManager[None]:
    """The settings of statements over ``rows`` changed rows; ``None`` where that is not known.

    :param read: how many other rows they may bring together, ``None`` where that is not known.
    """
    if rows is None or rows > CHANGES:
        return nullcontext()
    return context.tuned(planned_once(context.cores, rows, read))


def planned_once(cores: int | None, rows: int, read: int | None) -> dict[str, str]:
    """The settings of a statement over few changed rows."""
    if read is None:
        return ADAPTIVE
    # Each is read at two states.
    tasks = max(min(cores or _TASKS, _TASKS), math.ceil((2 * rows + read) / _ROWS_OF_TASK))
    # A session that has fewer keeps its own.
    return {**ADAPTIVE, PARTITIONS: str(tasks)}
