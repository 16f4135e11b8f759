"""The embedded catalog's reader on handmade files."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_arctic.catalog.api import CatalogColumn, RelationEntry, Snapshot
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.errors import CatalogUnavailable, UnknownRelation, VersionUnavailable

if TYPE_CHECKING:
    from tests.unit.catalog.conftest import HandmadeWarehouse


def open_embedded(warehouse: HandmadeWarehouse) -> EmbeddedCatalog:
    return EmbeddedCatalog("lake", warehouse.folder, busy_seconds=0.05)


def test_a_missing_file_is_an_empty_catalog_and_stays_missing(tmp_path: Path) -> None:
    catalog = EmbeddedCatalog("lake", tmp_path / "none")
    assert catalog.list_schemas() == []
    assert catalog.list_relations("a") == []
    assert catalog.load_table("a", "t") is None
    assert catalog.load_view("a", "v") is None
    assert not (tmp_path / "none").exists()


def test_a_file_that_spark_has_only_just_made_is_an_empty_catalog(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    catalog = EmbeddedCatalog("lake", tmp_path)
    assert catalog.list_schemas() == []
    assert catalog.list_relations("a") == []


def test_schemas_are_listed_empty_or_not_and_of_this_catalog_only(handmade: HandmadeWarehouse) -> None:
    handmade.table("made_by_its_table", "t")
    handmade.catalog = "other"
    handmade.schema("elsewhere")
    assert open_embedded(handmade).list_schemas() == ["a", "made_by_its_table"]


def test_tables_and_views_are_listed_with_the_views_properties(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t")
    handmade.view("a", "v", {"arctic.kind": "keyed", "engine_version": "Spark 4.1.4"})
    handmade.table("b", "elsewhere")
    assert open_embedded(handmade).list_relations("a") == [
        RelationEntry("a", "t", "table"),
        RelationEntry("a", "v", "view", {"arctic.kind": "keyed"}),
    ]
    assert open_embedded(handmade).list_relations("nowhere") == []


def test_names_are_matched_exactly(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "it's `x`")
    catalog = open_embedded(handmade)
    assert catalog.load_table("a", "it's `x`") is not None
    assert catalog.load_table("A", "it's `x`") is None


def test_rows_without_a_type_are_tables(handmade: HandmadeWarehouse) -> None:
    path = handmade.table("a", "t")
    handmade.register("a", "t", str(path), None)
    assert open_embedded(handmade).list_relations("a") == [RelationEntry("a", "t", "table")]


def test_a_catalog_of_schema_version_0_has_tables_only(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t")
    handmade.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    assert open_embedded(handmade).list_relations("a") == [RelationEntry("a", "t", "table")]


def test_a_view_is_no_table_and_a_table_no_view(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t")
    handmade.view("a", "v")
    catalog = open_embedded(handmade)
    assert catalog.load_table("a", "v") is None
    assert catalog.load_view("a", "t") is None


def test_a_table_is_read_whole(handmade: HandmadeWarehouse) -> None:
    fields = [
        handmade.column(1, "id", "long", "the key", required=True),
        handmade.column(4, "price", "decimal(12, 2)"),
    ]
    first = {
        "snapshot-id": 10,
        "sequence-number": 1,
        "timestamp-ms": 1000,
        "schema-id": 0,
        "summary": {"operation": "append"},
    }
    second = {
        "snapshot-id": 20,
        "parent-snapshot-id": 10,
        "sequence-number": 2,
        "timestamp-ms": 2000,
        "schema-id": 1,
        "summary": {"operation": "append", "arctic.txn": "7"},
    }
    handmade.table(
        "a",
        "t",
        current_schema_id=1,
        schemas=[
            {"type": "struct", "schema-id": 0, "fields": [handmade.column(1, "old_name")]},
            {"type": "struct", "schema-id": 1, "fields": fields},
        ],
        properties={"k": "v"},
        current_snapshot_id=10,
        snapshots=[first, second],
        refs={
            "main": {"snapshot-id": 10, "type": "branch"},
            "run": {"snapshot-id": 20, "type": "branch"},
            "kept": {"snapshot-id": 10, "type": "tag"},
        },
    )
    catalog = open_embedded(handmade)
    assert catalog.columns_at("a", "t", 10) == {"id": CatalogColumn("old_name", "bigint")}
    assert catalog.columns_at("a", "t", 20) == {
        "id": CatalogColumn("id", "bigint", "the key", nullable=False),
        "price": CatalogColumn("price", "decimal(12,2)"),
    }
    table = catalog.load_table("a", "t")
    assert table is not None
    assert table.columns == (
        CatalogColumn("id", "bigint", "the key", nullable=False),
        CatalogColumn("price", "decimal(12,2)"),
    )
    assert table.properties == {"k": "v", "format-version": "3"}
    assert table.branches == {"main": 10, "run": 20}
    assert table.tags == {"kept": 10}
    assert table.current_snapshot_id == 10
    assert table.snapshots == (
        Snapshot(10, None, 1, 1000, "append", {}),
        Snapshot(20, 10, 2, 2000, "append", {"arctic.txn": "7"}),
    )
    assert [snapshot.snapshot_id for snapshot in table.history(20)] == [20, 10]


def test_a_column_that_was_dropped_and_added_again_is_not_one_of_older_rows(
    handmade: HandmadeWarehouse,
) -> None:
    def of(number: int, *columns: tuple[Any, ...]) -> dict[str, object]:
        fields = [handmade.column(*one[:3]) for one in columns]
        for field, one in zip(fields, columns, strict=True):
            if len(one) > 3:  # another engine has added it with a default
                field["initial-default"] = one[3]
        return {"type": "struct", "schema-id": number, "fields": fields}

    handmade.table(
        "a",
        "t",
        current_schema_id=1,
        schemas=[
            of(0, (1, "id"), (2, "x"), (3, "gone")),
            of(1, (1, "id"), (4, "x"), (5, "new"), (6, "filled", "string", '"x"')),
        ],
        current_snapshot_id=10,
        snapshots=[
            {
                "snapshot-id": 10,
                "sequence-number": 1,
                "timestamp-ms": 1000,
                "schema-id": 0,
                "summary": {"operation": "append"},
            }
        ],
        refs={"main": {"snapshot-id": 10, "type": "branch"}},
    )
    then = open_embedded(handmade).columns_at("a", "t", 10)
    assert {name: (column.name, column.type, column.initial) for name, column in then.items()} == {
        "id": ("id", "bigint", ""),
        "gone": ("gone", "bigint", ""),
        "filled": ("", "string", '"\\"x\\""'),
    }


def test_a_table_without_snapshots_has_no_main(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t", current_snapshot_id=-1)
    table = open_embedded(handmade).load_table("a", "t")
    assert table is not None
    assert (table.current_snapshot_id, table.branches, table.history()) == (None, {}, [])


def test_a_table_of_format_version_1_is_read(handmade: HandmadeWarehouse) -> None:
    path = handmade.table("a", "t")
    document = json.loads(path.read_text())
    document |= {
        "format-version": 1,
        "schema": document.pop("schemas")[0],
        "snapshots": [{"snapshot-id": 5, "timestamp-ms": 1}],
        "current-snapshot-id": 5,
    }
    del document["refs"]
    path.write_text(json.dumps(document))
    table = open_embedded(handmade).load_table("a", "t")
    assert table is not None
    assert table.branches == {"main": 5}
    assert open_embedded(handmade).columns_at("a", "t", 5) == {"id": CatalogColumn("id", "bigint")}
    assert table.snapshots == (Snapshot(5, None, 0, 1, "", {}),)


def test_a_view_is_read_whole(handmade: HandmadeWarehouse) -> None:
    handmade.view("a", "v", {"comment": "what it is", "p": "q", "spark.query-column-names": "id"})
    view = open_embedded(handmade).load_view("a", "v")
    assert view is not None
    assert view.sql == "SELECT 1 AS id"
    assert view.comment == "what it is"
    assert view.properties == {"comment": "what it is", "p": "q"}
    assert view.columns == (CatalogColumn("id", "int", "a number"),)


@pytest.mark.parametrize(
    ("dialects", "chosen"), [(["trino", "SPARK"], "SPARK"), (["trino", "presto"], "trino")]
)
def test_sparks_dialect_of_a_view_comes_first(
    handmade: HandmadeWarehouse, dialects: list[str], chosen: str
) -> None:
    texts = [{"type": "sql", "sql": f"{dialect} sql", "dialect": dialect} for dialect in dialects]
    versions = [{"version-id": 1, "schema-id": 0, "representations": texts}]
    handmade.view("a", "v", versions=versions)
    view = open_embedded(handmade).load_view("a", "v")
    assert view is not None
    assert view.sql == f"{chosen} sql"


def test_every_call_sees_the_catalog_as_it_is_now(handmade: HandmadeWarehouse) -> None:
    catalog = open_embedded(handmade)
    handmade.table("a", "t", properties={"n": "1"})
    first = catalog.load_table("a", "t")
    handmade.table("a", "t", properties={"n": "2"})
    second = catalog.load_table("a", "t")
    handmade.execute("UPDATE iceberg_tables SET table_name = 'renamed'")
    renamed = catalog.load_table("a", "renamed")
    assert first is not None
    assert second is not None
    assert renamed is not None
    assert (first.properties["n"], second.properties["n"], renamed.name) == ("1", "2", "renamed")
    assert catalog.load_table("a", "t") is None


def test_an_unchanged_view_is_not_read_again(handmade: HandmadeWarehouse) -> None:
    path = handmade.view("a", "v", {"p": "q"})
    catalog = open_embedded(handmade)
    before = catalog.list_relations("a")
    path.unlink()
    assert catalog.list_relations("a") == before


def test_a_locked_file_is_an_error_that_says_so(handmade: HandmadeWarehouse) -> None:
    with closing(sqlite3.connect(handmade.file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CatalogUnavailable, match="is locked") as caught:
            open_embedded(handmade).list_schemas()
    assert caught.value.where == str(handmade.file)
    assert open_embedded(handmade).list_schemas() == ["a"]


def test_a_damaged_file_is_an_error_that_says_what_to_do(handmade: HandmadeWarehouse) -> None:
    handmade.file.write_bytes(b"no database " * 1000)
    with pytest.raises(CatalogUnavailable, match="damaged") as caught:
        open_embedded(handmade).list_relations("a")
    assert caught.value.where == str(handmade.file)
    assert "register_table" in caught.value.fix


def leave_a_journal(handmade: HandmadeWarehouse) -> None:
    """What a process leaves that is killed in a commit."""
    with closing(sqlite3.connect(handmade.file, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN IMMEDIATE")
        for number in range(2000):
            handmade_row = ("lake", f"lost_{number}", "x" * 100)
            writer.execute(
                "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', ?)", handmade_row
            )
        journal = handmade.folder / "catalog.db-journal"
        spilled, kept = handmade.file.read_bytes(), journal.read_bytes()
        writer.execute("ROLLBACK")
    handmade.file.write_bytes(spilled)
    journal.write_bytes(kept)


def test_a_commit_that_was_killed_is_rolled_back(handmade: HandmadeWarehouse) -> None:
    """A journal remains next to the file: a reader without write access could never read again."""
    leave_a_journal(handmade)
    assert open_embedded(handmade).list_schemas() == ["a"]


def test_on_a_full_disk_a_killed_commit_is_rolled_back_later(handmade: HandmadeWarehouse) -> None:
    leave_a_journal(handmade)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(CatalogUnavailable, match="at the moment") as caught:
            open_embedded(handmade).list_schemas()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "free some disk space" in caught.value.fix
    assert open_embedded(handmade).list_schemas() == ["a"]


def test_metadata_that_another_user_may_read_is_not_reported_as_damaged(
    handmade: HandmadeWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = handmade.table("a", "t")

    def refuse(self: object, row: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(EmbeddedCatalog, "_bytes", refuse)
    with pytest.raises(CatalogUnavailable) as caught:
        open_embedded(handmade).load_table("a", "t")
    assert "Permission denied" in caught.value.why
    assert "right to read" in caught.value.fix
    assert "backup" not in caught.value.fix


def test_a_missing_metadata_file_names_the_table_and_the_file(handmade: HandmadeWarehouse) -> None:
    path = handmade.table("a", "t")
    path.unlink()
    with pytest.raises(CatalogUnavailable, match=r"lake\.a\.t") as caught:
        open_embedded(handmade).load_table("a", "t")
    assert caught.value.where == str(path)
    assert caught.value.why == "the file does not exist"


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f\x8bxx", b"[1]", b"{}", b"\xff\xfe\x00"])
def test_a_damaged_metadata_file_names_the_view_and_the_file(
    handmade: HandmadeWarehouse, content: bytes
) -> None:
    path = handmade.view("a", "v")
    path.write_bytes(content)
    with pytest.raises(CatalogUnavailable, match=r"lake\.a\.v") as caught:
        open_embedded(handmade).list_relations("a")
    assert caught.value.where == str(path)
    assert open_embedded(handmade).list_names("a") == [RelationEntry("a", "v", "view")]


def test_a_metadata_file_that_a_commit_took_away_is_looked_up_again(
    handmade: HandmadeWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbt_arctic.catalog import jdbc

    old = handmade.table("a", "t", properties={"n": "old"})
    read = jdbc.read_bytes

    def commit_first(location: str, properties: dict[str, str]) -> bytes:
        if location == str(old) and old.exists():
            handmade.table("a", "t", properties={"n": "new"})
            old.unlink()
        return read(location, properties)

    monkeypatch.setattr(jdbc, "read_bytes", commit_first)
    table = open_embedded(handmade).load_table("a", "t")
    assert table is not None
    assert table.properties["n"] == "new"


def test_a_view_dropped_while_it_is_listed_is_left_out(
    handmade: HandmadeWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbt_arctic.catalog import jdbc

    path = handmade.view("a", "v")

    def drop_first(location: str, properties: dict[str, str]) -> bytes:
        handmade.execute("DELETE FROM iceberg_tables")
        path.unlink()
        raise FileNotFoundError(location)

    monkeypatch.setattr(jdbc, "read_bytes", drop_first)
    assert open_embedded(handmade).list_relations("a") == []


def test_a_location_may_be_a_file_url(handmade: HandmadeWarehouse) -> None:
    path = handmade.table("a", "t")
    for location in (f"file:{path}", f"file://{path}"):
        handmade.register("a", "t", location, "TABLE")
        assert open_embedded(handmade).load_table("a", "t") is not None


def test_many_threads_read_at_once(handmade: HandmadeWarehouse) -> None:
    for number in range(20):
        handmade.view("a", f"v{number:02}", {"n": str(number)})
    catalog = open_embedded(handmade)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: catalog.list_relations("a"), range(40)))
    assert all(answer == answers[0] for answer in answers)
    assert [entry.properties["n"] for entry in answers[0]] == [str(number) for number in range(20)]


def test_files_of_what_does_not_exist_are_errors(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t")
    catalog = open_embedded(handmade)
    with pytest.raises(UnknownRelation, match="no table"):
        catalog.data_files("a", "nothing", 1, "id")
    with pytest.raises(UnknownRelation, match="no column"):
        catalog.data_files("a", "t", 1, "nothing")
    with pytest.raises(VersionUnavailable, match="Snapshot 1"):
        catalog.data_files("a", "t", 1, "ID")
    with pytest.raises(UnknownRelation):
        catalog.columns_at("a", "nothing", 1)
    with pytest.raises(VersionUnavailable):
        catalog.columns_at("a", "t", 1)


def test_neither_pyiceberg_nor_spark_is_loaded_to_list(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t")
    handmade.view("a", "v")
    script = (
        "import sys\n"
        "from dbt_arctic.catalog.open import open_catalog\n"
        f"catalog = open_catalog('lake', {str(handmade.folder)!r}, {{}}, print)\n"
        "catalog.list_relations('a'), catalog.load_table('a', 't'), catalog.load_view('a', 'v')\n"
        "heavy = {'pyiceberg', 'pyspark', 'dbt', 'pyarrow', 'pandas', 'sqlalchemy'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
