"""TPC-H for the planner's tests: the queries with their keys, and changed data in DuckDB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb

from dbt_arctic.planner.algebra.operators import State
from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "tpch").glob("q*.sql"))}

KEYS: dict[str, tuple[str, ...]] = {
    "q01": ("l_returnflag", "l_linestatus"),
    "q02": ("p_partkey", "s_name"),
    "q03": ("l_orderkey",),
    "q04": ("o_orderpriority",),
    "q05": ("n_name",),
    "q06": ("id",),
    "q07": ("supp_nation", "cust_nation", "l_year"),
    "q08": ("o_year",),
    "q09": ("nation", "o_year"),
    "q10": ("c_custkey",),
    "q11": ("ps_partkey",),
    "q12": ("l_shipmode",),
    "q13": ("c_count",),
    "q14": ("id",),
    "q15": ("s_suppkey",),
    "q16": ("p_brand", "p_type", "p_size"),
    "q17": ("id",),
    "q18": ("o_orderkey",),
    "q19": ("id",),
    "q20": ("s_name",),
    "q21": ("s_name",),
    "q22": ("cntrycode",),
}
"""The columns that identify a row of each query. A query of one row has a constant."""

TABLE_KEYS = {
    "lineitem": ("l_orderkey", "l_linenumber"),
    "orders": ("o_orderkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "nation": ("n_nationkey",),
    "region": ("r_regionkey",),
}
CHANGED = ("orders", "lineitem")


def generate(folder: Path) -> None:
    """Write the tables as Parquet files."""
    generator = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(generator), "parquet", "-s", "0.01", "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def load(folder: Path) -> duckdb.DuckDBPyConnection:
    """The tables in DuckDB; those that will change at each state."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for table in TABLE_KEYS:
        source = f"read_parquet('{folder}/{table}.parquet')"
        name = f"{table}@old" if table in CHANGED else table
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM {source}')
    connection.execute("CREATE SCHEMA before")
    for table in CHANGED:
        connection.execute(f'CREATE VIEW before.{table} AS SELECT * FROM main."{table}@old"')
    return connection


def at_old(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query over the tables before the change."""
    connection.execute("SET search_path = 'before,main'")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.execute("SET search_path = 'main'")


def change(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    """About one order in a hundred is deleted, one new, one updated, each with its line items."""

    def drawn(key: str, salt: int) -> str:
        return f"hash({key} * 1000 + {seed * 10 + salt}) % 100 = 0"

    connection.execute(f"""
        CREATE OR REPLACE TABLE orders AS
        SELECT * REPLACE (
            CASE WHEN {drawn("o_orderkey", 1)} THEN o_custkey + 1 ELSE o_custkey END AS o_custkey,
            CASE WHEN {drawn("o_orderkey", 2)} THEN DATE '1995-01-01' ELSE o_orderdate END AS o_orderdate)
        FROM "orders@old" WHERE NOT {drawn("o_orderkey", 3)}
        UNION ALL
        SELECT * REPLACE (o_orderkey + 100000000 AS o_orderkey, '1-URGENT' AS o_orderpriority)
        FROM "orders@old" WHERE {drawn("o_orderkey", 4)}""")
    connection.execute(f"""
        CREATE OR REPLACE TABLE lineitem AS
        SELECT * REPLACE (
            CASE WHEN {drawn("l_orderkey", 5)} THEN l_quantity + 40 ELSE l_quantity END AS l_quantity,
            CASE WHEN {drawn("l_orderkey", 6)} THEN l_suppkey % 100 + 1 ELSE l_suppkey END AS l_suppkey)
        FROM "lineitem@old" WHERE NOT {drawn("l_orderkey", 3)}
        UNION ALL
        SELECT * REPLACE (l_orderkey + 100000000 AS l_orderkey)
        FROM "lineitem@old" WHERE {drawn("l_orderkey", 4)}""")
    for table in CHANGED:
        for state, first, second in (("minus", f"{table}@old", table), ("plus", table, f"{table}@old")):
            connection.execute(
                f'CREATE OR REPLACE TABLE "{table}@{state}" AS '
                f'SELECT * FROM "{first}" EXCEPT ALL SELECT * FROM "{second}"'
            )
        for state in ("changed", "keys"):
            connection.execute(
                f'CREATE OR REPLACE VIEW "{table}@{state}" AS '
                f'SELECT * FROM "{table}@minus" UNION ALL SELECT * FROM "{table}@plus"'
            )
    orders = 'SELECT o_orderkey FROM "orders@keys" UNION ALL SELECT l_orderkey FROM "lineitem@keys"'
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        for state, whole in (("lookup_new", table), ("lookup_old", f"{table}@old")):
            connection.execute(
                f'CREATE OR REPLACE VIEW "{table}@{state}" AS '
                f'SELECT * FROM "{whole}" WHERE {key} IN ({orders})'
            )


def schemas(connection: duckdb.DuckDBPyConnection) -> Schemas:
    return {
        table: [(name, type_) for name, type_, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
        for table in TABLE_KEYS
    }


class Sources:
    """The tables as they are in DuckDB. What does not change has one state."""

    def relation(self, source: str, state: State) -> str:
        return source if source not in CHANGED or state == "new" else f"`{source}@{state}`"


ROWS = {"lineitem": 6_000_000, "orders": 1_500_000, "partsupp": 800_000, "part": 200_000, "customer": 150_000}
"""At scale factor 1; of other tables fewer."""

FACTS = Facts(
    {
        table: UpstreamFacts(table in CHANGED, key, ROWS.get(table, 1000), 60_000 if table in CHANGED else 0)
        for table, key in TABLE_KEYS.items()
    }
)
