"""A key that was erased is in no file any more; every other key, and every consumer, is as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.avro.file import AvroFile

from dbt_arctic.auto.auxiliary_tables import find_state
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.catalog.manifests import _BytesInput
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.maintenance.erase import ErasureResult, erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_condition, plan_by_values
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.provenance import explain_row
from dbt_arctic.maintenance.savepoint import make_savepoint
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.rejected_table import create_statement, rejected_name
from tests.spark.keyed.automatic_models import Model

Row = dict[str, Any]
KEY = 777_001
"""No bucket's marker has it, and nothing else in a manifest looks like it."""
ROWS = [{"id": number, "amount": number} for number in (*range(4), KEY)]


def traces(
    warehouse: Path,
    schema: str,
    key: int = KEY,
    column: str = "id",
    among: Callable[[str], bool] = lambda path: True,
) -> list[str]:
    """Files of a schema that hold the key: rows, and bounds in manifests.

    :param among: which files to open. A write that failed may leave one that was cut off in the middle.
    """

    def files(kind: str) -> Iterator[tuple[Path, str]]:
        for path in sorted((warehouse / schema).rglob(f"*.{kind}")):
            if among(name := str(path.relative_to(warehouse / schema))):
                yield path, name

    found = [
        name
        for path, name in files("parquet")
        if key in pq.ParquetFile(path).read([column])[column].to_pylist()
    ]
    return found + [name for path, name in files("avro") if key in _bounds(path)]


def _bounds(path: Path) -> set[int]:
    def numbers(value: Any) -> Iterator[int]:
        if isinstance(value, bytes) and len(value) == 8:
            yield int.from_bytes(value, "little", signed=True)
        elif isinstance(value, dict):
            for inner in value.values():
                yield from numbers(inner)
        elif hasattr(value, "_data") or isinstance(value, (list, tuple)):
            for inner in getattr(value, "_data", value):
                yield from numbers(inner)

    with AvroFile[Any](_BytesInput(str(path), path.read_bytes())) as entries:
        return {number for entry in entries for number in numbers(entry)}


@dataclass
class Lake:
    """What is left of erased keys, on either kind of lake."""

    shop: Any
    schema: str
    warehouse: Path

    @property
    def _catalog(self) -> Any:
        return self.shop.main.catalog

    def traces(self, column: str = "id") -> list[str]:
        """Where the key still is, by names that begin with the table's."""
        memory = self.shop.main.memory
        if memory is not None:
            return memory.traces(column, KEY)
        return traces(self.warehouse, self.schema, column=column)

    def findings(self, data: bool = False) -> list[str]:
        inventory = take_inventory(self._catalog, "lake", self.schema)
        now, query = self.shop.main.context.now_ms(), self.shop.main.query if data else None
        found = verify_schema(self._catalog, inventory, now, self.shop.size_of, query)
        return [f"{finding.kind}: {finding.what}" for finding in found]

    def erase(self, orders: Any, *keys: int, at: Any = None) -> ErasureResult:
        context = (at or orders.session).context
        plan = plan_by_values(context, orders.name, [("id", str(key)) for key in keys or (KEY,)])
        return erase_keys(context, plan, is_there=lambda path: isinstance(self.shop.size_of(path), int))


@pytest.fixture
def lake(shop: Any, schema: str, warehouse: Path) -> Lake:
    return Lake(shop, schema, warehouse)


