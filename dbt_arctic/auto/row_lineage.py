"""Whether Iceberg's row lineage shows which rows a table has gained."""

from __future__ import annotations

import re
from itertools import takewhile

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.refresh.pull import only_appends

_ROW_LINEAGE = 3
"""The format version from which Iceberg stores the commit that last wrote a row."""
_KEEPS_NUMBERS = (1, 10)
"""The version of Iceberg from which rows keep their numbers when Spark rewrites files."""
_VERSION = re.compile(r"Apache Iceberg (\d+)\.(\d+)")
_WRITERS = ("spark.app.id", "flink.job-id", "trino_query_id", "kafka.connect.")
"""Properties of commits whose engines write rows that get the commit's sequence number."""


def shows_added_rows(state: TableState, before: int, now: int) -> bool:
    """Whether rows were only added since a version, and their sequence numbers show which ones."""
    if int(state.properties.get("format-version", "0") or 0) < _ROW_LINEAGE:
        return False
    read_last = next(one for one in state.snapshots if one.snapshot_id == before)
    since = _since(state, before, now)
    # The format version is that of the next snapshot. In a snapshot before the upgrade, no row has a number.
    if not (since and since[0].has_row_ids):
        return False
    # Files of another table, which some tools add, may contain the numbers of that table.
    if not all(
        any(key.startswith(_WRITERS) for key in one.summary) for one in since if one.operation == "append"
    ):
        return False
    # A writer that does not copy the numbers gives every row of a rewritten file the number of the rewrite.
    if not all(_keeps_numbers(one) for one in since if one.operation == "replace"):
        return False
    # Snapshots of format version 1 have no numbers, and neither have rows that are added to them.
    if not all(one.sequence_number > read_last.sequence_number for one in since):
        return False
    # Old rows that were rewritten before the upgrade to version 3 have the number of the rewrite.
    rewritten = any(one.operation == "replace" for one in since)
    if read_last.is_number_guessed or (rewritten and not read_last.has_row_ids):
        return False
    return only_appends(state, before, now)


def _keeps_numbers(rewrite: Snapshot) -> bool:
    """Whether rows keep their numbers in a rewrite of files: always, if it only wrote manifests."""
    if rewrite.summary.get("added-data-files", "0") == "0":
        return True
    version = _VERSION.match(rewrite.summary.get("iceberg-version", ""))
    if rewrite.summary.get("engine-name") != "spark" or version is None:
        return False
    return (int(version[1]), int(version[2])) >= _KEEPS_NUMBERS


def _since(state: TableState, before: int, now: int) -> list[Snapshot]:
    return list(takewhile(lambda one: one.snapshot_id != before, state.history(now)))
