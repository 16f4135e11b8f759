"""What an operation costs, in statements, commits and Spark jobs, and what it does not read."""

from __future__ import annotations

from typing import Any

import pytest

ROWS = [{"id": number, "amount": number} for number in range(10)]


def test_a_blind_upsert_is_one_statement_and_one_commit_and_reads_nothing_of_the_table(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    shop.main.plans_as_for_users()
    change, base = orders.commits()
    statements = shop.main.statements
    statements.ran.clear()
    statements.count_jobs = True
    orders.upsert([{"id": 3, "amount": 30}, {"id": 99, "amount": 1}])
    assert statements.steps == ["upsert"]
    assert orders.commits() == (change + 1, base)
    ((plan,),) = shop.main.query(f"EXPLAIN {statements.ran[0].sql}")
    assert "BatchScan" not in plan
    # Rows meet their key's others to be counted, then their bucket to be written: two shuffles and the write.
    assert statements.ran[0].jobs <= 3


def test_a_build_writes_the_base_once_and_the_change_table_its_first_empty_commit(shop: Any) -> None:
    orders = shop.table()
    statements = shop.main.statements
    orders.build(ROWS)
    assert statements.steps == [
        "create_base", "order_base", "fill_base",
        "create_change", "first_commit", "keep_statistics", "publish_view",
    ]  # fmt: skip
    assert orders.commits() == (1, 1)


def test_a_compaction_is_one_merge_and_one_trim(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 3, "amount": 30}])
    orders.delete([{"id": 4}, {"id": 77}])
    shop.main.plans_as_for_users()
    change, base = orders.commits()
    statements = shop.main.statements
    statements.ran.clear()
    statements.count_jobs = True
    result = orders.compact()
    assert (result.merged, result.merged_rows, result.trimmed, result.pending) == (2, 2, 2, 0)
    assert result.outcome == "compacted"
    assert statements.steps == [
        "create_branch", *["set_for_merge"] * 4, "merge", *["set_after_merge"] * 4,
        "fast_forward", "drop_branch", "trim",
    ]  # fmt: skip
    assert orders.commits() == (change + 1, base + 1)
    jobs = {statement.step: statement.jobs for statement in statements.ran}
    assert jobs.pop("merge") <= 1
    assert set(jobs.values()) == {0}, "a trim drops files by metadata alone"


@pytest.mark.parametrize("partition_by", [(), pytest.param(("line",), marks=pytest.mark.long)])
def test_a_compaction_reads_the_buckets_that_were_touched_and_no_other(shop: Any, partition_by: Any) -> None:
    types = {"id": "bigint", "line": "int"}
    orders = shop.table("orders", types, buckets=16, partition_by=list(partition_by))
    for setting in ("shuffle.partitions", "adaptive.enabled"):
        shop.main.query(f"RESET spark.sql.{setting}")
    shop.main.query("SET spark.sql.autoBroadcastJoinThreshold = -1")  # as for a table of any size
    orders.build_sql("SELECT id, CAST(id % 3 AS INT) AS line FROM range(1600)")
    # A row that stays where it is, one that moves to another partition, one that goes, and one that comes.
    orders.apply([{"id": 3, "line": 0}, {"id": 4, "line": 2}, {"id": 5000, "line": 1}], [{"id": 5}])
    rows = orders.rows()
    before = newest_execution(shop)
    assert orders.compact().merged_rows == 4
    read = [
        int(value.get().replace(",", ""))
        for value in of_merges(shop, before, "number of output rows")
        if value.isDefined()
    ]
    bucket = "lake.system.bucket(16, id)"
    touched = f"SELECT {bucket} FROM VALUES (3L), (4L), (5L), (5000L) AS t(id)"
    ((count,),) = shop.main.query(f"SELECT count(*) FROM range(1600) WHERE {bucket} IN ({touched})")
    assert max(read) <= count + 4 < 600
    assert (orders.rows(), orders.base_rows()) == (rows, rows)


def executions(shop: Any) -> tuple[Any, Any]:
    """Spark's record of what was executed, once all of it is there, and the list in it, oldest first. Of what
    a worker has executed in all, it keeps the newest only."""
    session = shop.main.connection.session
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = session._jsparkSession.sharedState().statusStore()
    return store, store.executionsList()


def newest_execution(shop: Any) -> int:
    _, ran = executions(shop)
    return int(ran.apply(ran.size() - 1).executionId())


def of_merges(shop: Any, after: int, name: str) -> list[Any]:
    """The values of a metric in the statements that merged after an execution."""
    found: list[Any] = []
    store, ran = executions(shop)
    for at in reversed(range(ran.size())):
        execution = ran.apply(at)
        if execution.executionId() <= after:
            break
        if execution.description().startswith("MERGE"):
            values, metrics = store.executionMetrics(execution.executionId()), execution.metrics()
            named = [metrics.apply(place) for place in range(metrics.size())]
            found += [values.get(one.accumulatorId()) for one in named if one.name() == name]
    return found


@pytest.mark.modelled
def test_a_compaction_with_nothing_to_do_runs_nothing(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    assert shop.main.log_of(orders.compact) == []
    orders.upsert([{"id": 3, "amount": 30}])
    orders.compact()
    commits = orders.commits()
    assert shop.main.log_of(orders.compact) == []
    assert orders.compact().outcome == "nothing to do"
    assert orders.commits() == commits


@pytest.mark.modelled
def test_within_the_grace_a_second_compaction_merges_only_what_is_new(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 3, "amount": 30}])
    assert orders.compact(grace=3600).pending == 1
    assert shop.main.log_of(lambda: orders.compact(grace=3600)) == []
    orders.upsert([{"id": 4, "amount": 40}])
    result = orders.compact(grace=3600)
    assert (result.merged, result.merged_rows, result.trimmed, result.pending) == (1, 1, 0, 2)
    assert shop.main.log_of(orders.compact) == ["trim"]
    assert {row["id"]: row["amount"] for row in orders.rows()} == {**dict(enumerate(range(10))), 3: 30, 4: 40}


@pytest.mark.modelled
def test_deletes_of_absent_keys_are_merged_and_trimmed_like_all_else(shop: Any) -> None:
    # A MERGE that changes no row must still record what it merged.
    orders = shop.table()
    orders.build(ROWS)
    orders.delete([{"id": 77}])
    result = orders.compact()
    assert (result.merged, result.merged_rows, result.trimmed, result.pending) == (1, 0, 1, 0)
    assert shop.main.log_of(orders.compact) == []


def test_a_compaction_leaves_no_property_for_later_commits_of_its_session(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 3, "amount": 30}])
    orders.compact()
    orders.upsert([{"id": 4, "amount": 40}])
    state = shop.main.catalog.load_table(orders.table.change.schema, orders.table.change.identifier)
    assert [one for one in state.snapshots if "arctic.merged" in one.summary] == []


@pytest.mark.modelled
def test_a_build_of_many_generations_keeps_the_last_two(shop: Any) -> None:
    orders = shop.table()
    for number in range(4):
        orders.build([{"id": number, "amount": 0}])
    tables = sorted(entry.name for entry in shop.main.catalog.list_relations(orders.name.schema))
    assert tables == [
        "orders", "orders__base_3", "orders__base_4", "orders__change_3", "orders__change_4",
    ]  # fmt: skip
