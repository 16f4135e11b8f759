"""Checks that a snapshot's files exist and have the right size, from metadata and the file system only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from dbt_arctic.catalog.api import StoredFile
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild_command


class Missing(Enum):
    """What is known of a file that has no size."""

    FILE = "the file does not exist"


SizeOf = Callable[[str], int | Missing | None]
"""The size of a file in bytes; ``None`` if neither the size nor whether the file exists can be determined."""

_SHOWN = 3


def check_files(
    table: KeyedTable, side: Name, files: Sequence[StoredFile], size_of: SizeOf
) -> Iterator[Finding]:
    """One finding for all missing files, and one for all files with a different size than was written."""
    missing, cut = [], []
    for file in files:
        size = size_of(file.path)
        if size is Missing.FILE:
            missing.append(file.path)
        elif size not in (None, file.size_bytes):
            cut.append(f"{file.path} ({size} of {file.size_bytes} bytes)")
    for paths, what in ((missing, "missing"), (cut, "of another size than was written")):
        if paths:
            yield Finding(
                "file-missing" if paths is missing else "file-damaged",
                table.name.dotted,
                f"{len(paths):,} of {counted(len(files), 'file')} of {side} {what}",
                ", ".join(paths[:_SHOWN]) + (", ..." if len(paths) > _SHOWN else ""),
                "they were deleted or overwritten outside of Iceberg, or the disk is damaged",
                f"restore them from a backup; otherwise {rebuild_command(table.name)}",
            )
