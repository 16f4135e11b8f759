"""How long an operator waits where there are many tables: ``dbt-arctic status`` and ``report`` of 500 keyed
tables. The catalog is generated without Spark: metadata as Iceberg writes it, and no rows.

    python -m benchmarks.many_tables --tables 500 --rounds 100 --dir /path/with/space

With ``--postgres postgresql://user:password@host/database``, an empty database, the catalog is there.
Each table has 20 columns and 8 buckets, was written to hourly, is merged every tenth time, trimmed with the
next write, and reads from the table before it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from pyiceberg.io import load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from dbt_arctic.keyed.layout import DEFAULT_BUCKETS, Layout
from dbt_arctic.keyed.log import PROPERTY_MERGED, PROPERTY_RUN, PROPERTY_TXN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.replay import PROPERTY_BLIND
from dbt_arctic.keyed.table import (
    MARKER_TXN,
    PROPERTY_CREATED,
    PROPERTY_ID,
    PROPERTY_OF,
    SYSTEM_COLUMNS,
    Column,
    Generation,
    KeyedTable,
)
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, Version, encode_consumed

HOUR_MS = 3600 * 1000
CLI = "from dbt_arctic.cli.main import main; main()"
MERGED_EVERY = 10
ROWS, SIZE = 100_000, 200 * 1024 * 1024
CHANGED, CHANGED_SIZE = 500, 1024 * 1024
BUCKETS = DEFAULT_BUCKETS
_ROWS_OF_CATALOG = """
CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,
  previous_metadata_location, iceberg_type, PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (catalog_name, namespace, property_key, property_value,
  PRIMARY KEY (catalog_name, namespace, property_key));
