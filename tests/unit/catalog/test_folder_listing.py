"""A folder's files, as the standard library's walk finds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.catalog.folder_listing import list_files, store_folder
from dbt_arctic.errors import CatalogUnavailable


def test_all_files_below_a_folder_are_listed(tmp_path: Path) -> None:
    for name in ("a.json", "day=1/b c.json", "day=1/deep/er/%20.json", "empty"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name[:3])
    (tmp_path / "no_files").mkdir()
    os.utime(tmp_path / "a.json", ns=(0, 1_234_567_891_011))
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    expected = {
        ListedFile(str(path), path.stat().st_mtime_ns // 1_000_000, path.stat().st_size)
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert len(expected) == 4
    assert set(list_files(str(tmp_path), {})) == expected
    assert set(list_files(f"file://{tmp_path}", {})) == expected
    assert ListedFile(str(tmp_path / "a.json"), 1_234_567, 3) in expected


def test_a_missing_folder_has_no_files(tmp_path: Path) -> None:
    assert list_files(str(tmp_path / "nothing"), {}) == []


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogUnavailable, match="cannot be listed"):
        list_files(str(tmp_path / "file"), {})


STORES = [
    ("s3://shop/clicks/", "shop", "s3://shop/clicks"),
    ("s3a://shop/clicks", "shop", "s3a://shop/clicks"),
    ("s3://shop", "shop", "s3://shop"),
    ("s3://shop/a #1?", "shop", "s3://shop/a #1?"),
    ("gs://shop/clicks/new", "shop", "gs://shop/clicks/new"),
    ("abfss://raw@shop.dfs.core.windows.net/clicks", "raw", "abfss://raw@shop.dfs.core.windows.net/clicks"),
    ("abfs://raw@shop.dfs.core.windows.net/", "raw", "abfs://raw@shop.dfs.core.windows.net"),
    ("hdfs://name:9000/clicks", "", "hdfs://name:9000/clicks"),
    ("hdfs:///clicks", "", "hdfs:///clicks"),
]


@pytest.mark.parametrize(("folder", "bucket", "base"), STORES)
def test_files_of_a_store_have_the_location_that_spark_reads(
    folder: str, bucket: str, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is a local folder, in which each bucket is a folder, as pyarrow presents every store."""
    opened: dict[str, Any] = {}

    def fake(io: PyArrowFileIO, scheme: str, netloc: str | None = None) -> SubTreeFileSystem:
        opened.update(io.properties, scheme=scheme)
        return SubTreeFileSystem(str(tmp_path), LocalFileSystem())

    monkeypatch.setattr(PyArrowFileIO, "_initialize_fs", fake)
    key = store_folder(folder).key
    for name in ("a.json", "day=1/b %20+c.json"):
        file = tmp_path / bucket / key / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (tmp_path / "elsewhere.txt").write_text("of no bucket" if bucket else "")
    found = {file.path: file.size_bytes for file in list_files(folder, {"s3.endpoint": "e"})}
    found.pop("hdfs://name:9000/elsewhere.txt", None)
    assert found == {f"{base}/a.json": 6, f"{base}/day=1/b %20+c.json": 18}
    assert (opened["scheme"], opened["s3.endpoint"]) == (folder.partition(":")[0], "e")
    assert opened.get("adls.account-name") == ("shop" if folder.startswith("abfs") else None)


def test_a_bucket_that_does_not_exist_is_not_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        PyArrowFileIO,
        "_initialize_fs",
        lambda io, scheme, netloc=None: SubTreeFileSystem(str(tmp_path), LocalFileSystem()),
    )
    (tmp_path / "shop").mkdir()
    assert list_files("s3://shop/clicks", {}) == []
    with pytest.raises(CatalogUnavailable, match="the bucket shopp does not exist") as error:
        list_files("s3://shopp/clicks", {})
    assert "access_key_id" in error.value.fix
    assert "AWS_ACCESS_KEY_ID" in error.value.fix


def test_a_store_that_is_not_known_is_an_error() -> None:
    with pytest.raises(CatalogUnavailable, match="ftp://host/clicks cannot be listed"):
        list_files("ftp://host/clicks", {})


def test_hdfs_needs_the_libraries_of_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(io: PyArrowFileIO, scheme: str, netloc: str | None = None) -> None:
        raise OSError("Unable to load libjvm\n  dlopen(/usr/lib/jvm/libjvm.so) failed\n  dlopen(..) failed")

    monkeypatch.setattr(PyArrowFileIO, "_initialize_fs", missing)
    with pytest.raises(CatalogUnavailable) as error:
        list_files("hdfs://namenode/clicks", {})
    assert error.value.why == "Unable to load libjvm"
    assert "hadoop classpath --glob" in error.value.fix
