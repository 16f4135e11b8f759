"""The eight tables of TPC-H in a lake: those that change as keyed tables, the other two as plain ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.tpch.lake import Lake
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import find_keyed

KEYS: dict[str, tuple[str, ...]] = {
    "lineitem": ("l_orderkey", "l_linenumber"),
    "orders": ("o_orderkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
}
PLAIN = ("nation", "region")


def config(table: str, buckets: int) -> KeyedConfig:
    """Orders and their line items are bucketed alike, and so are parts and what suppliers ask for them."""
    return KeyedConfig(table, KEYS[table], buckets=buckets, bucket_by=KEYS[table][0])


def generate(folder: Path, scale: float) -> None:
    """Parquet files of a scale factor; those of an earlier call stay."""
    wanted = [table for table in (*KEYS, *PLAIN) if not (folder / f"{table}.parquet").exists()]
    if not wanted:
        return
    beside_python = Path(sys.executable).parent / "tpchgen-cli"
    generator = str(beside_python) if beside_python.exists() else shutil.which("tpchgen-cli")
    if generator is None:
        raise SystemExit("tpchgen-cli is not installed; run: pip install tpchgen-cli")
    folder.mkdir(parents=True, exist_ok=True)
    command = [generator, "parquet", "-s", str(scale), "--tables", ",".join(wanted), "--quiet"]
    subprocess.run([*command, "--output-dir", str(folder)], check=True)


def load(lake: Lake, folder: Path, buckets: int) -> None:
    """Build the tables that are not there. What was generated stays readable as ``source_<table>``."""
    for table in (*KEYS, *PLAIN):
        lake.run(
            f"CREATE TEMPORARY VIEW source_{table} USING parquet "
            f"OPTIONS (path '{folder / f'{table}.parquet'}')"
        )
    for table in KEYS:
        if find_keyed(lake.catalog, lake.name(table)) is not None:
            continue
        build_generation(
            lake.context,
            lake.name(table),
            config(table, buckets),
            f"SELECT * FROM source_{table}",
            {},
            owner="benchmark",
        )
    for table in PLAIN:
        lake.run(
            f"CREATE TABLE IF NOT EXISTS {lake.name(table).sql} USING iceberg "
            f"TBLPROPERTIES ('format-version'='3') AS SELECT * FROM source_{table}"
        )
