"""Reads the live data files of a snapshot from its manifests, without Spark.

This is the only module that needs pyiceberg to read local files (its Avro reader), so it should be imported
only when a list of files is requested. Delete files and deletion vectors are only listed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import META_SCHEMA, AvroFile, AvroFileHeader
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader
from pyiceberg.io import InputFile, InputStream
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, IcebergType, StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from dbt_arctic.catalog.api import DataFile, PlacedFile, StoredFile
from dbt_arctic.catalog.damage import reading_file
from dbt_arctic.catalog.days import shown_day
from dbt_arctic.catalog.files import LruCache, read_bytes

_DELETED = 2  # the status of a manifest entry whose file was removed in that manifest

# Field ids of Iceberg's specification, the same in every format version.
_STATUS, _DATA_FILE, _PATH, _PARTITION, _ROWS, _SIZE = 0, 2, 100, 102, 103, 104
_NULLS, _LOWER, _UPPER = 110, 125, 128
_MANIFEST, _SPEC, _MANIFEST_SEQUENCE, _CONTENT = 500, 502, 515, 517
_SEQUENCE, _FILE_CONTENT, _FORMAT, _REFERENCED, _OFFSET = 3, 134, 101, 143, 144
_OF_DATA = 0  # the content of a manifest of data files; format version 1 has no other kind and omits it

_HEADER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})

_kept: LruCache[tuple[str, int], tuple[DataFile, ...]] = LruCache(limit=512)
_placed: LruCache[tuple[str, int | None], tuple[PlacedFile, ...]] = LruCache(limit=4096)
_scanned: LruCache[tuple[str, frozenset[int]], tuple[ScannedFile, ...]] = LruCache(limit=512)


class ScannedFile(NamedTuple):
    """What a scan has to know of a file of a snapshot.

    :param content: 0 for data, 1 for positions of deleted rows, 2 for values of deleted rows.
    :param partition: the value of each field of the partition spec ``spec_id``.
    :param sequence: the number of the commit that added it, which its rows inherit.
    :param lower: bounds by field id, in Iceberg's single-value form; those that were requested.
    :param referenced: of deleted positions, the only data file that they are for.
    :param offset: of a deletion vector, where it is in its file.
    """

    content: int
    path: str
    file_format: str
    partition: tuple[Any, ...]
    spec_id: int
    sequence: int
    lower: Mapping[int, bytes]
    upper: Mapping[int, bytes]
    referenced: str | None
    offset: int | None


class _BytesInput(InputFile):
    """A file that was read as a whole, with the interface that pyiceberg expects."""

    def __init__(self, location: str, content: bytes) -> None:
        super().__init__(location)
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:
        return io.BytesIO(self._content)


class _AvroFile(AvroFile[Record]):
    """pyiceberg's Avro reader with cached schemas.

    pyiceberg needs ten times as long to parse the schema of a file as to read its rows, and thousands of
    manifests have the same schema.
    """

    def __enter__(self) -> _AvroFile:
        with self.input_file.open() as stream:
            self.decoder = new_decoder(stream.read())
        self.header = _HEADER.read(self.decoder)
        self.schema, self.reader = _understood(self.header.meta["avro.schema"])
        return self


@lru_cache(maxsize=128)
def _understood(schema: str) -> tuple[Schema, Reader]:
    understood = AvroSchemaConversion().avro_to_iceberg(json.loads(schema))
    return understood, construct_reader(understood)


class _Manifest(NamedTuple):
    path: str
    is_data: bool
    spec_id: int
    sequence: int


def _manifests(manifest_list: str, properties: Mapping[str, str]) -> Iterator[_Manifest]:
    with _AvroFile(_BytesInput(manifest_list, read_bytes(manifest_list, properties))) as entries:
        at = {field.field_id: position for position, field in enumerate(entries.schema.fields)}
        for entry in entries:
            content = entry[at[_CONTENT]] if _CONTENT in at else _OF_DATA
            sequence = entry[at[_MANIFEST_SEQUENCE]] if _MANIFEST_SEQUENCE in at else 0
            yield _Manifest(entry[at[_MANIFEST]], content == _OF_DATA, entry[at[_SPEC]], sequence)


def live_files(manifest_list: str, field_id: int, properties: Mapping[str, str]) -> list[DataFile]:
    """The data files of the snapshot with the given manifest list.

    :param field_id: the INT or BIGINT column whose bounds are requested.
    :raises OSError: a file is missing or unreachable. A damaged file raises any error of its reader.
    """
    files: list[DataFile] = []
    for path, is_data, *_ in _manifests(manifest_list, properties):
        if is_data:
            files += _kept.get((path, field_id), partial(_read, path, field_id, properties))
    return files


def stored_files(manifest_list: str, properties: Mapping[str, str]) -> list[StoredFile]:
    """All files of the snapshot with the given manifest list, of any content. Raises as ``live_files``."""
    return [
        StoredFile(path, size)
        for manifest in _manifests(manifest_list, properties)
        for path, size in _entries(manifest.path, properties, _PATH, _SIZE)
    ]


def placed_files(manifest_list: str, field_id: int | None, properties: Mapping[str, str]) -> list[PlacedFile]:
    """All files of the snapshot with the given manifest list, by partition. Raises as ``live_files``.

    :param field_id: the column whose bounds are requested; ``None`` for none.
    """
    files: list[PlacedFile] = []
    for path, is_data, spec_id, _ in _manifests(manifest_list, properties):
        files += _placed.get((path, field_id), partial(_place, path, is_data, spec_id, field_id, properties))
    return files


def scanned_files(
    manifest_list: str, properties: Mapping[str, str], bounded: frozenset[int]
) -> list[ScannedFile]:
    """All files of the snapshot with the given manifest list, for a scan.

    :param bounded: the ids of the fields whose bounds are requested: those of all columns would fill the
        memory of a program that reads for days.
    :raises UnreadableFile: a file is missing, unreachable or damaged.
    """
    files: list[ScannedFile] = []
    with reading_file(manifest_list):
        manifests = list(_manifests(manifest_list, properties))
    for manifest in manifests:
        with reading_file(manifest.path):
            files += _scanned.get((manifest.path, bounded), partial(_scan, manifest, properties, bounded))
    return files


def _scan(
    manifest: _Manifest, properties: Mapping[str, str], bounded: frozenset[int]
) -> tuple[ScannedFile, ...]:
    found = []
    with _AvroFile(_BytesInput(manifest.path, read_bytes(manifest.path, properties))) as entries:
        # Fields are read by id: older format versions lack some of them.
        at = {field.field_id: place for place, field in enumerate(entries.schema.as_struct().fields)}
        fields = _data_file_type(entries.schema).fields
        place = {field.field_id: position for position, field in enumerate(fields)}
        for entry in entries:
            if entry[at[_STATUS]] == _DELETED:
                continue
            file = entry[at[_DATA_FILE]]
            sequence = entry[at[_SEQUENCE]] if _SEQUENCE in at else 0
            values: dict[int, Any] = {field_id: file[position] for field_id, position in place.items()}
            found.append(
                ScannedFile(
                    content=values.get(_FILE_CONTENT) or _OF_DATA,
                    path=values[_PATH],
                    file_format=str(values[_FORMAT]).upper(),
                    partition=tuple(values[_PARTITION][one] for one in range(len(values[_PARTITION]))),
                    spec_id=manifest.spec_id,
                    sequence=manifest.sequence if sequence is None else sequence,
                    lower=_only(values.get(_LOWER), bounded),
                    upper=_only(values.get(_UPPER), bounded),
                    referenced=values.get(_REFERENCED),
                    offset=values.get(_OFFSET),
                )
            )
    return tuple(found)


def _only(bounds: Mapping[int, bytes] | None, field_ids: frozenset[int]) -> Mapping[int, bytes]:
    return {field_id: bound for field_id, bound in (bounds or {}).items() if field_id in field_ids}


def _place(
    path: str, is_data: bool, spec_id: int, field_id: int | None, properties: Mapping[str, str]
) -> tuple[PlacedFile, ...]:
    found = []
    with _AvroFile(_BytesInput(path, read_bytes(path, properties))) as entries:
        status, data_file = _positions(entries.schema.as_struct(), _STATUS, _DATA_FILE)
        type_ = _data_file_type(entries.schema)
        rows, size, partition, lower, upper = _positions(type_, _ROWS, _SIZE, _PARTITION, _LOWER, _UPPER)
        fields = type_.fields[partition].field_type
        types = [field.field_type for field in fields.fields] if isinstance(fields, StructType) else []
        for entry in entries:
            if entry[status] != _DELETED:
                file = entry[data_file]
                low, high = _bound(file[lower], field_id), _bound(file[upper], field_id)
                found.append(
                    PlacedFile(
                        is_data=is_data,
                        rows=file[rows],
                        size_bytes=file[size],
                        partition=tuple(
                            _shown(file[partition][place], kind) for place, kind in enumerate(types)
                        ),
                        bounds=None if low is None or high is None else (low, high),
                        spec_id=spec_id,
                    )
                )
    return tuple(found)


def _shown(value: Any, type_: IcebergType) -> str:
    if value is None:
        return "NULL"
    if isinstance(type_, DateType) and isinstance(value, int):
        return shown_day(value)
    return str(value)


def _read(path: str, field_id: int, properties: Mapping[str, str]) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(
            location,
            rows,
            size,
            _bound(lower, field_id),
            _bound(upper, field_id),
            (nulls or {}).get(field_id),
        )
        for location, rows, size, nulls, lower, upper in _entries(
            path, properties, _PATH, _ROWS, _SIZE, _NULLS, _LOWER, _UPPER
        )
    )


def _entries(path: str, properties: Mapping[str, str], *field_ids: int) -> Iterator[list[Any]]:
    """Some fields of each live file in a manifest."""
    # By the schema of the file: format version 3 has fields that pyiceberg's reading schemas lack.
    with _AvroFile(_BytesInput(path, read_bytes(path, properties))) as entries:
        status, data_file = _positions(entries.schema.as_struct(), _STATUS, _DATA_FILE)
        wanted = _positions(_data_file_type(entries.schema), *field_ids)
        for entry in entries:
            if entry[status] != _DELETED:
                yield [entry[data_file][position] for position in wanted]


def _data_file_type(entry: Schema) -> StructType:
    data_file = entry.find_type(_DATA_FILE)
    if not isinstance(data_file, StructType):
        raise ValueError("the manifest's entries have no data file")
    return data_file


def _positions(struct: StructType, *field_ids: int) -> list[int]:
    at = {field.field_id: position for position, field in enumerate(struct.fields)}
    return [at[field_id] for field_id in field_ids]


def _bound(bounds: dict[int, bytes] | None, field_id: int | None) -> int | None:
    """Decode Iceberg's single-value form of a whole number.

    It is little-endian, with 4 bytes if it was written as INT.
    """
    if field_id is None or not bounds or field_id not in bounds:
        return None
    return int.from_bytes(bounds[field_id], "little", signed=True)
