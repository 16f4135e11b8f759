"""Lists the files below a folder: on the local disk directly, in an object store through pyiceberg."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.catalog.files import local_path
from dbt_arctic.errors import CatalogUnavailable


def list_files(folder: str, properties: Mapping[str, str]) -> list[ListedFile]:
    """All files below a folder, in no order. A folder that does not exist has none.

    :param properties: pyiceberg's FileIO properties (credentials), unused for local folders.
    :raises CatalogUnavailable: the folder cannot be listed.
    """
    local = local_path(folder)
    try:
        return list(_local(local)) if local is not None else _remote(folder, properties)
    except OSError as error:
        raise CatalogUnavailable(
            f"the folder {folder} cannot be listed",
            where=folder,
            why=str(error),
            fix="check the path, and that these credentials may list it",
        ) from error


def _local(folder: str) -> Iterator[ListedFile]:
    pending = [folder]
    while pending:
        try:
            entries = os.scandir(pending.pop())
        except FileNotFoundError:
            continue
        with entries:
            for entry in entries:
                if entry.is_dir():
                    pending.append(entry.path)
                    continue
                try:
                    found = entry.stat()
                except FileNotFoundError:
                    continue
                yield ListedFile(entry.path, found.st_mtime_ns // 1_000_000, found.st_size)


def _remote(folder: str, properties: Mapping[str, str]) -> list[ListedFile]:
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    scheme, netloc, path = PyArrowFileIO.parse_location(folder, dict(properties))
    system = PyArrowFileIO(dict(properties)).fs_by_scheme(scheme, netloc)
    found = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    # The path is that within the store; Spark needs the scheme as well.
    prefix = f"{scheme}://" if scheme not in ("hdfs", "viewfs") else f"{scheme}://{netloc}"
    return [
        ListedFile(prefix + entry.path, (entry.mtime_ns or 0) // 1_000_000, entry.size or 0)
        for entry in found
        if entry.type == FileType.File
    ]
