"""Whether one statement that reads all rows is expected to be faster than an incremental refresh.

The constants are fitted to what ``benchmarks.choice.both_ways`` measures.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.auto.plan import ByKeys, RefreshPlan
from dbt_arctic.auto.stages import stages_of
from dbt_arctic.auto.timings import RefreshTiming, expected_slower, full_is_fast
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.algebra.operators import walk
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import stored_rows, total

FEW_ROWS = 500_000
"""The number of rows of all tables of a model below which a full refresh may be chosen for that.

The constants below were measured with up to 300,000 rows.
"""
SMALL_DATA = 200_000
"""The same with ``small_data``, where one statement that reads all rows is chosen in place of several."""

_SECONDS_PER_OPERATOR = 0.04
"""The processor time that an operator of a refresh takes, however few rows it reads."""
_SECONDS_PER_STATEMENT = 0.8
"""The processor time of each additional statement, for example to find the affected keys."""
_SECONDS_PER_MILLION = 2.5
"""The processor time in which a full refresh reads and compares a million rows."""
MAX_EXTRA_SECONDS = 0.8
"""How much longer than a full refresh an incremental one may be expected to take.

A statement with 20 to 30 operators that adds changes to stored sums takes as long as a full refresh.
"""


def reason_of_few_rows(
    catalog: CatalogReader,
    plan: RefreshPlan,
    config: KeyedConfig,
    table: KeyedTable,
    earlier: Sequence[RefreshTiming],
) -> Reason | None:
    """The reason for a full refresh that is expected to be faster: of small tables, or of large statements.

    One statement that reads all rows is then faster than several that read the changed ones, or a large one.

    A join without an equality may take long even over few rows, which the earlier full refreshes show. These
    are compared with the size of the statements, over more rows as well.
    """
    rows = total([plan.stored_rows, stored_rows(catalog, table)])
    if config.auto == "strict" or rows is None:
        return None
    if rows >= FEW_ROWS or not full_is_fast(earlier):
        return expected_slower(earlier, _least_seconds(plan), rows / 1e6 * _SECONDS_PER_MILLION)
    operators = operators_of(plan)
    if extra_seconds(plan, operators, rows) > MAX_EXTRA_SECONDS:
        return Reason(
            "few-rows",
            f"its tables have {counted(rows, 'row')}, and planning statements with "
            f"{counted(operators, 'operator')} takes longer than reading all rows",
        )
    if not config.small_data or rows >= SMALL_DATA:
        return None
    reason = Reason(
        "few-rows",
        f"its tables have {counted(rows, 'row')}, and finding the changes takes longer than reading all rows",
    )
    return reason if _more_statements(plan) > 0 else None


def extra_seconds(plan: RefreshPlan, operators: int, rows: int) -> float:
    """How much longer than a full refresh an incremental one is expected to take, if few rows have changed.

    :param rows: of all tables together.
    """
    more = _more_statements(plan) * _SECONDS_PER_STATEMENT
    return more + operators * _SECONDS_PER_OPERATOR - rows / 1e6 * _SECONDS_PER_MILLION


def _least_seconds(plan: RefreshPlan) -> float:
    """The time that an incremental refresh takes at least, with statements whose need is known beforehand."""
    operators = sum(1 for node in plan.nodes for _ in walk(node))
    return _statements(plan) * _SECONDS_PER_STATEMENT + operators * _SECONDS_PER_OPERATOR


def operators_of(plan: RefreshPlan) -> int:
    """The operators of all statements, with those that follow if a guard differs."""
    changed = plan.incremental.with_changed_scalars if isinstance(plan, ByKeys) else None
    following = (changed.affected, changed.rows) if changed is not None else ()
    nodes = [*plan.nodes, *(node for node in following if node is not None)]
    return sum(1 for node in nodes for _ in walk(node))


def _more_statements(plan: RefreshPlan) -> int:
    """How many statements more than a full refresh it takes."""
    return _statements(plan) - _statements(plan.full(Reason("few-rows", "")))


def _statements(plan: RefreshPlan) -> int:
    return sum(stage.result != "log" for stage in stages_of(plan))


__all__ = ["extra_seconds", "operators_of", "reason_of_few_rows"]
