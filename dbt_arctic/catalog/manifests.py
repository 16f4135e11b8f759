"""The live data files of a snapshot, read from its manifests without Spark.

The one module that needs pyiceberg to read local files (its Avro reader): import it when a list
of files is asked for, not before. Delete files and deletion vectors are not looked at.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import InputFile, InputStream
from pyiceberg.manifest import ManifestContent, read_manifest_list
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from dbt_arctic.catalog.api import DataFile
from dbt_arctic.catalog.files import Kept, read_bytes

_DELETED = 2  # the status of a manifest entry whose file is gone since that manifest

# Only what is asked for, by the field ids of Iceberg's specification: the reader skips the rest.
_ENTRY = Schema(
    NestedField(0, "status", IntegerType(), required=True),
    NestedField(
        2,
        "data_file",
        StructType(
            NestedField(100, "file_path", StringType(), required=True),
            NestedField(103, "record_count", LongType(), required=True),
            NestedField(104, "file_size_in_bytes", LongType(), required=True),
            NestedField(125, "lower_bounds", MapType(126, IntegerType(), 127, BinaryType()), required=False),
            NestedField(128, "upper_bounds", MapType(129, IntegerType(), 130, BinaryType()), required=False),
        ),
        required=True,
    ),
)

_kept: Kept[tuple[str, int], tuple[DataFile, ...]] = Kept(limit=512)


class _BytesInput(InputFile):
    """A file that was read whole, as pyiceberg wants to be given it."""

    def __init__(self, location: str, content: bytes) -> None:
        super().__init__(location)
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:
        return io.BytesIO(self._content)


def live_files(manifest_list: str, field_id: int, properties: Mapping[str, str]) -> list[DataFile]:
    """The data files that a snapshot's manifest list leads to.

    :param field_id: the column whose bounds are wanted, an INT or BIGINT.
    :raises OSError: a file is missing or out of reach.
    :raises ValueError: a file is damaged.
    """
    manifests = read_manifest_list(_BytesInput(manifest_list, read_bytes(manifest_list, properties)))
    files: list[DataFile] = []
    for manifest in manifests:
        if manifest.content == ManifestContent.DATA:
            path = manifest.manifest_path
            files += _kept.get((path, field_id), partial(_read, path, field_id, properties))
    return files


def _read(path: str, field_id: int, properties: Mapping[str, str]) -> tuple[DataFile, ...]:
    files: list[DataFile] = []
    with AvroFile[Record](_BytesInput(path, read_bytes(path, properties)), _ENTRY) as entries:
        for entry in entries:
            if entry[0] == _DELETED:
                continue
            location, rows, size, lower, upper = (entry[1][position] for position in range(5))
            files.append(DataFile(location, rows, size, _bound(lower, field_id), _bound(upper, field_id)))
    return tuple(files)


def _bound(bounds: dict[int, bytes] | None, field_id: int) -> int | None:
    """Iceberg's single-value form of a whole number: little-endian, 4 bytes before INT became BIGINT."""
    if not bounds or field_id not in bounds:
        return None
    return int.from_bytes(bounds[field_id], "little", signed=True)
