"""The time to plan the refresh of an automatic model of 300 lines: the duration of ``plan_refresh`` after its
upstreams have changed, which is all that a refresh does before its first statement.

    python -m benchmarks.planning --lines 300 --repeat 10

Three models over the tables of TPC-H: rows that join seven tables, sums of these rows, and a query over such
sums (which has a state). The first plan of a process, which also loads modules, is reported separately.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tpch.changes import Changes
from benchmarks.tpch.data import generate, load
from benchmarks.tpch.lake import Lake
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.planner.frontend.parse import parsed, spelled
from dbt_arctic.refresh.config import KeyedConfig

_STAGED = {
    "orders": ("o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority"),
    "lineitem": (
        *("l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice"),
        *("l_discount", "l_tax", "l_returnflag", "l_linestatus"),
        *("l_shipdate", "l_commitdate", "l_receiptdate"),
    ),
    "customer": ("c_custkey", "c_name", "c_nationkey", "c_mktsegment", "c_acctbal"),
    "supplier": ("s_suppkey", "s_name", "s_nationkey", "s_acctbal"),
    "part": ("p_partkey", "p_name", "p_brand", "p_type", "p_size", "p_container"),
    "nation": ("n_nationkey", "n_name", "n_regionkey"),
    "region": ("r_regionkey", "r_name"),
}
_JOINED = [column for columns in _STAGED.values() for column in columns]


def rows(lines: int) -> str:
    """Rows of line items with what they join, and as many computed columns as it has lines left for."""
    staged = []
    for table, columns in _STAGED.items():
        listed = ",\n".join(f"    {column}" for column in columns)
        staged.append(f"staged_{table} AS (\n  SELECT\n{listed}\n  FROM {table}\n)")
    listed = ",\n".join(f"    {column}" for column in _JOINED)
    joined = f"""joined AS (
  SELECT
{listed}
  FROM staged_lineitem
  JOIN staged_orders ON l_orderkey = o_orderkey
  JOIN staged_customer ON o_custkey = c_custkey
  JOIN staged_supplier ON l_suppkey = s_suppkey
  JOIN staged_part ON l_partkey = p_partkey
  LEFT JOIN staged_nation ON c_nationkey = n_nationkey
  LEFT JOIN staged_region ON n_regionkey = r_regionkey
)"""
    text = "WITH " + ",\n".join([*staged, joined])
    left = lines - len(text.splitlines()) - len(_JOINED) - 2
    computed = ",\n".join(_computed(place) for place in range(left // 5))
    shown = ",\n".join(f"  {column}" for column in _JOINED)
    return f"{text}\nSELECT\n{shown},\n{computed}\nFROM joined"


def _computed(place: int) -> str:
    return f"""\
  CASE
    WHEN l_returnflag = 'R' AND l_quantity > {place} THEN l_extendedprice * (1 - l_discount)
    WHEN o_orderstatus IN ('F', 'O') AND p_size BETWEEN {place} AND {place + 10} THEN l_extendedprice
    ELSE 0
  END AS price_{place}"""


def order_sums(lines: int) -> str:
    """Sums of these rows by four columns, two lines for each."""
    below = rows(lines * 2 // 3)
    left = lines - len(below.splitlines()) - 10
    totals = ",\n".join(
        f"  sum(CASE WHEN p_size > {place} THEN l_quantity END) AS quantity_{place},\n"
        f"  count(CASE WHEN p_size > {place} THEN l_quantity END) AS count_{place}"
        for place in range(left // 2)
    )
    return f"""SELECT
  n_name,
  c_mktsegment,
  o_orderpriority,
  l_returnflag,
  count(*) AS rows,
{totals}
FROM (
{below}
) AS lines
GROUP BY n_name, c_mktsegment, o_orderpriority, l_returnflag"""


def over_sums(lines: int) -> str:
    """A query over the sums of orders, by how much each came to."""
    below = rows(lines - 16)
    return f"""SELECT
  o_orderpriority,
  count(*) AS orders,
  sum(total) AS total,
  max(line_items) AS line_items
FROM (
  SELECT
    o_orderkey,
    o_orderpriority,
    count(*) AS line_items,
    sum(price_0) AS total
  FROM (
{below}
  ) AS lines
  GROUP BY o_orderkey, o_orderpriority
) AS orders
GROUP BY o_orderpriority"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--repeat", type=int, default=10)
    given = parser.parse_args()
    models = {
        "rows": (rows(given.lines), ("l_orderkey", "l_linenumber")),
        "sums": (order_sums(given.lines), ("n_name", "c_mktsegment", "o_orderpriority", "l_returnflag")),
        "over_sums": (over_sums(given.lines), ("o_orderpriority",)),
    }
    with tempfile.TemporaryDirectory(prefix="dbt-arctic-planning-") as folder:
        generate(Path(folder) / "files", 0.01)
        lake = Lake.open(Path(folder) / "lake", "2g", "local[2]", {"spark.sql.shuffle.partitions": "2"})
        load(lake, Path(folder) / "files", buckets=2)
        changes = Changes(lake, 2, 0.01, recent=True, dimensions=0, seed=1)
        changes.begin()
        for model, (sql, key) in models.items():
            _refreshed(lake, model, sql, key)
        changes.round(1)
        for model, (sql, key) in models.items():
            seconds = [_planned(lake, model, sql, key) for _ in range(given.repeat + 1)]
            # What is planned has to be true: the refresh runs.
            said = _refreshed(lake, model, sql, key)
            sys.stdout.write(
                f"{model}: {len(sql.splitlines())} lines, {said}, planned in "
                f"{statistics.median(seconds[1:]):.3f} s (the first time {seconds[0]:.3f})\n"
            )
    return 0


def _planned(lake: Lake, model: str, sql: str, key: tuple[str, ...]) -> float:
    # An invocation plans a model once.
    parsed.cache_clear()
    spelled.cache_clear()
    began = time.perf_counter()
    plan_refresh(lake.context.catalog, lake.name(model), _config(model, key), sql, lake.context.query_schema)
    return time.perf_counter() - began


def _refreshed(lake: Lake, model: str, sql: str, key: tuple[str, ...]) -> str:
    name, config = lake.name(model), _config(model, key)
    plan = plan_refresh(lake.context.catalog, name, config, sql, lake.context.query_schema)
    choice = run_refresh(lake.context, name, config, plan, owner="benchmark").choice
    assert choice is not None
    return f"{choice.strategy} ({choice.reason or choice.how})"


def _config(model: str, key: tuple[str, ...]) -> KeyedConfig:
    return KeyedConfig(model, key, full_refresh_above=1.0)


if __name__ == "__main__":
    sys.exit(main())