def test_a_key_goes_from_every_version_and_file_and_nothing_else_does(shop: Any, lake: Lake) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.build(ROWS)  # the generation before holds it too
    orders.apply([{"id": KEY, "amount": 1}, {"id": 1, "amount": 10}], [{"id": 2}])
    orders.compact(grace=3600)  # merged, and still pending
    orders.upsert([{"id": KEY, "amount": 2}])
    orders.compact()  # hidden in both by deletion vectors, but there
    orders.upsert([{"id": 3, "amount": 30}, {"id": KEY, "amount": 3}])
    assert lake.traces()
    expected = [row for row in orders.rows() if row["id"] != KEY]

    done = lake.erase(orders)
    assert orders.rows() == expected
    assert lake.traces() == []
    assert (done.left, done.removed) == ((), ())
    assert [(side.name.identifier, side.rows) for side in done.sides] == [
        ("orders__base_2", 1),
        ("orders__change_2", 1),
        ("orders__base_1", 1),
        ("orders__change_1", 0),
    ]
    assert all(side.versions > 0 for side in done.sides)
    assert lake.findings(data=True) == []

    orders.upsert([{"id": 9, "amount": 9}])
    orders.compact()
    assert orders.rows() == sorted([*expected, {"id": 9, "amount": 9}], key=lambda row: row["id"])
    assert orders.base_rows() == orders.rows()
    assert lake.findings() == []


def test_of_files_that_were_bucketed_otherwise_too(shop: Any, lake: Lake) -> None:
    """A manifest is of one partition spec: one with a file that is gone is left of each."""
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in (*range(40), KEY)])
    orders.upsert([{"id": 1, "amount": 10}, {"id": KEY, "amount": 2}, {"id": 2, "amount": 20}])
    for side in (orders.table.base, orders.table.change):
        orders.session.query(f"ALTER TABLE {side.sql} REPLACE PARTITION FIELD id_bucket WITH bucket(4, id)")
    orders.upsert([{"id": number, "amount": 30} for number in (3, 4, 5, 6, KEY)])
    size = "commit.manifest.target-size-bytes"
    orders.session.query(f"ALTER TABLE {orders.table.base.sql} SET TBLPROPERTIES ('{size}' = '16777216')")
    expected = [row for row in orders.rows() if row["id"] != KEY]
    assert len(lake.traces()) > 4
    assert lake.erase(orders).left == ()
    assert lake.traces() == []
    assert orders.rows() == expected
    for side in (orders.table.base, orders.table.change):
        state = shop.main.catalog.load_table(side.schema, side.identifier)
        assert "arctic.erase-split" not in state.properties
        assert state.properties.get(size) == ("16777216" if side == orders.table.base else None)


@pytest.mark.modelled
@pytest.mark.without_views
def test_cut_off_anywhere_the_next_erasure_finishes_and_consumers_go_on(
    shop: Any, lake: Lake, cut_off: tuple[type[Exception], ...]
) -> None:
    """Each attempt dies one statement later than the one before, and continues from what that one left."""
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 0, "amount": 5}, {"id": KEY, "amount": 5}])
    consumer = shop.consumer("daily", orders)
    consumer.run()
    orders.apply([{"id": 1, "amount": 10}], [{"id": 2}])
    orders.compact(grace=3600)
    orders.upsert([{"id": KEY, "amount": 6}])
    expected = [{"id": 0, "amount": 5}, {"id": 1, "amount": 10}, {"id": 3, "amount": 3}]
    unfinished = 0
    # What an earlier attempt has hidden need not be hidden again: so each of its statements is met by itself.
    for at in (1, 2, 1, 2, *range(100)):
        worker = shop.session()
        worker.statements.die(at)
        try:
            lake.erase(orders, at=worker)
        except cut_off:
            rows = orders.rows()
            assert [row for row in rows if row["id"] != KEY] == expected, worker.statements.steps
            assert not [row for row in rows if row["id"] == KEY and row["amount"] != 6], (
                "an older row of the key came back"
            )
            kinds = {finding.partition(":")[0] for finding in lake.findings()}
            assert kinds <= {"erase-unfinished"}
            unfinished += len(kinds)
        else:
            break
    assert at > 10
    assert unfinished > 5
    assert orders.rows() == expected
    assert all(path.startswith("daily__") for path in lake.traces())
    assert lake.findings() == []
    # The consumer pulls what it has not seen, from a log of which the commits are expired.
    assert consumer.run() == "upserted"
    assert [row["id"] for row in consumer.rows()] == [0, 1, 3, KEY]
    assert {row["id"]: row["amount"] for row in consumer.rows()}[1] == 10
    # Erased there too, and what it consumed is still known.
    consumed = consumer.expected
    plan = plan_by_values(shop.main.context, consumer.orders.name, [("id", str(KEY)), ("source", "orders")])
    erase_keys(shop.main.context, plan)
    assert lake.traces() == []
    assert consumer.expected == consumed
    assert consumer.run() == "skipped"
    # What was merged before the erasure is not merged again.
    assert orders.compact(grace=3600).merged == 0


