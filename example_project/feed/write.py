"""Writes the shop's change feed as Parquet files: the initial load, then one file a table and round.

Files lie in ``<folder>/<table>/round_<number>.parquet``. They are the truth that everything in the
warehouse is compared with.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from feed.changes import Round, make_round
from feed.shop import Row, Shop
from feed.tables import CHANGE_COLUMNS, TABLES, feed_schema
from feed.tpch import generate

OPENING = datetime(2026, 1, 1, tzinfo=timezone.utc)
"""When the initial load was extracted; round n begins n days later."""


def feed_file(folder: Path, table: str, number: int) -> Path:
    return folder / table / f"round_{number:03d}.parquet"


def rounds_written(folder: Path) -> int:
    """How many rounds of changes a feed has after its load."""
    return len(list((folder / TABLES[0].name).glob("round_*.parquet"))) - 1


def write_feed(folder: Path, *, scale: float, rounds: int, seed: int = 7, fraction: float = 0.01) -> None:
    """Generate the shop at a TPC-H scale factor, and ``rounds`` rounds of changes after its load."""
    tables = generate(folder / "generated", scale)
    sequence = dict.fromkeys(tables, 0)
    for name, loaded in tables.items():
        _write(feed_file(folder, name, 0), _load(loaded))
        sequence[name] = loaded.num_rows
    shop = Shop(tables)
    for number in range(1, rounds + 1):
        made = make_round(shop, number, seed=seed, fraction=fraction)
        for table in TABLES:
            changes = _changes(made, table.name, number, sequence[table.name], tables[table.name].schema)
            sequence[table.name] += changes.num_rows
            _write(feed_file(folder, table.name, number), changes)


def _load(loaded: pa.Table) -> pa.Table:
    count = loaded.num_rows
    columns = [
        pa.repeat(pa.scalar("I"), count),
        pa.repeat(pa.scalar(0, pa.int32()), count),
        pa.array(range(1, count + 1), pa.int64()),
        pa.repeat(pa.scalar(OPENING, pa.timestamp("us", tz="UTC")), count),
    ]
    for field, column in zip(CHANGE_COLUMNS, columns, strict=True):
        loaded = loaded.append_column(field, column)
    return loaded


def _changes(made: Round, table: str, number: int, sequence: int, source: pa.Schema) -> pa.Table:
    schema = feed_schema(source)
    rows: list[Row] = []
    for place, (op, row) in enumerate(made.changes.get(table, []), start=1):
        happened = OPENING + timedelta(days=number, milliseconds=place)
        change = {"change_op": op, "change_round": number, "change_seq": sequence + place}
        rows.append({**row, **change, "changed_at": happened})
    return pa.Table.from_pylist(rows, schema)


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
