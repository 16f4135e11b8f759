"""The operations table: it records each compaction and provides the durations of earlier ones.

Each run appends a row or two, so the table would soon have the most files of its schema. From time to time,
its old rows are deleted, its files are compacted, and its old versions expire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.compaction.history import read_operations
from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.metrics import newest, side_metrics
from dbt_arctic.compaction.retention import DEFAULT_S
from dbt_arctic.compaction.rewrite import merge_small_files
from dbt_arctic.compaction.run import OperationResult, record
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed import operations
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.claims import find_claims
from dbt_arctic.maintenance.expire import expire_versions
from dbt_arctic.store.context import Context

DAY_MS = 24 * 3600 * 1000
MOST_FILES = 16
"""The number of files that triggers its upkeep; fewer than the number that makes a plain table due for a
merge."""
VERSIONS_MS = 7 * DAY_MS
"""The default of ``dbt-arctic expire --older-than``."""


def durations_of(catalog: CatalogReader, schema: Name, warn: Callable[[str], None]) -> MeasuredDurations:
    """The durations of earlier operations.

    If they cannot be read, compaction warns and continues without them.
    """
    try:
        return MeasuredDurations(read_operations(catalog, schema))
    except ArcticError as error:
        warn(f"The operations table cannot be read, so estimated times are rough.\n{error}")
        return MeasuredDurations()


def record_and_keep(
    context: Context,
    schema: Name,
    done: Sequence[OperationResult],
    experience: MeasuredDurations,
    history_s: int,
    warn: Callable[[str], None],
) -> None:
    """Record the operations and maintain their table. A failure here does not fail the compaction."""
    try:
        record(context, schema, experience.undone(done))
    except ArcticError as error:
        warn(f"The operations could not be recorded in the operations table.\n{error}")
        return
    try:
        keep_operations(context, schema, history_s)
    except ArcticError as error:
        warn(f"The upkeep of the operations table failed this time.\n{error}")


def keep_operations(context: Context, schema: Name, history_s: int = DEFAULT_S) -> bool:
    """Maintain the operations table if that is due.

    Rows that other processes append at the same time are kept.

    :param schema: any name in the table's schema.
    :returns: whether it was due.
    :raises ArcticError: another process was faster, or the catalog is unreachable. The table is unchanged.
    """
    name = schema.sibling(operations.OPERATIONS)
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    if state is None or newest(state) is None:
        return False
    side = side_metrics(state)
    if side is None or side.files + side.delete_files < MOST_FILES:
        return False
    context.run("forget_operations", operations.forget_before(name, context.now_ms() - history_s * 1000))
    merge_small_files(context, name)
    claims = find_claims(context.catalog, name.catalog)
    expire_versions(context, name, claims, context.now_ms() - VERSIONS_MS)
    return True
