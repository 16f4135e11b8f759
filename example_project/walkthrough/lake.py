"""The content of the lake, read with pyiceberg, without dbt and Spark: commits and sizes."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError


def count_commits(warehouse: Path) -> int:
    """How many commits the tables hold, those with the lists of the files that were read included."""
    file = warehouse / "catalog.db"
    if not file.exists():
        return 0
    catalog = SqlCatalog("lake", uri=f"sqlite:///{file}", warehouse=str(warehouse))
    commits = 0
    for schema, *_ in catalog.list_namespaces():
        for identifier in catalog.list_tables(schema):
            try:
                commits += len(catalog.load_table(identifier).metadata.snapshots)
            except NoSuchTableError:  # a view: it has no snapshots
                continue
    return commits


def size_in_megabytes(folder: Path) -> float:
    """What a folder takes on disk."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
