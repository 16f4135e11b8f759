"""A warning about a commit of very many small files, as ``partition_by`` a column of many values writes."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.catalog.api import CatalogReader, Snapshot
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted, shown_bytes
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import find_keyed, load_base, load_change

MANY_FILES = 500
"""The number of files of a commit from which it is reported."""

_SMALL_BYTES = 1024 * 1024
"""The average size of a file below which its cost in metadata and requests exceeds that of its rows."""


def many_small_files(
    model: str, partition_by: Iterable[str], commits: Iterable[Snapshot], since_ms: int
) -> ConfigError | None:
    """The warning about the commits of a run to a partitioned table; ``None`` if their files are fine.

    :param commits: the newest commit of each table that the model writes.
    :param since_ms: the beginning of the run; older commits are those of other runs.
    """
    for commit in commits:
        files = int(commit.summary.get("added-data-files", "0"))
        size = int(commit.summary.get("added-files-size", "0")) / max(files, 1)
        if commit.timestamp_ms < since_ms or files < MANY_FILES or size >= _SMALL_BYTES:
            continue
        fields = ", ".join(partition_by)
        partitions = int(commit.summary.get("changed-partition-count", files))
        return ConfigError(
            f"a commit wrote {counted(files, 'file')} of {shown_bytes(size)} on average",
            where=model,
            why=f"partition_by={fields} divides its rows into {counted(partitions, 'partition')}, "
            "counting buckets; each of them gets a file in each commit, and reads and compaction open "
            "all files",
            fix="choose a transform with fewer values, as in month(at), truncate(1000, n) or bucket(16, id); "
            f"then rebuild: dbt run --full-refresh --select {model}",
        )
    return None


def newest_commits(catalog: CatalogReader, name: Name) -> list[Snapshot]:
    """The newest commit to a plain table, or to the base and the change table of a keyed one."""
    keyed = find_keyed(catalog, name)
    if keyed is None:
        states = [catalog.of(name).load_table(name.schema, name.identifier)]
    else:
        states = [load_base(catalog, keyed), load_change(catalog, keyed)]
    return [commit for state in states if state is not None for commit in state.history()[:1]]


__all__ = ["MANY_FILES", "many_small_files", "newest_commits"]