@pytest.mark.modelled
@pytest.mark.parametrize("trims", [True, False])
def test_beside_others_nothing_else_is_lost_and_the_key_does_not_come_back(
    shop: Any, lake: Lake, trims: bool
) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": KEY, "amount": 5}])
    consumer = shop.consumer("daily", orders)
    consumer.run()
    other = orders.on(shop.session())
    expected = {row["id"]: row["amount"] for row in ROWS if row["id"] != KEY}
    steps = []

    def interfere(step: str) -> None:
        if step in ("hide_rows", "rewrite_files", "carry_on", "fast_forward", "expire") and len(steps) < 8:
            steps.append(step)
            expected[100 + len(steps)] = len(steps)
            came_back = [{"id": KEY, "amount": 9}] if len(steps) == 3 else []
            other.upsert([{"id": 100 + len(steps), "amount": len(steps)}, *came_back])
            if trims:
                other.compact()

    worker = shop.session()
    worker.statements.before = interfere
    done = lake.erase(orders, at=worker)
    assert len(set(steps)) >= 4
    assert {row["id"]: row["amount"] for row in orders.rows()} == expected
    assert done.left == ()
    assert all(path.startswith("daily__") for path in lake.traces())
    assert lake.findings() == []
    # Changes that were trimmed before the consumer read them are lost; all others are returned.
    assert [len(consumers) for consumers in (done.going_on, done.to_rebuild)] == ([0, 1] if trims else [1, 0])
    if trims:
        with pytest.raises(VersionUnavailable, match="are no longer available"):
            consumer.run()
    else:
        consumer.run()
        pulled = {row["id"]: row["amount"] for row in consumer.rows() if row["id"] != KEY}
        assert pulled == expected
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == expected


def test_what_keeps_copies_goes_only_when_forced_and_a_condition_finds_keys_of_every_version(
    shop: Any, lake: Lake
) -> None:
    types = {"land": "string", "at": "timestamp", "id": "bigint", "customer": "string"}
    orders = shop.table("orders", types, unique_key=["land", "at", "id"], bucket_by="id")
    mine = {"land": "D'E", "at": "2026-01-31T12:00:00.5Z", "id": KEY, "customer": "Ann"}
    other = {"land": "FR", "at": "2026-01-31T12:00:00Z", "id": 4, "customer": "Bob"}
    orders.build([mine, other])
    context = shop.main.context
    make_savepoint(context, orders.name, "opening")
    orders.upsert([{**mine, "customer": "Eve"}])
    orders.compact()
    pull = orders.name.sibling(f"orders__pull_{context.new_txn()}")
    shop.main.query(f"CREATE TABLE {pull.sql} USING iceberg AS SELECT {KEY}L AS id")

    plan = plan_by_condition(context, orders.name, "customer = 'Ann'")
    assert plan.keys == 1
    assert {thing.kind for thing in plan.in_the_way} == {"savepoint", "staging"}
    with pytest.raises(ConfigError, match="other places with rows"):
        erase_keys(context, plan)
    before = orders.rows()
    assert len(before) == 2
    done = erase_keys(context, plan, force=True)
    assert len(done.removed) == 3
    assert [row["customer"] for row in orders.rows()] == ["Bob"]
    assert lake.traces() == []
    assert plan_by_condition(context, orders.name, "customer = 'Ann'").keys == 0

    key = [("land", "FR"), ("at", "2026-01-31 12:00:00Z"), ("id", "4")]
    assert plan_by_values(context, orders.name, key).sides[0].rows == 1
    for wrong, message in (
        ([("land", "FR"), ("id", "4")], "also contains at"),
        ([*key, ("customer", "Bob")], "customer is not part of the key"),
        ([*key, ("id", "four")], "'four' is not a value of id"),
        ([*key, ("at", "2026-01-31 12:00:00.0000001Z")], "at most 6 digits after the second"),
    ):
        with pytest.raises(ConfigError, match=message):
            plan_by_values(context, orders.name, wrong)

    # Rejected rows keep their name when the table is renamed.
    rejected = rejected_name(orders.name)
    shop.main.query(create_statement(rejected, orders.name))
    shop.main.query(f"ALTER VIEW {orders.name.sql} RENAME TO {orders.name.schema}.sold")
    found = plan_by_values(context, orders.name.sibling("sold"), key).in_the_way
    assert [(copy.kind, copy.what) for copy in found] == [("rejected", rejected.identifier)]


