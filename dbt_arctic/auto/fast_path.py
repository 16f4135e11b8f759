"""Session settings for statements over few rows, where planning and code generation cost most.

Spark generates and compiles Java classes for each statement, which the JVM then compiles to machine code.
Over few rows, interpreting the plan with classes that are already compiled takes less time.

After each stage, Spark also replans the rest of a statement by the stage's statistics. A statement that adds
few changes to stored sums already contains broadcast hints, and its stages take less time than the
replanning. The number of tasks per stage follows from the number of rows, because starting idle tasks takes
longer than the work of the others.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

from dbt_arctic.engine.api import PARTITIONS
from dbt_arctic.store.context import Context

ROWS = 100_000
"""The most rows for which statements are interpreted without code generation."""

CONF = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

CHANGES = 1_000_000
"""The most changed rows for which a statement over changes is planned only once."""

ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}


def settings_for_rows(context: Context, rows: int | None) -> AbstractContextManager[None]:
    """The settings of statements that read up to ``rows`` rows; ``None`` if unknown."""
    return context.tuned(CONF) if rows is not None and rows <= ROWS else nullcontext()


def settings_for_pull(context: Context, *, few_rows: bool) -> AbstractContextManager[None]:
    """The settings of a statement that reads only few changes of its upstreams."""
    return context.tuned({**CONF, **planned_once(context.cores, 0, 0)}) if few_rows else nullcontext()


_ROWS_OF_TASK = 500_000
"""Rows per task after a shuffle."""

_TASKS = 8
"""The smallest number of tasks, with enough cores. Rows that a join multiplies are not counted."""


ROWS_OF_ONE_TASK = 200_000
"""The most rows over which a whole statement is computed in one task, without a shuffle."""


def fits_one_task(rows: int | None) -> bool:
    """Whether a statement that reads up to ``rows`` rows is computed in one task; ``None`` if unknown."""
    return rows is not None and rows <= ROWS_OF_ONE_TASK


def settings_for_changes(
    context: Context, rows: int | None, read: int | None
) -> AbstractContextManager[None]:
    """The settings of statements over ``rows`` changed rows; ``None`` if unknown.

    :param read: the number of other rows that they may shuffle; ``None`` if unknown.
    """
    if rows is None or rows > CHANGES:
        return nullcontext()
    return context.tuned(planned_once(context.cores, rows, read))


def planned_once(cores: int | None, rows: int, read: int | None) -> dict[str, str]:
    """The settings of a statement over few changed rows."""
    if read is None:
        return ADAPTIVE
    # Each row is read in two states.
    tasks = max(min(cores or _TASKS, _TASKS), math.ceil((2 * rows + read) / _ROWS_OF_TASK))
    # A session with fewer partitions keeps its setting.
    return {**ADAPTIVE, PARTITIONS: str(tasks)}
