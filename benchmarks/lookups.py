"""How long a lookup by key and by value takes, with and without an index, in one Spark and one run.

    python -m benchmarks.lookups --rows 20000000 --dir /path/with/space

A table of orders with five rows for each customer, which are spread over all of its files. Measured: the
rows of one customer through the index, by their keys, and through the view; the row of a key; building the
index; extending it by 1 % changed rows; and the sizes. Every lookup is compared with the view.
"""

from __future__ import annotations

from benchmarks.keyed_table import Bench, config, run
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.secondary_index import index_name
from dbt_arctic.maintenance.table_read import read_table
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.secondary_indexes import apply_indexes, refresh_index
from dbt_arctic.store.state import load_keyed

ROWS_OF_A_CUSTOMER = 5


def orders(ids: str, customers: int) -> str:
    """Orders with these ids, as SQL."""
    return f"""SELECT id, pmod(hash(id), {customers}) AS customer,
  CASE WHEN id % 3 = 0 THEN 'O' ELSE 'F' END AS status, CAST(id % 100000 / 7 AS DECIMAL(12,2)) AS price,
  concat('comment on order ', id, ' ', md5(CAST(id AS STRING))) AS comment
FROM ({ids})"""


def measure(bench: Bench, rows: int, repeat: int) -> dict[str, float]:
    name, context, customers = Name("lake", "bench", "orders"), bench.context, rows // ROWS_OF_A_CUSTOMER
    settings = config("orders", bench.buckets)
    bench.run("schema", "CREATE SCHEMA IF NOT EXISTS lake.bench")
    everything = orders(f"SELECT id FROM range({rows})", customers)
    bench.timed(
        f"build of {rows:,} rows", lambda: build_generation(context, name, settings, everything, {}, owner="")
    )
    changed = orders(f"SELECT id * 100 AS id FROM range({rows // 100})", customers)
    bench.timed("upsert of 1 %, without an index", lambda: upsert(context, name, settings, changed))
    bench.timed(
        "build of the index", lambda: apply_indexes(context, load_keyed(bench.catalog, name), ["customer"])
    )
    bench.timed("upsert of 1 %, with an index", lambda: upsert(context, name, settings, changed))

    def lookup(customer: int) -> None:
        for _ in range(2):
            bench.timed("lookup of a key", lambda: read_table(bench.catalog, name, keys=[customer]))
            if found:
                ids = found[-1].column("id").to_pylist()
                bench.timed("lookup of its keys", lambda ids=ids: read_table(bench.catalog, name, keys=ids))
            bench.timed(
                "lookup of a value",
                lambda: found.append(read_table(bench.catalog, name, where={"customer": customer})),
            )
        sql = f"SELECT id FROM {name.sql} WHERE customer = {customer}"
        shown: list[int] = []
        bench.timed(
            "lookup of a value, by Spark", lambda: shown.extend(int(str(row[0])) for row in bench.query(sql))
        )
        if sorted(shown) != sorted(found[-1].column("id").to_pylist()):
            raise SystemExit(f"the lookup of customer {customer} differs from the view")

    found: list = []
    for place in range(repeat):
        lookup(place * customers // repeat)
    pending = bench.seconds.pop("lookup of a value")
    bench.seconds["lookup of a value, 1 % not in the index"] = pending
    del bench.seconds["lookup of a key"], bench.seconds["lookup of its keys"]
    bench.timed(
        "extension by 1 %", lambda: refresh_index(context, load_keyed(bench.catalog, name), "customer")
    )
    for place in range(repeat):
        lookup(place * customers // repeat)
    table = load_keyed(bench.catalog, name)
    index = index_name(table, "customer")
    bench.timed(
        "lookup of a value, without an index", lambda: read_table(bench.catalog, name, where={"status": "X"})
    )
    sizes = {
        part: float(str(bench.query(f"SELECT sum(file_size_in_bytes) FROM {part_name.sql}.files")[0][0]))
        for part, part_name in (("index", index), ("base", table.base))
    }
    return {
        "value / key": bench.median("lookup of a value") / bench.median("lookup of a key"),
        "value / its keys": bench.median("lookup of a value") / bench.median("lookup of its keys"),
        "by Spark / value": bench.median("lookup of a value, by Spark") / bench.median("lookup of a value"),
        "upsert with / without an index": bench.median("upsert of 1 %, with an index")
        / bench.median("upsert of 1 %, without an index"),
        "size of the index / of the base": sizes["index"] / sizes["base"],
    }


if __name__ == "__main__":
    raise SystemExit(run(__doc__, measure, repeat=5))
