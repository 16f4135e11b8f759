"""Joins and merges of tables that are bucketed alike shuffle nothing between the scans and the join.

Asserted on the plan that was executed, with adaptive execution on and off, without and with pending changes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.compaction.rewrite import REWRITTEN, compact_full, compact_minor
from tests.extent import extent, first

N = extent(600, 3000)


def fill(table: Any, count: int, **extra: str) -> None:
    columns = of(table, **extra)
    table.build_sql(f"SELECT {columns} FROM range({count})")


def of(table: Any, **extra: str) -> str:
    """A table's columns, each made of ``id`` or of another expression over it."""
    return ", ".join(
        f"CAST({extra.get(name, 'id')} AS {type_}) AS {name}" for name, type_ in table.types.items()
    )


def change_one_row(table: Any, **extra: str) -> None:
    table.upsert_sql(f"SELECT {of(table, **extra)} FROM range(1)")


def change_every_bucket(table: Any, **extra: str) -> None:
    """Two commits: a quarter of the rows again, and some of them deleted."""
    table.upsert_sql(f"SELECT {of(table, **extra)} FROM range({N // 4})")
    table.upsert_sql(f"SELECT {of(table, **extra)}, 'D' AS _action FROM range({N // 8}, {N // 6})")


def put_together(table: Any) -> None:
    """Changes are pending in files of several commits, and the base was rewritten."""
    change_every_bucket(table, line="id % 3")
    assert compact_minor(table.session.context, table.name).outcome == REWRITTEN
    assert compact_full(table.session.context, table.name).outcome == REWRITTEN


DELETED = N // 6 - N // 8


def executed(session: Any, query: str, aqe: bool) -> tuple[str, int]:
    """The final physical plan of a query that ran, and its number of rows."""
    spark = session.connection.session
    spark.conf.set("spark.sql.adaptive.enabled", str(aqe).lower())
    frame = spark.sql(query)
    count = len(frame.collect())
    text = str(frame._jdf.queryExecution().executedPlan().toString())
    return text.split("== Initial Plan ==")[0], count


FEW = ("two views", "outer, a plain table and a view", "three views", "composite with single")
"""Kinds of joins that the short form has."""


def exchanges(plan: str) -> list[str]:
    return re.findall(r"\b\w*Exchange\b.*", plan)


@pytest.fixture
def session(shop: Any) -> Any:
    """Spark plans as for a user, only that nothing is small enough to be broadcast."""
    for setting in ("shuffle.partitions", "adaptive.enabled"):
        shop.main.query(f"RESET spark.sql.{setting}")
    shop.main.query("SET spark.sql.autoBroadcastJoinThreshold = -1")
    return shop.main


