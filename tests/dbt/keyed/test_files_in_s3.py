"""Files in S3 as a source: pyarrow lists and Hadoop's client reads them, with the settings of one profile."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyarrow.fs import FileSelector, FileType, S3FileSystem

from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.settings import session_conf
from tests.matrix.cells import Cell, running
from tests.matrix.components import NotRun, moto

from .conftest import Shop, Terminal
from .kafka_topics import add_reader, tools
from .test_file_sources import declare, ids, model, row
from .test_hostile import CANARY, places, telling
from .test_rejected_rows import rejected

COLUMNS = {"id": "bigint", "city": "string", "amount": "decimal(10,2)", "day": "date"}
ODD = "day=2026-01-01/a b%20+c[d]{e,f}*?#.json"
"""A key with signs that URLs, globs and Hadoop treat in a special way."""


@dataclasses.dataclass(frozen=True)
class Store:
    """An S3 of the tests with the bucket ``lake``.

    :param settings: ``s3`` of a catalog in a profile.
    """

    settings: dict[str, Any]
    files: S3FileSystem

    def put(self, key: str, *rows: dict[str, Any] | str) -> str:
        """Write an object with a row in each line; returns its location."""
        text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows)
        content = gzip.compress(text.encode()) if key.endswith(".gz") else text.encode()
        with self.files.open_output_stream(f"lake/{key}", compression=None) as stream:
            stream.write(content)
        return f"s3://lake/{key}"

    def modified(self, folder: str) -> dict[str, int]:
        """When each object was written, in seconds."""
        found = self.files.get_file_info(FileSelector(f"lake/{folder}", recursive=True))
        return {
            f"s3://lake/{one.path[5:]}": int(one.mtime_ns // 10**9)
            for one in found
            if one.type == FileType.File
        }


@pytest.fixture(scope="module")
def running_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, moto(Path(folder), tools()) as server:
        keys = {"access_key_id": "test", "secret_access_key": CANARY}
        settings = {"endpoint": server.address, "region": "us-east-1", "path_style": True, **keys}
        files = S3FileSystem(
            access_key="test", secret_key=CANARY, region="us-east-1", endpoint_override=server.address
        )
        yield Store(settings, files)


@pytest.fixture
def store(
    running_store: Store,
    shop: Shop,
    shop_connection: SessionConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Store]:
    """The shop's profile has the store, and the Spark of all tests what it would have been started with."""
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    profile["shop"]["outputs"]["dev"]["catalog"] = {"type": "sqlite", "s3": running_store.settings}
    shop.file("profiles.yml", yaml.safe_dump(profile))
    add_reader(shop_connection, tmp_path, "s3")
    properties = {
        "s3.endpoint": running_store.settings["endpoint"],
        "client.region": "us-east-1",
        "s3.path-style-access": "true",
        "s3.access-key-id": "test",
        "s3.secret-access-key": CANARY,
    }
    settings = dataclasses.replace(
        shop_connection.settings, catalog_properties=properties, connectors=("s3",)
    )
    process = shop_connection.process
    hadoop = process.context._jsc.hadoopConfiguration()
    added = {
        key: value for key, value in session_conf(settings).items() if key.startswith("spark.hadoop.fs.s3")
    }
    for key, value in added.items():
        monkeypatch.setitem(process.conf, key, value)
        hadoop.set(key.removeprefix("spark.hadoop."), value)
    yield running_store
    for key in added:
        hadoop.unset(key.removeprefix("spark.hadoop."))


def test_each_object_is_read_once_and_a_changed_one_again(
    shop: Shop, store: Store, type_in: Terminal
) -> None:
    settings = {"from": "files", "path": "s3://lake/clicks/", "format": "json", "columns": COLUMNS}
    declare(
        shop,
        kept={**settings, "changed_files": "reread", "on_bad_row": "quarantine", "required": ["id"]},
        strict={**settings, "pattern": "*.json"},
    )
    shop.model(
        "kept",
        "{{ config(materialized='incremental', unique_key='id') }}\n"
        "select id, city, day, _source_file from {{ incremental_pull(source('landing', 'kept')) }}",
    )
    model(shop, "strict", source="strict")
    odd = store.put(f"clicks/{ODD}", row(1), row(2))
    packed = store.put("clicks/day=2026-01-02/b.json.gz", row(3))
    store.put("clicks/day=2026-01-02/_writing.json", row(98))
    store.put("clicks/_temporary/day=2026-01-02/c.json", row(99))
    store.files.create_dir("lake/clicks/day=2026-01-03")
    shop.dbt("run")
    columns = "id, CAST(day AS STRING), _source_file"
    expected = [(1, "2026-01-01", odd), (2, "2026-01-01", odd), (3, "2026-01-02", packed)]
    assert sorted(map(tuple, shop.sql(f"SELECT {columns} FROM {{s}}.kept"))) == expected
    assert ids(shop, "strict") == [1, 2]

    shop.dbt("run")  # nothing is new: nothing is written, and no job runs
    assert shop.script.jobs == 0

    # A new object with a bad row, and another version of a known one.
    late = store.put("clicks/day=2025-12-31/late.json.gz", row(4), '{"id": 5, "amount": "much"}')
    store.put(f"clicks/{ODD}", row(1, "Rome"), row(6))
    plan = {one["model"]: one for one in type_in.json("ingest", "plan")}
    assert (plan["kept"]["files"], plan["kept"]["changed"]) == (2, 1)
    assert f"changed after strict had read it: {odd}" in plan["strict"]["problem"]
    shop.dbt("run", "--select", "kept")
    assert ids(shop, "kept") == [1, 2, 3, 4, 6]
    assert shop.sql("SELECT city FROM {s}.kept WHERE id = 1") == [("Rome",)]
    ((location, position, *_),) = rejected(shop, "kept")
    assert (location, position) == (late, 2)
    ((stored,),) = shop.sql("SELECT unix_seconds(modified) FROM {s}.kept__rejected")
    assert stored == store.modified("clicks")[late]

    declare(
        shop,
        kept={**settings, "columns": {**COLUMNS, "amount": "string"}, "on_bad_row": "quarantine"},
        strict={**settings, "pattern": "*.gz"},
    )
    type_in("ingest", "replay", "--select", "kept")
    assert ids(shop, "kept") == [1, 2, 3, 4, 5, 6]
    assert rejected(shop, "kept") == []

    told = shop.fail("run", "--select", "strict")
    assert f"AR-311 row 2 of {late} does not fit" in told
    assert telling(places(shop)) == []


