"""Lands rounds of the change feed in the lake's raw tables, as an ingestion tool would.

It writes plain Iceberg tables with pyiceberg, without dbt and Spark: one append per table and round. The
snapshot contains the number of the round, so landing a round twice has no effect.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from feed.tables import TABLES, FeedTable
from feed.write import feed_file

RAW_SCHEMA = "raw"
ROUND_PROPERTY = "feed.round"


def open_catalog(warehouse: Path) -> SqlCatalog:
    """The catalog that dbt's profile uses, as pyiceberg opens it."""
    warehouse.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("lake", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))


def land_round(folder: Path, warehouse: Path, number: int) -> int:
    """Append one round of every table's feed to the lake; returns how many rows were landed."""
    catalog = open_catalog(warehouse)
    catalog.create_namespace_if_not_exists(RAW_SCHEMA)
    landed = 0
    for source in TABLES:
        rows = pq.read_table(feed_file(folder, source.name, number))
        now = pa.scalar(datetime.now(timezone.utc), pa.timestamp("us", tz="UTC"))
        rows = rows.append_column("landed_at", pa.repeat(now, rows.num_rows))
        target = _raw_table(catalog, _raw_name(source), rows.schema)
        if str(number) not in _landed_rounds(target) and rows.num_rows:
            target.append(rows, snapshot_properties={ROUND_PROPERTY: str(number)})
            landed += rows.num_rows
    return landed


def last_landed_round(warehouse: Path) -> int:
    """The newest round in the lake; -1 before the initial load."""
    catalog = open_catalog(warehouse)
    try:
        landed = _landed_rounds(catalog.load_table(_raw_name(TABLES[-1])))
    except NoSuchTableError:
        return -1
    return max((int(number) for number in landed), default=-1)


def _raw_name(source: FeedTable) -> str:
    return f"{RAW_SCHEMA}.{source.name}_feed"


def _raw_table(catalog: SqlCatalog, name: str, schema: pa.Schema) -> Table:
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        created = catalog.create_table(name, schema)
        with created.update_spec() as spec:
            spec.add_identity("change_round")
        return catalog.load_table(name)


def _landed_rounds(table: Table) -> set[str]:
    summaries = (snapshot.summary for snapshot in table.snapshots())
    rounds = (summary.get(ROUND_PROPERTY) for summary in summaries if summary is not None)
    return {str(number) for number in rounds if number is not None}
