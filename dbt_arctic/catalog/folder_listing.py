"""Lists the files below a folder: on the local disk directly, in an object store through pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.catalog.files import HADOOP, local_path
from dbt_arctic.errors import CatalogUnavailable

_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss", "wasb", "wasbs")
_SETTINGS = {
    **dict.fromkeys(
        _S3,
        "`s3` in the catalog of the profile (endpoint, region, access_key_id, secret_access_key), or AWS's "
        "default credentials (AWS_ACCESS_KEY_ID, ..)",
    ),
    **dict.fromkeys(_AZURE, "`adls.*` in catalog_properties of the profile"),
    **dict.fromkeys(
        HADOOP,
        "a Hadoop installation, which Python needs for HDFS: HADOOP_HOME, JAVA_HOME, and CLASSPATH with what "
        "`hadoop classpath --glob` prints",
    ),
    "gs": "`gcs.*` in catalog_properties of the profile, or Google's default credentials",
}
"""Where the credentials of a store come from, by scheme."""


class StoreFolder(NamedTuple):
    """A folder in an object store.

    :param authority: what is between the scheme and the path: ``container@account.host`` in Azure.
    :param bucket: the bucket or container; empty if the store has none.
    :param key: the path in the bucket, without a slash at either end.
    """

    scheme: str
    authority: str
    bucket: str
    key: str

    @property
    def path(self) -> str:
        """The folder as pyarrow names it."""
        return f"{self.bucket}/{self.key}".rstrip("/") or "/"

    def url(self, path: str) -> str:
        """The location of a file for Spark, from pyarrow's path."""
        below = path.removeprefix(self.bucket).lstrip("/")
        return f"{self.scheme}://{self.authority}/{below}"


def store_folder(location: str) -> StoreFolder:
    """The parts of a location like ``s3://bucket/folder``. A key may contain any sign, ``#`` and ``?`` too.

    >>> store_folder("abfss://raw@shop.dfs.core.windows.net/clicks/").path
    'raw/clicks'
    >>> store_folder("s3://shop/clicks").url("shop/clicks/a b.json")
    's3://shop/clicks/a b.json'
    """
    scheme, _, rest = location.partition(":")
    authority, _, key = rest.removeprefix("//").partition("/")
    bucket = "" if scheme in HADOOP else authority.partition("@")[0] if scheme in _AZURE else authority
    return StoreFolder(scheme, authority, bucket, key.strip("/"))


def list_files(folder: str, properties: Mapping[str, str]) -> list[ListedFile]:
    """All files below a folder, in no order. A folder that does not exist has none.

    :param properties: pyiceberg's FileIO properties (credentials), unused for local folders.
    :raises CatalogUnavailable: the folder cannot be listed, or its bucket in S3 does not exist.
    """
    local = local_path(folder)
    try:
        return list(_local(local)) if local is not None else _remote(store_folder(folder), properties)
    except (OSError, ValueError, ImportError) as error:
        settings = "" if local is not None else _SETTINGS.get(store_folder(folder).scheme, "")
        raise CatalogUnavailable(
            f"the folder {folder} cannot be listed",
            where=folder,
            # Arrow lists each place where it has looked for the libraries of Hadoop.
            why=str(error).partition("\n")[0],
            fix="check the path, and that these credentials may list it"
            + (f". Address and credentials come from {settings}" if settings else ""),
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


def _remote(folder: StoreFolder, properties: Mapping[str, str]) -> list[ListedFile]:
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    given = dict(properties)
    if folder.scheme in _AZURE and "@" in folder.authority:
        account = folder.authority.partition("@")[2].partition(".")[0]
        given.setdefault("adls.account-name", account)
    system = PyArrowFileIO(given).fs_by_scheme(folder.scheme, folder.authority)
    found = system.get_file_info(FileSelector(folder.path, recursive=True, allow_not_found=True))
    # A misspelled bucket must not look like a source without files.
    if not found and folder.scheme in _S3 and system.get_file_info(folder.bucket).type == FileType.NotFound:
        raise FileNotFoundError(f"the bucket {folder.bucket} does not exist")
    return [
        ListedFile(folder.url(entry.path), (entry.mtime_ns or 0) // 1_000_000, entry.size or 0)
        for entry in found
        if entry.type == FileType.File
    ]


__all__ = ["StoreFolder", "list_files", "store_folder"]
