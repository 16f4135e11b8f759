"""The initial contents of the shop: the TPC-H tables, made by tpchgen-cli.

This module knows the generator's command line and nothing of changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from feed.tables import TABLES, source_schema


class GeneratorError(Exception):
    """tpchgen-cli is missing or failed."""


def generate(folder: Path, scale: float) -> dict[str, pa.Table]:
    """Generate the TPC-H tables of the feed at a scale factor, and read them.

    :param folder: where the generator's Parquet files go.
    :raises GeneratorError: with the command's own message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = ",".join(table.name for table in TABLES)
    command = [_generator(), "parquet", "--scale-factor", str(scale), "--tables", names]
    command += ["--output-dir", str(folder), "--overwrite", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GeneratorError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}")
    tables = {table.name: _read(folder / f"{table.name}.parquet") for table in TABLES}
    return tables | {"partsupp": _without_double_offers(tables["partsupp"])}


def _read(path: Path) -> pa.Table:
    table = pq.read_table(path)
    return table.cast(source_schema(table.schema))


def _without_double_offers(offers: pa.Table) -> pa.Table:
    """Below scale 0.01 TPC-H has so few suppliers that some offer one part twice: the first stays."""
    numbered = offers.append_column("place", pa.array(range(offers.num_rows)))
    first = numbered.group_by(["ps_partkey", "ps_suppkey"]).aggregate([("place", "min")])
    return offers.take(first["place_min"].sort())


def _generator() -> str:
    beside_python = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside_python) if beside_python.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise GeneratorError("tpchgen-cli is not installed; run: pip install tpchgen-cli")
    return found