@pytest.mark.modelled
def test_a_text_that_a_cast_would_round_is_no_key(shop: Any) -> None:
    orders = shop.table("orders", {"id": "decimal(10,3)", "amount": "int"})
    orders.build([{"id": "1.005", "amount": 5}])
    now = orders.with_types({"id": "decimal(10,2)", "amount": "int"})
    now.build([{"id": "1.01", "amount": 1}])
    context = shop.main.context
    with pytest.raises(ConfigError, match=r"'1\.005' is not a value of id, which is decimal\(10,2\)"):
        plan_by_values(context, orders.name, [("id", "1.005")])
    with pytest.raises(ConfigError, match="fewer digits after the point"):
        explain_row(context, orders.name, ["id=1.005"])
    # The key of a row in the earlier generation is not rounded to another one either.
    plan = plan_by_condition(context, orders.name, "amount = 5")
    assert plan.keys == 0
    assert {copy.why for copy in plan.in_the_way} == {"the previous generation has another key or key type"}
    plan = plan_by_values(context, orders.name, [("id", "1.010")])
    assert plan.keys == 1
    assert [side.rows for side in plan.sides] == [1, 0]


@pytest.mark.modelled
def test_a_key_of_another_type_in_the_earlier_generation_is_in_the_way(shop: Any) -> None:
    """Each number is a text, but Spark compares '7' and '007' with it as numbers."""
    orders = shop.table("orders", {"id": "int", "amount": "int"})
    orders.build([{"id": 7, "amount": 5}])
    orders.with_types({"id": "string", "amount": "int"}).build([{"id": "7", "amount": 1}])
    plan = plan_by_values(shop.main.context, orders.name, [("id", "7")])
    assert [side.rows for side in plan.sides] == [1, 0]
    assert {copy.why for copy in plan.in_the_way} == {"the previous generation has another key or key type"}


@pytest.mark.modelled
def test_a_marker_stays_even_where_its_value_is_that_of_an_erased_key(shop: Any, lake: Lake) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert(ROWS)
    marked = {row[0] for row in shop.main.query(f"SELECT id FROM {orders.table.change.sql} WHERE _txn = 0")}
    lake.erase(orders, *range(4))
    assert [row["id"] for row in orders.rows()] == [KEY]
    after = {row[0] for row in shop.main.query(f"SELECT id FROM {orders.table.change.sql} WHERE _txn = 0")}
    assert after == marked
    assert marked & set(range(4))


