"""Lists of data files, from manifests that pyiceberg wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from dbt_arctic.catalog import api
from dbt_arctic.catalog.damage import UnreadableFile
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.manifests import scanned_files
from dbt_arctic.errors import CatalogUnavailable

if TYPE_CHECKING:
    from tests.unit.catalog.conftest import HandmadeWarehouse

SNAPSHOT = 42


def data_file(path: str, lower: bytes | None, upper: bytes | None) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=3,
        file_size_in_bytes=100,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds=None if lower is None else {1: lower},
        upper_bounds=None if upper is None else {1: upper},
    )


def write_snapshot(
    folder: Path,
    entries: list[tuple[ManifestEntryStatus, DataFile]],
    format_version: Literal[1, 2] = 2,
) -> str:
    """A manifest list with one manifest; returns its location."""
    io = PyArrowFileIO()
    with write_manifest(
        format_version,
        UNPARTITIONED_PARTITION_SPEC,
        Schema(NestedField(1, "id", LongType())),
        io.new_output(str(folder / "m0.avro")),
        SNAPSHOT,
        "deflate",
    ) as writer:
        for status, file in entries:
            entry = ManifestEntry.from_args(
                status=status, snapshot_id=SNAPSHOT, sequence_number=1, file_sequence_number=1, data_file=file
            )
            writer.add_entry(entry)
    manifest = writer.to_manifest_file()
    location = str(folder / "snap.avro")
    with write_manifest_list(
        format_version, io.new_output(location), SNAPSHOT, None, 1, "deflate"
    ) as manifests:
        manifests.add_manifests([manifest])
    return location


def table_with(handmade: HandmadeWarehouse, manifest_list: str) -> EmbeddedCatalog:
    snapshot: dict[str, Any] = {"snapshot-id": SNAPSHOT, "timestamp-ms": 1, "manifest-list": manifest_list}
    handmade.table("a", "t", snapshots=[snapshot], current_snapshot_id=SNAPSHOT)
    return EmbeddedCatalog("lake", handmade.folder)


def test_live_files_come_with_their_bounds_and_deleted_ones_do_not(handmade: HandmadeWarehouse) -> None:
    def wide(number: int) -> bytes:
        return number.to_bytes(8, "little", signed=True)

    def narrow(number: int) -> bytes:  # written while the column was an INT
        return number.to_bytes(4, "little", signed=True)

    added, existing, gone = (
        ManifestEntryStatus.ADDED,
        ManifestEntryStatus.EXISTING,
        ManifestEntryStatus.DELETED,
    )
    location = write_snapshot(
        handmade.folder,
        [
            (added, data_file("/wide", wide(-(2**62)), wide(2**62))),
            (existing, data_file("/narrow", narrow(-7), narrow(7))),
            (added, data_file("/without", None, None)),
            (gone, data_file("/gone", wide(0), wide(1))),
        ],
    )
    assert table_with(handmade, location).data_files("a", "t", SNAPSHOT, "id") == [
        api.DataFile("/wide", 3, 100, -(2**62), 2**62),
        api.DataFile("/narrow", 3, 100, -7, 7),
        api.DataFile("/without", 3, 100, None, None),
    ]
    stored = table_with(handmade, location).stored_files("a", "t", SNAPSHOT)
    assert stored == [api.StoredFile(path, 100) for path in ("/wide", "/narrow", "/without")]


def test_a_scan_keeps_the_requested_bounds_in_memory(handmade: HandmadeWarehouse) -> None:
    file = ManifestEntryStatus.ADDED, data_file("/rows", b"\0" * 8, b"\1" * 8)
    location = write_snapshot(handmade.folder, [file])
    for fields, lower, upper in (((1, 2), {1: b"\0" * 8}, {1: b"\1" * 8}), ((2,), {}, {})):
        (found,) = scanned_files(location, {}, frozenset(fields))
        assert (found.path, found.lower, found.upper) == ("/rows", lower, upper)


def test_a_manifest_that_a_scan_cannot_read_is_named(handmade: HandmadeWarehouse) -> None:
    location = write_snapshot(handmade.folder, [(ManifestEntryStatus.ADDED, data_file("/rows", None, None))])
    for path in (handmade.folder / "m0.avro", Path(location)):
        path.write_bytes(b"Obj\x01\x04\x14avro.codec\x08null")
        with pytest.raises(UnreadableFile) as caught:
            scanned_files(location, {}, frozenset())
        assert caught.value.path.removeprefix("file://") == str(path)


@pytest.mark.parametrize("format_version", [1, 2])
def test_files_of_any_format_version_are_data_files_by_default(
    handmade: HandmadeWarehouse, format_version: Literal[1, 2]
) -> None:
    """The manifest list of version 1 does not say what a manifest is of."""
    file = (ManifestEntryStatus.ADDED, data_file("/rows", None, None))
    catalog = table_with(handmade, write_snapshot(handmade.folder, [file], format_version))
    assert catalog.placed_files("a", "t", SNAPSHOT) == [api.PlacedFile(True, 3, 100, ())]
    assert [one.path for one in catalog.data_files("a", "t", SNAPSHOT, "id")] == ["/rows"]


@pytest.mark.parametrize("content", [None, b"", b"Obj\x01\x04\x14avro.codec\x08null", b"x" * 1000])
def test_an_unreadable_manifest_list_is_named(handmade: HandmadeWarehouse, content: bytes | None) -> None:
    path = handmade.folder / "snap.avro"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CatalogUnavailable, match=r"lake\.a\.t") as caught:
        table_with(handmade, str(path)).data_files("a", "t", SNAPSHOT, "id")
    assert caught.value.where == str(path)


def test_a_missing_manifest_is_named(handmade: HandmadeWarehouse) -> None:
    location = write_snapshot(handmade.folder, [(ManifestEntryStatus.ADDED, data_file("/a", None, None))])
    (handmade.folder / "m0.avro").unlink()
    with pytest.raises(CatalogUnavailable) as caught:
        table_with(handmade, location).data_files("a", "t", SNAPSHOT, "id")
    assert caught.value.where == str(handmade.folder / "m0.avro")
