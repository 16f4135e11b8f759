"""The table of operations: what earlier ones took, and what was done now. It looks after itself: each run
appends a row or two, so it would soon have the most files of its schema. Every so often old rows go, its
files are put together, and its old versions go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.compaction.experience import Experience
from dbt_arctic.compaction.history import read_operations
from dbt_arctic.compaction.metrics import newest, side_metrics
from dbt_arctic.compaction.retention import DEFAULT_S
from dbt_arctic.compaction.rewrite import merge_small_files
from dbt_arctic.compaction.run import Done, record
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed import operations as sql
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.claims import find_claims
from dbt_arctic.maintenance.expire import expire
from dbt_arctic.store.context import Context

DAY_MS = 24 * 3600 * 1000
MOST_FILES = 16
"""As many files as this, and it is time. Fewer than what makes a plain table due for a merge."""
VERSIONS_MS = 7 * DAY_MS
"""What ``dbt-arctic expire`` keeps without further words."""


def experience_of(catalog: CatalogReader, schema: Name, warn: Callable[[str], None]) -> Experience:
    """What earlier operations took. Where that cannot be read, compaction goes on without, and says so."""
    try:
        return Experience(read_operations(catalog, schema))
    except ArcticError as error:
        warn(f"What earlier operations took cannot be read, so times are rough.\n{error}")
        return Experience()


def record_and_keep(
    context: Context,
    schema: Name,
    done: Sequence[Done],
    experience: Experience,
    history_s: int,
    warn: Callable[[str], None],
) -> None:
    """Write down what was done. That it could not be, or not be put in order, is no failure of compaction."""
    try:
        record(context, schema, experience.undone(done))
    except ArcticError as error:
        warn(f"What was done could not be written to the table of operations.\n{error}")
        return
    try:
        keep_operations(context, schema, history_s)
    except ArcticError as error:
        warn(f"The table of operations was not put in order this time.\n{error}")


def keep_operations(context: Context, schema: Name, history_s: int = DEFAULT_S) -> bool:
    """Put the table of operations in order, if it is time. Nothing that others append meanwhile is lost.

    :param schema: any name of the schema that has it.
    :returns: whether it was time.
    :raises ArcticError: others were faster, or the catalog is out of reach: it stays as it is for now.
    """
    name = schema.sibling(sql.TABLE)
    state = context.catalog.load_table(name.schema, name.identifier)
    if state is None or newest(state) is None:
        return False
    side = side_metrics(state)
    if side is None or side.files + side.delete_files < MOST_FILES:
        return False
    context.run("forget_operations", sql.forget_before(name, context.now_ms() - history_s * 1000))
    merge_small_files(context, name)
    claims = find_claims(context.catalog, name.catalog)
    expire(context, name, claims, context.now_ms() - VERSIONS_MS)
    return True
