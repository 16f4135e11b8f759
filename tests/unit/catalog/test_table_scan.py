"""Rows of files that no test of Spark writes: of other engines, and of tables that were migrated."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType
from pyroaring import BitMap

from dbt_arctic.catalog import deleted_rows, table_scan
from dbt_arctic.catalog.deleted_rows import PATH_OF_DELETE
from dbt_arctic.catalog.manifests import ScannedFile
from dbt_arctic.catalog.metadata import read_table
from dbt_arctic.catalog.table_scan import TableFiles, _Scan
from dbt_arctic.errors import CatalogUnavailable, OnlyBySpark

SNAPSHOT = 42
CORES = os.cpu_count() or 1


class FileTable:
    """A table of format version 3 with files that a test describes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.files: list[ScannedFile] = []
        self.document: dict[str, Any] = {
            "format-version": 3,
            "location": str(folder),
            "current-schema-id": 0,
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "properties": {},
            "snapshots": [{"snapshot-id": SNAPSHOT, "timestamp-ms": 1, "manifest-list": "list.avro"}],
        }
        monkeypatch.setattr(table_scan, "scanned_files", lambda *_: self.files)

    def columns(self, **types: Any) -> None:
        fields = [
            {"id": place, "name": name, "type": type_, "required": False}
            for place, (name, type_) in enumerate(types.items(), 1)
        ]
        self.document["schemas"] = [{"type": "struct", "schema-id": 0, "fields": fields}]

    def map_names(self, *mapping: Mapping[str, Any]) -> None:
        self.document["properties"]["schema.name-mapping.default"] = json.dumps(mapping)

    def add(self, rows: pyarrow.Table, *, parquet: Mapping[str, Any] | None = None, **changes: Any) -> str:
        path = str(self.folder / f"{len(self.files)}.parquet")
        pyarrow.parquet.write_table(rows, path, **(parquet or {}))
        self.file(path, **changes)
        return path

    def file(self, path: str, **changes: Any) -> None:
        file = ScannedFile(0, path, "PARQUET", (), 0, 1, {}, {}, None, None)
        self.files.append(file._replace(**changes))

    @property
    def table(self) -> TableFiles:
        return TableFiles("lake.dev.t", read_table("dev", "t", self.document), {})

    def rows(self, columns: Sequence[str], **wanted: pyarrow.Array) -> list[dict[str, Any]]:
        return self.table.rows(columns, SNAPSHOT, wanted).to_pylist()


@pytest.fixture
def file_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileTable:
    return FileTable(tmp_path, monkeypatch)


def text(*values: str) -> pyarrow.Array:
    return pyarrow.array(values, pyarrow.large_string())


STRUCT = {
    "type": "struct",
    "fields": [{"id": 11, "name": "today", "type": "string", "required": False}],
}
LIST = {"type": "list", "element-id": 12, "element": STRUCT, "element-required": False}


def test_a_file_without_ids_may_have_columns_that_the_table_lacks(file_table: FileTable) -> None:
    file_table.columns(id="int", s=STRUCT, items=LIST)
    file_table.map_names(
        {"field-id": 1, "names": ["number", "id"]},
        {"field-id": 2, "names": ["s"], "fields": [{"field-id": 11, "names": ["then"]}]},
        {
            "field-id": 3,
            "names": ["items"],
            "fields": [
                {
                    "field-id": 13,
                    "names": ["element"],
                    "fields": [{"field-id": 11, "names": ["then"]}],
                }
            ],
        },
    )
    inside = {"gone": 1, "then": "x", "later": None}
    rows = {"took": pyarrow.array([1], pyarrow.duration("us")), "number": pyarrow.array([7], pyarrow.int32())}
    file_table.add(pyarrow.table({**rows, "s": [inside], "items": [[inside, None]], "a.b": ["y"]}))
    expected = {"id": 7, "s": {"today": "x"}, "items": [{"today": "x"}, None]}
    assert file_table.rows(["id", "s", "items"]) == [expected]
    assert file_table.rows(["s"], id=pyarrow.array([7], pyarrow.int32())) == [{"s": {"today": "x"}}]
    assert file_table.rows(["s"], id=pyarrow.array([8], pyarrow.int32())) == []