INSERT INTO iceberg_namespace_properties VALUES ('lake', 'bench', 'exists', 'true');
"""


def keyed_table(number: int) -> KeyedTable:
    return KeyedTable(
        name=Name("lake", "bench", f"orders_{number:04}"),
        generation=Generation(1, f"base-{number}", f"change-{number}"),
        key=("id",),
        layout=Layout(BUCKETS, "id", (), ("id",)),
        columns=(Column("id", "bigint"), *(Column(f"column_{at:02}", "string") for at in range(1, 20))),
    )


class Side:
    """One side table's metadata document, commit by commit, with the totals that Iceberg writes."""

    def __init__(self, folder: Path, table: KeyedTable, name: Name, table_id: str) -> None:
        self.location = folder / "bench" / name.identifier
        self.snapshots: list[dict[str, Any]] = []
        self.totals = {"total-records": 0, "total-data-files": 0, "total-files-size": 0}
        types = [(column, LongType() if column == "id" else StringType()) for column in table.column_names]
        if name == table.change:
            types += [
                (column, StringType() if column == "_action" else LongType()) for column in SYSTEM_COLUMNS
            ]
        self.schema = Schema(
            *(NestedField(at, column, kind, required=False) for at, (column, kind) in enumerate(types, 1))
        )
        self.properties = {
            PROPERTY_OF: table.name.dotted,
            PROPERTY_ID: table_id,
            PROPERTY_CREATED: "0",
            "write.metadata.metrics.default": "full",
            **table.side_properties(),
        }

    def commit(
        self, at_ms: int, operation: str, rows: int, files: int, size: int, said: dict[str, str]
    ) -> int:
        changed = {"total-records": rows, "total-data-files": files, "total-files-size": size}
        self.totals = {name: value + changed[name] for name, value in self.totals.items()}
        number = len(self.snapshots) + 1
        snapshot = {
            "sequence-number": number,
            "snapshot-id": self._id(number),
            "timestamp-ms": at_ms,
            "summary": {
                "operation": operation,
                "spark.app.id": "local-1800000000000",
                "added-data-files": str(max(0, files)),
                "added-records": str(max(0, rows)),
                "added-files-size": str(max(0, size)),
                "changed-partition-count": str(BUCKETS),
                **{name: str(value) for name, value in self.totals.items()},
                "total-delete-files": "0",
                "total-position-deletes": "0",
                "total-equality-deletes": "0",
                "engine-version": "4.1.4",
                "app-id": "local-1800000000000",
                "engine-name": "spark",
                "iceberg-version": "Apache Iceberg 1.12.0 (commit 0123456789abcdef0123456789abcdef01234567)",
                **said,
            },
            "manifest-list": str(self.location / "metadata" / f"snap-{number}.avro"),
            "schema-id": 0,
        }
        if number > 1:
            snapshot["parent-snapshot-id"] = self._id(number - 1)
        self.snapshots.append(snapshot)
        return self._id(number)

    @staticmethod
    def _id(number: int) -> int:
        return 4_000_000_000_000_000_000 + number

    def write(self, live: list[int]) -> Path:
        """:param live: the transactions whose rows the newest snapshot has, a file in each bucket."""
        folder = self.location / "metadata"
        folder.mkdir(parents=True)
        self._write_manifests(folder, live)
        newest = self.snapshots[-1]
        bucket = {"name": "id_bucket", "transform": f"bucket[{BUCKETS}]", "source-id": 1, "field-id": 1000}
        sorting = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
        document = {
            "format-version": 3,
            "table-uuid": "4020efb7-63e6-41e4-933e-7b252d8c6de4",
            "location": str(self.location),
            "last-sequence-number": len(self.snapshots),
            "last-updated-ms": newest["timestamp-ms"],
            "current-schema-id": 0,
            "schemas": [json.loads(self.schema.model_dump_json())],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": [bucket]}],
            "default-sort-order-id": 1,
            "sort-orders": [{"order-id": 1, "fields": [sorting]}],
            "properties": self.properties,
            "current-snapshot-id": newest["snapshot-id"],
            "refs": {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}},
            "snapshots": self.snapshots,
            "snapshot-log": [
                {"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]}
                for one in self.snapshots
            ],
        }
        path = folder / f"{len(self.snapshots):05}-x.metadata.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def _write_manifests(self, folder: Path, live: list[int]) -> None:
        newest = self.snapshots[-1]
        io, snapshot_id, number = load_file_io({}, str(folder)), newest["snapshot-id"], len(self.snapshots)
        manifests: list[ManifestFile] = []
        for txn in live:
            path = str(folder / f"{txn}.avro")
            with write_manifest(
                2, self._spec, self.schema, io.new_output(path), snapshot_id, "deflate"
            ) as writer:
                for bucket in range(BUCKETS):
                    writer.add_entry(self._entry(txn, bucket, snapshot_id))
            manifests.append(writer.to_manifest_file())
        listed = io.new_output(newest["manifest-list"])
        parent = newest.get("parent-snapshot-id")
        with write_manifest_list(2, listed, snapshot_id, parent, number, "deflate") as lists:
            lists.add_manifests(manifests)

    @property
    def _spec(self) -> PartitionSpec:
        return PartitionSpec(PartitionField(1, 1000, BucketTransform(BUCKETS), "id_bucket"), spec_id=0)

    def _entry(self, txn: int, bucket: int, snapshot_id: int) -> ManifestEntry:
        ids = [field.field_id for field in self.schema.fields]
        bound = dict.fromkeys(ids, b"0" * 8) | {ids[-1]: txn.to_bytes(8, "little", signed=True)}
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=str(self.location / "data" / f"id_bucket={bucket}" / f"{txn}.parquet"),
            file_format=FileFormat.PARQUET,
            partition=Record(bucket),
            record_count=CHANGED // BUCKETS,
            file_size_in_bytes=CHANGED_SIZE // BUCKETS,
            column_sizes=dict.fromkeys(ids, 1000),
            value_counts=dict.fromkeys(ids, CHANGED // BUCKETS),
            null_value_counts=dict.fromkeys(ids, 0),
            lower_bounds=bound,
            upper_bounds=bound,
        )
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file
        )


def write_table(folder: Path, number: int, rounds: int, now_ms: int) -> list[tuple[str, str, str]]:
    """:returns: the catalog's rows: name, metadata file and kind."""
    table = keyed_table(number)
    base = Side(folder, table, table.base, table.generation.base_id)
    change = Side(folder, table, table.change, table.generation.change_id)
    began = now_ms - (rounds + 1) * HOUR_MS - number * 1000
    base_at = base.commit(began, "append", ROWS, BUCKETS, SIZE, {PROPERTY_RUN: "build"})
    change.commit(began, "append", BUCKETS, BUCKETS, 1000 * BUCKETS, {PROPERTY_RUN: "build"})
    pending: list[int] = []
    merged: list[int] = []
    for at in range(1, rounds + 1):
        at_ms = began + at * HOUR_MS
        txn = (at_ms << 20) | number
        # Its upstream's commits have the same numbers; it is a round behind.
        said = {PROPERTY_TXN: str(txn), PROPERTY_RUN: f"run-{at}:orders_{number}", PROPERTY_BLIND: "1"}
        if number:
            upstream = keyed_table(number - 1)
            seen = Version(1, change.snapshots[-1]["snapshot-id"], base_at)
            said[PROPERTY_CONSUMED] = encode_consumed(
                {upstream.name.dotted: Consumed(upstream.generation.change_id, seen.token)}
            )
        change.commit(at_ms, "append", CHANGED, BUCKETS, CHANGED_SIZE, said)
        pending.append(txn)
        if merged:
            gone = len(merged)
            change.commit(at_ms + 1000, "delete", -CHANGED * gone, -BUCKETS * gone, -CHANGED_SIZE * gone, {})
            merged = []
        if (at + number) % MERGED_EVERY == 0:
            listed = {PROPERTY_MERGED: json.dumps(pending, separators=(",", ":"))}
            base_at = base.commit(at_ms + 2000, "overwrite", CHANGED, 0, CHANGED_SIZE, listed)
            merged, pending = pending, []
    sides = [(table.base, base.write([1])), (table.change, change.write([MARKER_TXN, *merged, *pending]))]
    view = {
        "format-version": 1,
        "location": str(folder / "bench" / table.name.identifier),
        "properties": table.to_properties(),
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {
                        "id": at,
                        "name": column.name,
                        "required": False,
                        "type": "long" if column.type == "bigint" else "string",
                    }
                    for at, column in enumerate(table.columns)
                ],
            }
        ],
        "current-version-id": 1,
        "versions": [
            {
                "version-id": 1,
                "schema-id": 0,
                "representations": [{"type": "sql", "sql": merge_on_read(table), "dialect": "spark"}],
            }
        ],
    }
    path = folder / "bench" / f"{table.name.identifier}.gz.metadata.json"
    path.write_bytes(gzip.compress(json.dumps(view).encode()))
    return [
        (table.name.identifier, str(path), "VIEW"),
        *((name.identifier, str(at), "TABLE") for name, at in sides),
    ]