def test_joins_of_keyed_tables_are_in_place_whatever_is_pending(shop: Any, session: Any) -> None:
    for setting in ("codegen.wholeStage", "codegen.factoryMode"):  # these plans run, and are what could crash
        session.query(f"RESET spark.sql.{setting}")
    single = {"id": "bigint", "amount": "int"}
    pair = {"id": "bigint", "line": "int", "price": "int"}
    orders = shop.table("orders", single, buckets=4)
    payments = shop.table("payments", single, buckets=4)
    lines = shop.table("lines", pair, unique_key=["id", "line"], buckets=4)
    packed = shop.table("packed", pair, unique_key=["id", "line"], buckets=4)
    tables = (orders, payments, lines, packed)
    for table in tables:
        fill(table, N, line="id % 3")
    plain = session.name("plain").sql
    session.query(
        f"CREATE TABLE {plain} USING iceberg PARTITIONED BY (bucket(4, id)) "
        f"AS SELECT id, id AS v FROM range({N})"
    )
    o, p, x, k = (table.name.sql for table in tables)
    queries = {
        "two views": f"SELECT o.amount FROM {o} o JOIN {p} p ON o.id = p.id",
        "a view and a plain table": f"SELECT o.amount FROM {o} o JOIN {plain} p ON o.id = p.id",
        "outer, a plain table and a view": f"SELECT v FROM {plain} p LEFT JOIN {o} o ON o.id = p.id",
        "three views": f"SELECT price FROM {x} x JOIN {o} o ON x.id = o.id JOIN {p} p ON o.id = p.id",
        "composite keys": f"SELECT x.price FROM {x} x JOIN {k} k ON x.id = k.id AND x.line = k.line",
        "composite with single": f"SELECT price FROM {k} k JOIN {o} o ON k.id = o.id",
        "by another column too": f"SELECT k.id FROM {k} k JOIN {x} x ON k.id = x.id AND k.price = x.price",
        "one view with itself": f"SELECT a.amount FROM {o} a JOIN {o} b ON a.id = b.id",
    }
    shuffled = []
    states: list[tuple[str, Any]] = [
        ("nothing", None),
        ("one row of one table", lambda: change_one_row(orders)),
        ("one row of each", lambda: [change_one_row(table, line="id % 3") for table in tables[1:]]),
        ("rows in every bucket", lambda: [change_every_bucket(table, line="id % 3") for table in tables]),
        ("nothing after compaction", lambda: [table.compact() for table in tables]),
        ("rows in files put together", lambda: [put_together(table) for table in tables]),
    ]
    for turn, (pending, change) in enumerate(states):
        if change is not None:
            change()
        left = N if pending in ("nothing", "one row of one table", "one row of each") else N - DELETED
        every = pending == "rows in every bucket"
        # The short form has all of its kinds in one state, and otherwise every other one in turn.
        for label in extent(FEW if every else FEW[turn % 2 :: 2], tuple(queries)):
            query = queries[label]
            # Adaptive execution is the default, and what can crash; without it, the two ends will do.
            for aqe in (True, False) if every or pending == "nothing" else (True,):
                plan, count = executed(session, query, aqe)
                assert count == (N if "outer" in label else left), (pending, label, aqe)
                shuffled += [(pending, label, aqe, line) for line in exchanges(plan)]
    assert shuffled == []


@pytest.mark.parametrize(
    "config",
    first(
        2,
        [
            {"unique_key": ["line", "id"], "bucket_by": "id", "sort_by": ["amount"]},
            {"unique_key": ["id", "amount"], "partition_by": ["line"]},
            {"unique_key": "id"},
            {"unique_key": ["id", "line"]},
            {"unique_key": "id", "partition_by": ["line"]},
        ],
    ),
    ids=["second column, sorted by another", "partitioned, composite", "single", "composite", "partitioned"],
)
def test_compaction_merges_in_place(shop: Any, session: Any, config: dict[str, Any]) -> None:
    types = {"id": "bigint", "line": "int", "amount": "int"}
    orders = shop.table("orders", types, **{"buckets": 4, **config})
    fill(orders, N, line="id % 3")
    change_one_row(orders, line="id % 3")
    change_every_bucket(orders, line="id % 3")
    plans: list[str] = []

    def explain(step: str, sql: str, table: Any = None) -> int | None:
        if step == "merge":
            for aqe in ("true", "false"):
                session.query(f"SET spark.sql.adaptive.enabled = {aqe}")
                plans.append(session.query(f"EXPLAIN {sql}")[0][0])
        return session.statements(step, sql, table)

    session.context = replace(session.context, run=explain)
    orders.compact()
    assert len(plans) == 2
    for plan in plans:
        assert "Join" in plan
        assert exchanges(plan) == []
    assert len(orders.base_rows()) == N - DELETED


@pytest.mark.parametrize("allowed", [False, True])
def test_no_scan_is_filtered_at_run_time_unless_somebody_allows_it(
    shop: Any, session: Any, allowed: bool
) -> None:
    """Two parts of a plan may share a scan, and Iceberg filters it by changing it."""
    few, many = (session.name(f"{name}_{allowed}").sql for name in ("few", "many"))
    for name, count in ((few, 20), (many, 2000)):
        rows = f"SELECT id % 20 AS id FROM range({count})"
        session.query(f"CREATE TABLE {name} USING iceberg PARTITIONED BY (id) AS {rows}")
    setting = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
    spark = session.connection.session
    usual = spark.conf.get(setting)
    wanted = f"(SELECT id FROM {few} WHERE id % 10 > 5)"
    try:
        if allowed:
            spark.conf.set(setting, "true")
        joined = f"SELECT /*+ BROADCAST(f) */ * FROM {many} m JOIN {wanted} f USING (id)"
        plan, count = executed(session, joined, True)
    finally:
        spark.conf.set(setting, usual)
    assert count == 800
    assert ("dynamicpruning" in plan) == allowed
