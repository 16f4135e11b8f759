"""A Spark on this machine starts no process for each file, and reads no class that an archive has."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine import class_archive
from dbt_arctic.engine.session import SessionConnection

Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def files(connection: SessionConnection) -> Any:
    """Hadoop's file system of this machine."""
    context = connection.process.context
    root = context._jvm.java.net.URI.create("file:///")
    return context._jvm.org.apache.hadoop.fs.FileSystem.get(root, context._jsc.hadoopConfiguration())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_have_the_permissions_that_hadoop_gives_without_a_process_for_each(
    files: Any, sql: Sql, schema: str, warehouse: Path
) -> None:
    assert files.getRaw().getClass().getName() == "dbtarctic.LocalFiles"
    sql(
        f"CREATE TABLE lake.{schema}.t USING iceberg PARTITIONED BY (bucket(4, id)) "
        "AS SELECT id FROM range(9)"
    )
    written = [path for path in (warehouse / schema).rglob("*") if path.is_file()]
    assert {path.suffix for path in written} >= {".parquet", ".avro", ".json"}
    assert {mode(path) for path in written} == {0o644}  # the umask of Hadoop is its own setting
    assert {mode(path.parent) for path in written} == {0o755}


@pytest.mark.parametrize("wanted", [0o600, 0o750, 0o1777], ids=oct)
def test_any_permission_can_be_set_the_sticky_bit_too(
    files: Any, connection: SessionConnection, tmp_path: Path, wanted: int
) -> None:
    jvm = connection.process.context._jvm
    path = jvm.org.apache.hadoop.fs.Path(tmp_path.as_uri())
    files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission(oct(wanted)[2:]))
    assert mode(tmp_path) == wanted


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what is mapped")
@pytest.mark.skipif(
    not class_archive.existing(), reason="`make test` makes an archive; pytest alone does not"
)
def test_spark_maps_the_class_archive(connection: SessionConnection) -> None:
    java = connection.process.context._gateway.proc.pid
    mapped = Path(f"/proc/{java}/maps").read_text(encoding="utf-8")
    assert any(os.fspath(archive) in mapped for archive in class_archive.existing())