@pytest.mark.modelled
@pytest.mark.without_views
def test_the_state_of_an_automatic_model_keeps_no_copy(shop: Any, lake: Lake) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in (*range(4), KEY)])
    context, top = orders.session.context, orders.name.sibling("top")
    config = parse_config("top", {"unique_key": "id", "incremental_strategy": "auto"})
    sql = f"SELECT id, amount FROM {orders.name.sql} ORDER BY amount DESC, id LIMIT 2"

    def refresh(rebuild: bool = False) -> list[tuple[int, int]]:
        plan = plan_refresh(context.catalog, top, config, sql, context.query_schema, rebuild=rebuild)
        run_refresh(context, top, config, plan, owner="model.test")
        return sorted(map(tuple, context.query(f"SELECT id, amount FROM {top.sql}")))

    assert refresh() == [(3, 3), (KEY, KEY)]
    orders.apply([], [{"id": KEY}])
    assert refresh() == [(2, 2), (3, 3)]
    lake.erase(orders)
    plan = plan_by_values(context, top, [("id", str(KEY))])
    with pytest.raises(ConfigError, match="state top__state"):
        erase_keys(context, plan)
    assert any(path.startswith("top__state") for path in lake.traces())
    erase_keys(context, plan, force=True)
    assert lake.traces() == []
    orders.upsert([{"id": 9, "amount": 9}])
    assert refresh() == [(3, 3), (9, 9)]
    assert lake.findings() == []
    assert find_state(context.catalog, top) is None
    assert refresh(rebuild=True) == [(3, 3), (9, 9)]
    assert find_state(context.catalog, top) is not None


@pytest.mark.modelled
@pytest.mark.without_views
def test_a_generation_with_another_key_goes_and_who_has_read_it_computes_anew(shop: Any, lake: Lake) -> None:
    old = shop.table("orders", unique_key="amount")
    old.build(ROWS)
    old.upsert([{"id": 9, "amount": 9}])
    model = Model(old, "amount", f"SELECT amount, id FROM {old.name.sql}")
    assert model.refresh() == "FULL (build)"
    orders = shop.table("orders", unique_key="id")
    orders.build(ROWS)
    plan = plan_by_values(orders.session.context, orders.name, [("id", str(KEY))])
    assert [thing.kind for thing in plan.in_the_way] == ["generation"] * 2
    done = erase_keys(orders.session.context, plan, force=True)
    assert len(done.removed) == 2
    assert orders.session.statements.steps.count("forget_previous") == 1
    assert orders.table.previous is None
    assert [path for path in lake.traces() if path.startswith("orders")] == []
    assert lake.findings() == []
    assert model.refresh() == "FULL (history-gone)"
    assert model.rows() == model.rows(model.sql)
    assert model.refresh() == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_a_generation_that_is_dropped_by_hand_is_missed_by_nobody_for_long(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = Model(orders, "id", f"SELECT id, amount FROM {orders.name.sql}")
    copy = shop.consumer("copy", orders)
    model.refresh()
    copy.run()
    first = orders.table
    orders.build(ROWS[1:])
    for side in (first.change, first.base):
        shop.main.query(f"DROP TABLE {side.sql} PURGE")
    assert model.refresh() == "FULL (history-gone)"
    assert model.rows() == model.rows(model.sql)
    with pytest.raises(VersionUnavailable, match="is gone") as told:
        copy.run()
    assert "--full-refresh" in told.value.fix
    copy.run(rebuild=True)
    assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()


def test_a_local_time_that_summer_time_skips_is_no_key(shop: Any) -> None:
    """Spark's cast makes it the time an hour later, which may be a key."""
    orders = shop.table(types={"id": "timestamp", "amount": "int"})
    process = shop.session()
    process.query("SET spark.sql.session.timeZone = Europe/Berlin")
    orders.build([{"id": "2024-03-31T03:30:00+02:00", "amount": 1}])
    with pytest.raises(ConfigError, match="'2024-03-31 02:30:00' is not a value of id"):
        plan_by_values(process.context, orders.name, [("id", "2024-03-31 02:30:00")])
    for text in ("2024-03-31 03:30:00", "2024-03-31 02:30:00+01:00"):
        assert plan_by_values(process.context, orders.name, [("id", text)]).keys == 1