def test_a_column_with_a_dot_is_not_the_field_of_a_struct(file_table: FileTable) -> None:
    file_table.columns(**{"a.b": "string"})
    file_table.map_names({"field-id": 1, "names": ["a.b"]})
    file_table.add(pyarrow.table({"a": [{"b": "field"}], "a.b": ["column"]}))
    assert file_table.rows(["a.b"]) == [{"a.b": "column"}]
    assert file_table.rows(["a.b"], **{"a.b": text("column")}) == [{"a.b": "column"}]
    assert file_table.rows(["a.b"], **{"a.b": text("field")}) == []


def test_only_spark_reads_a_file_whose_columns_have_neither_ids_nor_names(file_table: FileTable) -> None:
    file_table.columns(id="int")
    path = file_table.add(pyarrow.table({"id": [1]}))
    with pytest.raises(OnlyBySpark, match=f"{path} has no field ids"):
        file_table.rows(["id"])


TIMES = [
    datetime(1, 1, 1, tzinfo=timezone.utc),
    datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc),
    datetime(2020, 1, 1, 0, 0, 0, 1, timezone.utc),
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
@pytest.mark.parametrize("int96", [True, False])
def test_times_of_other_writers(file_table: FileTable, int96: bool, zone: str | None) -> None:
    file_table.columns(at="timestamptz")
    file_table.map_names({"field-id": 1, "names": ["at"]})
    stored = pyarrow.array(TIMES, pyarrow.timestamp("us", "UTC")).cast(pyarrow.timestamp("us", zone))
    file_table.add(pyarrow.table({"at": stored}), parquet={"use_deprecated_int96_timestamps": int96})
    assert file_table.rows(["at"]) == [{"at": time} for time in TIMES]
    for time in TIMES:
        wanted = pyarrow.array([time], pyarrow.timestamp("us", "UTC"))
        assert file_table.rows(["at"], at=wanted) == [{"at": time}]


def test_digits_of_int96_that_a_timestamp_does_not_have_are_ignored(file_table: FileTable) -> None:
    file_table.columns(at="timestamp")
    file_table.map_names({"field-id": 1, "names": ["at"]})
    stored = pyarrow.table({"at": pyarrow.array([1999], pyarrow.timestamp("ns"))})
    file_table.add(stored, parquet={"use_deprecated_int96_timestamps": True})
    assert file_table.rows(["at"]) == [{"at": datetime(1970, 1, 1, 0, 0, 0, 1)}]