def test_a_store_that_cannot_be_read_is_an_error_that_names_the_settings(
    shop: Shop, store: Store, type_in: Terminal
) -> None:
    there = {"from": "files", "format": "json", "columns": COLUMNS}
    declare(shop, clicks={**there, "path": "s3://laek/clicks"})
    model(shop, "clicked")
    told = shop.fail("run")
    assert "AR-104 the folder s3://laek/clicks cannot be listed" in told
    assert "the bucket laek does not exist" in told
    assert "access_key_id" in told
    refused = type_in("ingest", "init", "s3://lake/clicks", code=2)
    assert "aws s3 cp" in refused


@pytest.mark.long  # the short form reads with the same settings, in a Spark that was started without them
def test_a_spark_that_starts_for_the_project_reads_with_credentials_of_the_environment(
    running_store: Store, tmp_path: Path
) -> None:
    """From an empty cache of jars, so that it downloads those that are needed and no others."""
    running_store.put("visits/a.json", row(1))
    address = {name: running_store.settings[name] for name in ("endpoint", "path_style")}
    target = {
        **{"type": "arctic", "schema": "dev", "warehouse": str(tmp_path / "lake"), "master": "local[1]"},
        **{"driver_memory": "1g", "catalog": {"type": "sqlite", "s3": address}},
        "spark_conf": {"spark.jars.ivy": str(tmp_path / "ivy")},
    }
    write_project(tmp_path, target, "s3a://lake/visits")
    shown = ("show", "--quiet", "--output", "json", "--inline", "select * from {{ ref('visits') }}")
    for _ in range(2):  # with jars that Ivy adds, and with jars on the class path
        run_program(tmp_path, "dbt", "run", "--full-refresh")
        found = json.loads(run_program(tmp_path, "dbt", *shown))["show"]
        assert found == [{"id": 1, "_source_file": "s3a://lake/visits/a.json"}]
    sizes = [file.stat().st_size for file in (tmp_path / "ivy/jars").iterdir()]
    assert sum(sizes) < 200_000_000


@pytest.mark.long  # a Spark in another process reads with the same jars and settings
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["connect", "standalone"])
def test_the_projects_server_and_a_cluster_read_the_same(engine: str) -> None:
    """More objects than Spark asks the store for on the driver, so that executors ask as well."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL's user passes through
        try:
            target, _ = stack.enter_context(running(Cell("postgres", engine, "s3"), folder, tools()))
        except NotRun as error:
            pytest.skip(f"{engine} was not run: {error}")
        files = S3FileSystem(
            access_key="test",
            secret_key="test",
            region="us-east-1",
            endpoint_override=target["catalog"]["s3"]["endpoint"],
        )
        written = Store(target["catalog"]["s3"], files)
        expected = {at: written.put(f"visits/{at}.json", row(at)) for at in range(40)}
        project = folder / "shop"
        project.mkdir()
        write_project(project, {**target, "schema": "dev"}, "s3://lake/visits")
        if engine == "connect":
            run_program(project, "dbt-arctic", "server", "start")
            stack.callback(run_program, project, "dbt-arctic", "server", "stop")
        run_program(project, "dbt", "run")
        query = "select id, _source_file from lake.dev.visits"
        rows = json.loads(run_program(project, "dbt-arctic", "sql", query, "--json"))
        assert {one["id"]: one["_source_file"] for one in rows} == expected


def write_project(folder: Path, target: dict[str, Any], path: str) -> None:
    """A project with the model ``visits``, which reads the files of a folder."""
    (folder / "models").mkdir()
    meta = {"from": "files", "path": path, "format": "json", "columns": COLUMNS}
    tables = [{"name": "visits", "config": {"meta": {"arctic": meta}}}]
    for name, text in {
        "dbt_project.yml": {"name": "shop", "version": "1.0", "profile": "shop"},
        "profiles.yml": {"shop": {"target": "dev", "outputs": {"dev": target}}},
        "models/landing.yml": {"version": 2, "sources": [{"name": "landing", "tables": tables}]},
    }.items():
        (folder / name).write_text(yaml.safe_dump(text), encoding="utf-8")
    (folder / "models/visits.sql").write_text(
        "{{ config(materialized='incremental') }}\n"
        "select id, _source_file from {{ incremental_pull(source('landing', 'visits')) }}",
        encoding="utf-8",
    )


def run_program(folder: Path, program: str, *arguments: str) -> str:
    """Run a program of the environment in a project, with credentials for S3 in its environment."""
    login = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    own = {"DBT_PROFILES_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    ran = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=folder,
        env={**os.environ, **login, **own},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
