"""Are the files of a snapshot there, and whole? From metadata and the file system; no file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dbt_arctic.catalog.api import StoredFile
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild

SizeOf = Callable[[str], int | None]
"""The size of a file; ``None`` where there is none, -1 where that cannot be told from here."""

_SHOWN = 3


def check_files(
    table: KeyedTable, side: Name, files: Sequence[StoredFile], size_of: SizeOf
) -> Iterator[Finding]:
    """One finding for all that is missing, and one for all that is of another size than was written."""
    missing, cut = [], []
    for file in files:
        size = size_of(file.path)
        if size is None:
            missing.append(file.path)
        elif size not in (-1, file.size_bytes):
            cut.append(f"{file.path} ({size} of {file.size_bytes} bytes)")
    for paths, what in ((missing, "are missing"), (cut, "are not as they were written")):
        if paths:
            yield Finding(
                "file-missing" if paths is missing else "file-damaged",
                table.name.dotted,
                f"{len(paths)} of the {len(files)} files of {side} {what}",
                ", ".join(paths[:_SHOWN]) + (", ..." if len(paths) > _SHOWN else ""),
                "they were deleted or overwritten outside of Iceberg, or the disk has lost them",
                f"restore them from a backup; else {rebuild(table.name)}",
            )