def test_a_dictionary_of_pandas_is_text(file_table: FileTable) -> None:
    file_table.columns(shop="string")
    file_table.map_names({"field-id": 1, "names": ["shop"]})
    file_table.add(pyarrow.table({"shop": pyarrow.array(["a", "b", "a"]).dictionary_encode()}))
    assert file_table.rows(["shop"], shop=text("b")) == [{"shop": "a"}, {"shop": "b"}, {"shop": "a"}]


ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize("type_", [pyarrow.uuid(), pyarrow.binary(16)], ids=str)
def test_uuids_and_fixed_values_have_the_types_that_spark_shows(
    file_table: FileTable, type_: pyarrow.DataType
) -> None:
    pair = {
        "type": "struct",
        "fields": [{"id": 11, "name": "u", "type": "uuid", "required": False}],
    }
    file_table.columns(id="uuid", code="fixed[2]", pair=pair, added="uuid", day="uuid")
    fields = file_table.document["schemas"][0]["fields"]
    fields[3]["initial-default"] = str(ID)
    file_table.document["partition-specs"][0]["fields"] = [
        {"source-id": 5, "field-id": 1000, "name": "day", "transform": "identity"}
    ]
    file_table.map_names(
        {"field-id": 1, "names": ["id"]},
        {"field-id": 2, "names": ["code"]},
        {"field-id": 3, "names": ["pair"], "fields": [{"field-id": 11, "names": ["u"]}]},
    )
    stored = {
        "id": pyarrow.array([ID.bytes, None], type_),
        "code": pyarrow.array([b"ab", None], pyarrow.binary(2)),
        "pair": pyarrow.array([{"u": ID.bytes}, None], pyarrow.struct([("u", pyarrow.binary(16))])),
    }
    file_table.add(
        pyarrow.table(stored), partition=(ID,), lower={1: ID.bytes, 2: b"ab"}, upper={1: ID.bytes, 2: b"ab"}
    )
    table = file_table.table
    assert table.types.field("pair").type == pyarrow.struct([("u", pyarrow.large_string())])
    found = table.rows(table.types.names, SNAPSHOT)
    assert found.schema == table.types
    same = {"added": str(ID), "day": str(ID)}
    assert found.to_pylist() == [
        {"id": str(ID), "code": b"ab", "pair": {"u": str(ID)}, **same},
        {"id": None, "code": None, "pair": None, **same},
    ]
    code = pyarrow.array([b"ab"], pyarrow.large_binary())
    assert file_table.rows(["code"], code=code, id=text(str(ID))) == [{"code": b"ab"}]
    other = pyarrow.array([b"ac"], pyarrow.large_binary())
    assert file_table.rows(["code"], code=other) == []


NUMBERS = pyarrow.schema([pyarrow.field("id", pyarrow.int32(), metadata={"PARQUET:field_id": "1"})])