def write_catalog(folder: Path, tables: int, rounds: int, now_ms: int) -> None:
    rows = [row for number in range(tables) for row in write_table(folder, number, rounds, now_ms)]
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        connection.executescript(_ROWS_OF_CATALOG)
        connection.executemany("INSERT INTO iceberg_tables VALUES ('lake', 'bench', ?, ?, NULL, ?)", rows)


def copy_catalog(folder: Path, uri: str) -> None:
    """Write the rows of the catalog to a database of PostgreSQL."""
    import psycopg

    tables = ("iceberg_tables", "iceberg_namespace_properties")
    with (
        closing(sqlite3.connect(folder / "catalog.db")) as source,
        psycopg.connect(uri) as target,
        target.cursor() as cursor,
    ):
        for table in tables:
            rows = source.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in rows.description]
            cursor.execute(f"CREATE TABLE {table} ({', '.join(f'{name} VARCHAR(1000)' for name in names)})")
            cursor.executemany(
                f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(names))})", rows.fetchall()
            )


def write_project(folder: Path, postgres: str | None) -> None:
    (folder / "dbt_project.yml").write_text("name: bench\nversion: '1.0'\nprofile: bench\n", encoding="utf-8")
    target: dict[str, Any] = {"type": "arctic", "method": "session", "schema": "bench"}
    if postgres is None:
        target["warehouse"] = str(folder)
    else:
        target["catalog"] = {"type": "postgres", "uri": postgres, "warehouse": str(folder)}
    profile = {"bench": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "profiles.yml").write_text(json.dumps(profile), encoding="utf-8")


def seconds(folder: Path, *command: str) -> tuple[float, float]:
    """Of a process of its own, as a person would start it; and those of a processor, which hold on a machine
    that has other things to do."""
    arguments = [sys.executable, "-c", CLI, *command, "--project-dir", str(folder)]
    began, before = time.perf_counter(), os.times()
    subprocess.run([*arguments, "--profiles-dir", str(folder)], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    worked = after.children_user - before.children_user + after.children_system - before.children_system
    return time.perf_counter() - began, worked


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--dir", type=Path, help="an empty folder with enough space (default: a temporary one)"
    )
    parser.add_argument("--postgres", help="the address of an empty database for the catalog")
    arguments = parser.parse_args()
    folder = Path(arguments.dir or tempfile.mkdtemp(prefix="dbt-arctic-bench-"))
    commands = {"status": ["status"], "report": ["report", "--output", str(folder / "report.html")]}
    try:
        if not (folder / "catalog.db").exists():
            print("writing the catalog ...", file=sys.stderr)
            write_catalog(folder, arguments.tables, arguments.rounds, int(time.time() * 1000))
            if arguments.postgres is not None:
                copy_catalog(folder, arguments.postgres)
            write_project(folder, arguments.postgres)
        taken = {
            what: [seconds(folder, *command) for _ in range(arguments.repeat)]
            for what, command in commands.items()
        }
    finally:
        if arguments.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    for what, each in taken.items():
        passed, worked = (statistics.median(column) for column in zip(*each, strict=True))
        print(
            f"{what} of {arguments.tables} tables: {passed:.2f} s, {worked:.2f} s of a processor",
            file=sys.stderr,
        )
    print(json.dumps({"tables": arguments.tables, "rounds": arguments.rounds, "seconds": taken}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
