"""``make bench-cdc``: a real PostgreSQL on loopback, whose tables are followed with ``from: postgres``.

Three measurements in one warm Spark:

* the initial load of one table, against ``spark.read.jdbc`` with as many readers into a plain Iceberg table;
* changes of many tables: how many a run takes and merges in a second;
* a run without changes.

After each run, the tables must have the rows of the database.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.dbt_project import run, write_project
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from tests.dbt.keyed.database_servers import Server, running_server
from tests.matrix.components import PASSWORD

READERS = 4
SLOT = "bench"
COLUMNS = "id bigint PRIMARY KEY, name text, city text, amount numeric(12,2), at timestamptz, note text"
ROW = (
    "g, 'name ' || g, 'city ' || g % 1000, (g % 100000) / 100.0, "
    "'2026-01-01'::timestamptz + g * interval '1 second', repeat('x', 60)"
)
MODEL = """\
{{{{ config(materialized='incremental', unique_key='id', sequence_by='_source_sequence') }}}}
select * from {{{{ incremental_pull(source('bench', '{name}')) }}}}"""
_CHANGED_AT_ONCE = 100


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cdc")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table that is loaded")
    parser.add_argument("--tables", type=int, default=60, help="that change, with 20,000 rows each")
    parser.add_argument("--changes", type=int, default=200_000, help="of all tables, in each round")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-cdc-")))
        server = opened.enter_context(running_server("postgresql"))
        settings = SparkSettings(
            catalog="lake",
            warehouse=str(folder / "lake"),
            master="local[2]",
            driver_memory="3g",
            connectors=("postgresql",),
        )
        connection = SessionEngine(settings).connect()
        opened.callback(connection.close)
        names = [f"t{number}" for number in range(given.tables)]
        create(server, given.rows, names)
        write_source(folder, server, ["big", *names])
        run(folder, "--select", names[0])  # Spark and dbt are warm then
        found = {
            "initial load": initial_load(folder, connection, server, given.rows),
            "changes": changes(folder, connection, server, names, given.changes, given.rounds),
            "nothing new": nothing_new(folder, len(names)),
        }
    for line in (*found["initial load"]["lines"], *found["changes"]["lines"], *found["nothing new"]["lines"]):
        print(line)
    print(json.dumps({name: one["values"] for name, one in found.items()}))


def create(server: Server, rows: int, names: list[str]) -> None:
    """Create the tables, and publish them."""
    server.sql(
        f"CREATE TABLE big ({COLUMNS})", f"INSERT INTO big SELECT {ROW} FROM generate_series(1, {rows}) g"
    )
    for name in names:
        server.sql(
            f"CREATE TABLE {name} ({COLUMNS})",
            f"INSERT INTO {name} SELECT {ROW} FROM generate_series(1, 20000) g",
        )
    server.sql(
        "VACUUM ANALYZE",
        f"CREATE PUBLICATION {SLOT} FOR ALL TABLES",
        f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')",
    )


def write_source(folder: Path, server: Server, names: list[str]) -> None:
    """A project with one model for each table."""
    arctic = {"from": "postgres", "url": server.url, "slot": SLOT, "partitions": READERS}
    tables = [{"name": name} for name in names]
    source = {"name": "bench", "config": {"meta": {"arctic": arctic}}, "tables": tables}
    models = {name: MODEL.format(name=name) for name in names}
    write_project(folder, source, models, {"jdbc": {"bench": {"password": PASSWORD}}})


def initial_load(folder: Path, connection: SessionConnection, server: Server, rows: int) -> dict[str, Any]:
    """The first run of the model of the large table, and Spark's reader alone, twice each."""
    url = server.url.replace("dbt@", "")
    session = connection.session
    bounds = {"column": "id", "lowerBound": 1, "upperBound": rows, "numPartitions": READERS}
    login = {"user": "dbt", "password": PASSWORD, "driver": "org.postgresql.Driver", "fetchsize": "10000"}

    def plain() -> None:
        frame = session.read.jdbc(f"jdbc:{url}", "big", properties=login, **bounds)
        frame.writeTo("lake.bench.plain").using("iceberg").createOrReplace()

    loads = [timed(lambda: run(folder, "--select", "big", "--full-refresh")) for _ in range(2)]
    plains = [timed(plain) for _ in range(2)]
    require_equal(connection, server, "big")
    ours, theirs = min(loads), min(plains)
    return {
        "lines": [
            f"initial load of {rows:,} rows: {ours:.1f} s; spark.read.jdbc into Iceberg: {theirs:.1f} s; "
            f"speed {theirs / ours:.2f} of it"
        ],
        "values": {"from postgres": loads, "read.jdbc": plains},
    }


def changes(
    folder: Path,
    connection: SessionConnection,
    server: Server,
    names: list[str],
    number: int,
    rounds: int,
) -> dict[str, Any]:
    """Updates of random ranges of keys in random tables, and the run that takes them."""
    run(folder)
    chance = random.Random(1)
    seconds = []
    for _ in range(rounds):
        for _ in range(number // _CHANGED_AT_ONCE):
            low = chance.randrange(20_000 - _CHANGED_AT_ONCE)
            server.sql(
                f"UPDATE {chance.choice(names)} SET amount = amount + 1 "
                f"WHERE id > {low} AND id <= {low + _CHANGED_AT_ONCE}"
            )
        seconds.append(timed(lambda: run(folder)))
        for name in names:
            require_equal(connection, server, name)
    best = min(seconds)
    return {
        "lines": [
            f"{number:,} changes of {len(names)} tables: {best:.1f} s, {number / best:,.0f} changes a second"
        ],
        "values": {"seconds": seconds},
    }


def nothing_new(folder: Path, tables: int) -> dict[str, Any]:
    """Runs without changes."""
    seconds = [timed(lambda: run(folder)) for _ in range(2)]
    return {
        "lines": [f"nothing new in {tables + 1} tables: {min(seconds):.1f} s"],
        "values": {"seconds": seconds},
    }


def timed(act: Callable[[], None]) -> float:
    """The seconds of an act."""
    before = time.monotonic()
    act()
    return round(time.monotonic() - before, 2)


def require_equal(connection: SessionConnection, server: Server, name: str) -> None:
    """Compare a model's table with the database.

    :raises RuntimeError: they differ.
    """
    cursor = connection.cursor()
    cursor.execute(f"SELECT count(*), sum(id), CAST(sum(amount) AS STRING), max(name) FROM lake.bench.{name}")
    (stored,) = cursor.fetchall()
    (there,) = server.sql(f'SELECT count(*), sum(id), sum(amount)::text, max(name COLLATE "C") FROM {name}')
    if [str(one) for one in stored] != [str(one) for one in there]:
        raise RuntimeError(f"{name} has {stored}, and the database {there}")


if __name__ == "__main__":
    main()
