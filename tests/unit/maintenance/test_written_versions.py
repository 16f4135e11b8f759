"""What one run has committed is read from the logs: its version, rows, bytes and consumed versions."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed, encode_consumed
from dbt_arctic.maintenance.written_versions import written_by
from tests.unit.maintenance.conftest import Orders, commits, state
from tests.unit.maintenance.test_history import Catalog, catalog_of

ORDERS = Name("lake", "shop", "orders")
RUN = "run-2:model.shop.orders"


def of_run(snapshot: Snapshot, run: str = RUN, **summary: str) -> Snapshot:
    return replace(snapshot, summary={**snapshot.summary, "arctic.run": run, **summary})


def test_an_upsert_is_its_commit_to_the_change_table() -> None:
    orders = Orders()
    first, earlier, mine, later = commits("b", "a10", "a20", "a30")
    consumed = encode_consumed({"lake.raw.x": Consumed("t", "7"), "arctic.plan": Consumed("p", "q")})
    mine = of_run(mine, **{"added-records": "5", "added-files-size": "300", "arctic.consumed": consumed})
    change = replace(orders.side("change", 1), snapshots=(first, earlier, mine, later), current_snapshot_id=4)
    catalog = catalog_of(orders, orders.side("base", 1, "b", "m10", "m20,30"), change)
    found = written_by(catalog, ORDERS, RUN, 0, 0)
    assert found is not None
    assert found.version == "1.3.2", "with the base that has merged no later commit"
    assert (found.rows, found.size_bytes) == (5, 300)
    assert found.consumed == {"lake.raw.x": Consumed("t", "7")}
    assert [column.name for column in found.columns] == ["id", "amount"]


def test_a_build_is_its_commit_to_the_base_table() -> None:
    orders = Orders()
    (filled,), (marks, deletes) = commits("b"), commits("b", "a5")
    filled = of_run(filled, **{"added-records": "900", "added-files-size": "4096"})
    base = replace(orders.side("base", 1), snapshots=(filled,), current_snapshot_id=1)
    # With a sequence, a build also stores tombstones, which are not rows of the table.
    change = replace(
        orders.side("change", 1), snapshots=(of_run(marks), of_run(deletes)), current_snapshot_id=2
    )
    found = written_by(catalog_of(orders, base, change), ORDERS, RUN, 0, 0)
    assert found is not None
    assert (found.version, found.rows, found.size_bytes) == ("1.2.1", 900, 4096)


def test_a_compaction_of_the_same_run_is_not_a_build() -> None:
    orders = Orders()
    first, mine = commits("b", "a10")
    change = replace(orders.side("change", 1), snapshots=(first, of_run(mine)), current_snapshot_id=2)
    filled, merged = commits("b", "m10")
    merged = replace(of_run(merged, **{"added-records": "77"}), operation="append")
    base = replace(orders.side("base", 1), snapshots=(filled, merged), current_snapshot_id=2)
    found = written_by(catalog_of(orders, base, change), ORDERS, RUN, 0, 0)
    assert found is not None
    assert found.rows == 1


def test_a_run_without_a_commit_has_no_version() -> None:
    orders = Orders()
    catalog = catalog_of(orders, orders.side("base", 1, "b"), orders.side("change", 1, "b", "a10"))
    found = written_by(catalog, ORDERS, RUN, 0, 99_000)
    assert found is not None
    assert (found.version, found.rows, found.size_bytes, found.consumed) == (None, None, None, {})


def test_a_plain_table_is_found_by_the_run_or_by_the_time() -> None:
    log = commits("x", "x", "x")
    table = state("orders", (log[0], of_run(log[1], "other:model"), log[2]))
    found = written_by(Catalog(table), ORDERS, RUN, log[0].timestamp_ms, log[1].timestamp_ms)
    assert found is not None
    assert (found.version, found.rows) == ("1", 1), "the second commit is of another run, the third is later"
    both = written_by(Catalog(table), ORDERS, "other:model", 0, 99_000)
    assert both is not None
    assert (both.version, both.rows) == ("3", 3)
    assert written_by(Catalog(), ORDERS, RUN, 0, 99_000) is None