def numbers(*values: int) -> pyarrow.Table:
    return pyarrow.table({"id": list(values)}, NUMBERS)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of deletes that are opened."""
    files: list[str] = []
    open_file = deleted_rows.open_file

    def opening(location: str, properties: Any) -> Any:
        files.append(location)
        return open_file(location, properties)

    monkeypatch.setattr(deleted_rows, "open_file", opening)
    return files


def remaining_ids(file_table: FileTable) -> list[int]:
    return sorted(row["id"] for row in file_table.rows(["id"]))


def test_a_file_of_positions_is_read_once_for_all_data_files(
    file_table: FileTable, opened: list[str]
) -> None:
    file_table.columns(id="int")
    paths = [
        file_table.add(numbers(*range(10 * n, 10 * n + 3)), sequence=n, parquet={"row_group_size": 2})
        for n in range(6)
    ]
    rows = pyarrow.table(
        {"file_path": [paths[n] for n in (1, 1, 2, 4)], "pos": pyarrow.array([0, 2, 1, 1], pyarrow.int64())}
    )
    # The rows of file 4 were stored_table after they were deleted.
    bounds = {"lower": {PATH_OF_DELETE: paths[1].encode()}, "upper": {PATH_OF_DELETE: paths[4].encode()}}
    deletes = file_table.add(rows, content=1, sequence=3, **bounds)
    elsewhere = {"lower": {PATH_OF_DELETE: b"/zzz"}, "upper": {PATH_OF_DELETE: b"/zzz"}}
    file_table.file("/no/such/file", content=1, sequence=9, **elsewhere)
    gone = {10, 12, 21}
    assert remaining_ids(file_table) == [n for n in range(60) if n % 10 < 3 and n not in gone]
    assert set(opened) == {deletes}
    assert len(opened) <= CORES  # two threads may read it at the same time
    ids = pyarrow.array([11, 12], pyarrow.int32())
    assert file_table.rows(["id"], id=ids) == [{"id": 11}]


def puffin(vectors: Sequence[tuple[str, Sequence[int]]]) -> tuple[bytes, list[int]]:
    """A file of deletion vectors, and where they are in it."""
    content, blobs = b"PFA1", []
    for path, positions in vectors:
        bitmap = struct.pack("<QI", 1, 0) + BitMap(positions).serialize()
        payload = struct.pack(">I", 4 + len(bitmap)) + b"\xd1\xd3\x39\x64" + bitmap + b"\0" * 4
        described = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1}
        place = {"offset": len(content), "length": len(payload)}
        blobs.append({**described, **place, "properties": {"referenced-data-file": path}})
        content += payload
    footer = json.dumps({"blobs": blobs}).encode()
    content += b"PFA1" + footer + struct.pack("<i", len(footer)) + b"\0" * 4 + b"PFA1"
    return content, [blob["offset"] for blob in blobs]


def test_a_deletion_vector_is_found_by_its_place(
    file_table: FileTable, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file_table.columns(id="int")
    paths = [file_table.add(numbers(*range(10 * n, 10 * n + 4))) for n in range(3)]
    # The first vector of file 0 was replaced. Files of positions are older than a vector of their file.
    vectors = [(paths[0], [3]), (paths[0], [0, 1]), (paths[1], [2])]
    content, places = puffin(vectors)
    (file_table.folder / "deletes.puffin").write_bytes(content)
    for path, place in ((paths[0], places[1]), (paths[1], places[2])):
        file_table.file(
            str(file_table.folder / "deletes.puffin"),
            file_format="PUFFIN",
            content=1,
            sequence=2,
            referenced=path,
            offset=place,
        )
    rows = {"file_path": paths, "pos": pyarrow.array([2, 0, 0], pyarrow.int64())}
    file_table.add(pyarrow.table(rows), content=1)
    decoded: list[int] = []
    decode = deleted_rows.deletion_vectors_from_puffin_file
    monkeypatch.setattr(
        deleted_rows,
        "deletion_vectors_from_puffin_file",
        lambda file: [decoded.append(len(file.footer.blobs)), decode(file)][1],
    )
    assert remaining_ids(file_table) == [2, 3, 10, 11, 13, 21, 22, 23]
    assert decoded == [1, 1]


KEYS = [("int", pyarrow.int32()), ("string", pyarrow.large_string()), ("date", pyarrow.date32())]


@pytest.mark.parametrize(("type_", "arrow"), KEYS, ids=[name for name, _ in KEYS])
def test_a_file_is_opened_if_a_wanted_value_is_in_its_bounds(
    file_table: FileTable, type_: str, arrow: pyarrow.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)

    def value(number: int) -> Any:
        return {"int": number - 25, "string": f"{number:03}"}.get(
            type_, date(1969, 12, 1) + timedelta(number)
        )

    def stored(number: int) -> bytes:
        shown = value(number)
        if type_ == "string":
            return str(shown).encode()
        days = shown if type_ == "int" else (shown - date(1970, 1, 1)).days
        return int(days).to_bytes(4, "little", signed=True)

    file_table.columns(id=type_)
    file_table.map_names({"field-id": 1, "names": ["id"]})
    ranges = []
    for _ in range(20):
        low = chance.randrange(50)
        high = low + chance.randrange(5)
        ranges.append((low, high))
        rows = pyarrow.table({"id": pyarrow.array([value(low), value(high)], arrow)})
        file_table.add(rows, lower={1: stored(low)}, upper={1: stored(high)})
    files: list[str] = []
    open_file = table_scan.open_file
    monkeypatch.setattr(
        table_scan, "open_file", lambda path, where: [files.append(path), open_file(path, where)][1]
    )
    for count in (0, 1, 1, 2, 3, 30):
        wanted = [chance.randrange(60) for _ in range(count)]
        files.clear()
        found = file_table.rows(["id"], id=pyarrow.array([value(one) for one in wanted], arrow))
        expected = [value(one) for pair in ranges for one in pair if one in wanted]
        assert sorted(row["id"] for row in found) == sorted(expected)
        assert len(files) == sum(any(low <= one <= high for one in wanted) for low, high in ranges)


@pytest.mark.parametrize("values", [(0,), (0, 19), (3, 9, 17), (5,), range(100), range(200)])
def test_a_row_group_between_two_wanted_values_is_not_read(
    file_table: FileTable, monkeypatch: pytest.MonkeyPatch, values: Sequence[int]
) -> None:
    """Values whose bucket a file does not have are no reason to read a row group of it."""
    file_table.columns(id="int")
    field = {"field-id": 1000, "name": "id_bucket", "source-id": 1, "transform": "bucket[2]"}
    file_table.document["partition-specs"] = [{"spec-id": 0, "fields": [field]}]
    file_table.map_names({"field-id": 1, "names": ["id"]})
    bucket = BucketTransform(2).transform(IntegerType())
    of_buckets = [[n for n in range(20) if bucket(n) == number] for number in (0, 1)]
    for number, ids in enumerate(of_buckets):
        rows = pyarrow.table({"id": pyarrow.array(ids, pyarrow.int32())})
        file_table.add(rows, parquet={"row_group_size": 2}, partition=(number,))
    read: list[int] = []
    wanted_in = _Scan._wanted_in

    def reading(scan: _Scan, file: ScannedFile, physical: Any, stored: Any) -> Any:
        found = wanted_in(scan, file, physical, stored)
        parquet = pyarrow.dataset.ParquetFileFormat().make_fragment(file.path, pyarrow.fs.LocalFileSystem())
        read.append(len(parquet.subset(table_scan._condition(found)).row_groups))
        return found

    monkeypatch.setattr(_Scan, "_wanted_in", reading)
    wanted = pyarrow.array(values, pyarrow.int32())
    found = [row["id"] for row in file_table.rows(["id"], id=wanted)]
    assert sorted(found) == sorted(set(values) & set(range(20)))
    holding = sum(
        bool(set(ids[place : place + 2]) & set(values))
        for ids in of_buckets
        for place in range(0, len(ids), 2)
    )
    assert sum(read) == holding


def test_keys_are_found_among_deleted_rows(file_table: FileTable) -> None:
    """In row groups whose bounds include the key, and whether or not the key is one of the columns read."""
    chance = random.Random(11)
    file_table.columns(id="int", part="string", v="int")
    mapping = [{"field-id": at, "names": [name]} for at, name in enumerate(("id", "part", "v"), 1)]
    file_table.map_names(*mapping)
    for place in range(3):
        rows = [(chance.randrange(12), chance.choice("ab"), 100 * place + at) for at in range(14)]
        ids, parts, values = zip(*rows, strict=True)
        path = file_table.add(
            pyarrow.table({"id": pyarrow.array(ids, pyarrow.int32()), "part": parts, "v": values}),
            parquet={"row_group_size": 4},
        )
        gone = sorted(chance.sample(range(14), 6))
        deletes = {"file_path": [path] * 6, "pos": pyarrow.array(gone, pyarrow.int64())}
        file_table.add(pyarrow.table(deletes), content=1)
        live = [row for at, row in enumerate(rows) if at not in gone]
        for _ in range(20):
            wanted, only = chance.sample(range(12), chance.randrange(4)), chance.choice(["a", "b"])
            keys = {"id": pyarrow.array(wanted, pyarrow.int32()), "part": text(only)}
            expected = sorted(v for id_, part, v in live if id_ in wanted and part == only)
            assert sorted(row["v"] for row in file_table.rows(["v"], **keys)) == expected
        file_table.files.clear()


@pytest.mark.parametrize(("transform", "part"), [("year", 8213), ("month", 98565), ("day", 3_000_000)])
def test_a_wanted_date_may_be_in_any_year(file_table: FileTable, transform: str, part: int) -> None:
    """Python's dates end in the year 9999, and Spark's do not."""
    file_table.columns(id="date")
    field = {"source-id": 1, "field-id": 1000, "name": "part", "transform": transform}
    file_table.document["partition-specs"] = [{"spec-id": 0, "fields": [field]}]
    file_table.map_names({"field-id": 1, "names": ["id"]})
    days = pyarrow.array([3_000_000], pyarrow.int32()).cast(pyarrow.date32())
    file_table.add(pyarrow.table({"id": days}), partition=(part,))
    assert file_table.table.rows(["id"], SNAPSHOT, {"id": days}).num_rows == 1


def test_the_first_rows_of_a_file_are_read_without_the_others(file_table: FileTable) -> None:
    file_table.columns(id="int")
    path = file_table.add(numbers(*range(7)), parquet={"row_group_size": 3})
    rows = {"file_path": [path, path], "pos": pyarrow.array([1, 6], pyarrow.int64())}
    for expected in ([0, 3, 3, 1], [0, 2, 3, 0]):
        parts = list(file_table.table.parts(["id"], SNAPSHOT))
        assert [part.num_rows for part in parts if part.num_rows] == [n for n in expected if n]
        assert pyarrow.concat_tables(parts).equals(file_table.table.rows(["id"], SNAPSHOT).combine_chunks())
        file_table.add(pyarrow.table(rows), content=1)


@pytest.mark.parametrize("content", [None, b"", b"PAR1", b"x" * 1000])
def test_a_file_that_cannot_be_read_is_named(file_table: FileTable, content: bytes | None) -> None:
    file_table.columns(id="int")
    path = file_table.add(numbers(1))
    deletes = file_table.folder / "deletes"
    for changes in (
        {"path": str(file_table.folder / "rows")},
        {"path": str(deletes), "content": 1},
        {"path": str(deletes), "content": 1, "file_format": "PUFFIN", "referenced": path},
    ):
        broken = Path(str(changes["path"]))
        if content is not None:
            broken.write_bytes(content)
        file_table.file(**changes)
        with pytest.raises(CatalogUnavailable, match=r"The rows of `lake\.dev\.t` cannot be read") as caught:
            file_table.rows(["id"])
        assert caught.value.where == str(broken)
        assert ("the file does not exist" in str(caught.value)) == (content is None)
        file_table.files.pop()


def test_too_little_memory_is_no_damage(file_table: FileTable, monkeypatch: pytest.MonkeyPatch) -> None:
    file_table.columns(id="int")
    file_table.add(numbers(1))

    def failing(*_: Any) -> Any:
        raise pyarrow.ArrowMemoryError("malloc of size 7 failed")

    monkeypatch.setattr(table_scan, "as_today", failing)
    with pytest.raises(MemoryError):
        file_table.rows(["id"])


@pytest.mark.parametrize("with_deletes", [False, True])
def test_rows_without_any_of_the_columns_are_counted(file_table: FileTable, with_deletes: bool) -> None:
    file_table.columns(id="int", added="string", nothing="unknown")
    fields = file_table.document["schemas"][0]["fields"]
    fields[1]["initial-default"] = "new"
    path = file_table.add(numbers(*range(7)), parquet={"row_group_size": 3})
    if with_deletes:
        rows = {"file_path": [path, path], "pos": pyarrow.array([1, 6], pyarrow.int64())}
        file_table.add(pyarrow.table(rows), content=1)
    count = 5 if with_deletes else 7
    for columns in (["added"], ["added", "nothing"], ["nothing"]):
        row = {column: {"added": "new"}.get(column) for column in columns}
        assert file_table.rows(columns) == [row] * count
        assert sum(part.num_rows for part in file_table.table.parts(columns, SNAPSHOT)) == count
    if not with_deletes:
        wanted = pyarrow.array([3, 6], pyarrow.int32())
        assert file_table.rows(["added"], id=wanted) == [{"added": "new"}] * 2
