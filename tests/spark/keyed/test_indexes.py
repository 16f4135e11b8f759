"""A lookup through an index finds the rows that a scan finds, whatever was written or cut off since.

The oracle is a dict of the rows, as in the other stories.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from dbt_arctic.catalog import table_scan
from dbt_arctic.compaction import major
from dbt_arctic.compaction.major import CompactionResult
from dbt_arctic.compaction.rewrite import merge_small_files
from dbt_arctic.errors import ArcticError, ConfigError
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.secondary_index import PROPERTY_COVERED, index_name
from dbt_arctic.maintenance import index_lookup
from dbt_arctic.maintenance.claims import Claims
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.expire import expire_versions
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.key_values import ColumnValue
from dbt_arctic.maintenance.restore import undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.table_read import read_table
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.store import secondary_indexes
from dbt_arctic.store.secondary_indexes import apply_indexes, drop_indexes, refresh_index, refresh_indexes
from dbt_arctic.store.state import load_change
from tests.spark.keyed.injected_failures import IN_TURN

Row = dict[str, Any]
TYPES = {"id": "bigint", "customer": "int", "v": "int"}
CUSTOMERS = range(6)


class Lookups:
    """Whether each lookup has used an index."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used: list[bool] = []
        find = index_lookup.keys_by_value

        def noting(*arguments: Any) -> Any:
            found = find(*arguments)
            self.used.append(found is not None)
            return found

        monkeypatch.setattr("dbt_arctic.maintenance.table_read.keys_by_value", noting)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Lookups:
    return Lookups(monkeypatch)


def rows_where(orders: Any, **where: Any) -> list[Row]:
    rows = read_table(orders.session.catalog, orders.name, where=where).to_pylist()
    return sorted(rows, key=lambda row: tuple(row[column] for column in orders.key))


def require_rows(orders: Any, rows: dict[int, Row]) -> None:
    """Each value is found, and one that no row has, and NULL."""
    for customer in (*CUSTOMERS, 99, None):
        expected = sorted(
            (row for row in rows.values() if row["customer"] == customer), key=lambda row: row["id"]
        )
        assert rows_where(orders, customer=customer) == expected


def findings(orders: Any) -> list[Any]:
    session = orders.session
    inventory = take_inventory(session.catalog, "lake", session.schema)
    now = session.context.now_ms()
    return verify_schema(session.catalog, inventory, now, lambda path: None, session.query)


def steps_of(chance: random.Random, orders: Any) -> list[Callable[[dict[int, Row]], dict[int, Row]]]:
    """The operations of a story: each takes the rows and returns those after it."""
    context = orders.session.context

    def row(key: int) -> Row:
        return {"id": key, "customer": chance.choice([*CUSTOMERS, None]), "v": chance.randrange(9)}

    def upsert(rows: dict[int, Row]) -> dict[int, Row]:
        new = [row(key) for key in chance.sample(range(12), 3)]
        gone = [key for key in chance.sample(range(12), 2) if key not in {one["id"] for one in new}]
        orders.apply(new, [{"id": key, "v": 9} for key in gone])
        return {key: one for key, one in rows.items() if key not in gone} | {one["id"]: one for one in new}

    def compact(rows: dict[int, Row]) -> dict[int, Row]:
        orders.compact(chance.choice([0, 0, 3600]))
        return rows

    def only_merge(rows: dict[int, Row]) -> dict[int, Row]:
        """As if the process had ended between the merge and the index."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(major, "refresh_indexes", lambda *arguments: [])
            orders.compact(0)
        return rows

    def refresh(rows: dict[int, Row]) -> dict[int, Row]:
        refresh_index(context, orders.table, "customer")
        return rows

    def roll(rows: dict[int, Row]) -> dict[int, Row]:
        then = orders.version.token
        upsert(rows)
        roll_back(context, orders.name, then)
        return rows

    def rebuild(rows: dict[int, Row]) -> dict[int, Row]:
        orders.build(rows.values())
        if chance.random() < 0.5:
            apply_indexes(context, orders.table, ["customer"])
        return rows

    def undo(rows: dict[int, Row]) -> dict[int, Row]:
        orders.build([row(key) for key in range(3)])
        undo_full_refresh(context, orders.name)
        return rows

    def drop(rows: dict[int, Row]) -> dict[int, Row]:
        drop_indexes(context, orders.table)
        apply_indexes(context, orders.table, ["customer"])
        return rows

    return [upsert, upsert, upsert, upsert, compact, only_merge, refresh, roll, rebuild, undo, drop]


@pytest.mark.parametrize("sequence", [False, True], ids=["arrival", "sequence"])
def test_a_story_of_lookups(shop: Any, lookups: Lookups, sequence: bool) -> None:
    chance = random.Random(11 + sequence)
    orders = shop.table(types=TYPES, **({"sequence_by": "v"} if sequence else {}))
    orders.build([{"id": key, "customer": key % 4, "v": 0} for key in range(8)])
    apply_indexes(orders.session.context, orders.table, ["customer"])
    rows = {row["id"]: row for row in orders.rows()}
    for _ in range(22):
        steps = steps_of(chance, orders)
        if sequence:
            steps = [step for step in steps if step.__name__ not in ("roll", "undo")]
        rows = chance.choice(steps)(rows)
        if sequence:  # a late row may lose
            rows = {row["id"]: row for row in orders.rows()}
        require_rows(orders, rows)
        assert findings(orders) == []
    assert sum(lookups.used) > len(lookups.used) / 2
    assert not all(lookups.used)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "changes since then are forgotten": lambda patch: patch.setattr(
        index_lookup, "_since", lambda *arguments: []
    ),
    "the index of another generation": lambda patch: patch.setattr(
        secondary_indexes,
        "_usable",
        lambda table, column, state, change, at: secondary_indexes.UsableIndex(
            index_name(table, column), state.current_snapshot_id, secondary_indexes.LogRange((), ())
        ),
    ),
    "the end of the log only": lambda patch: patch.setattr(
        secondary_indexes,
        "log_range",
        lambda history, after: (
            lambda found: found and found.__class__(found.transactions, found.readable_at[:1])
        )(real_log_range(history, after)),
    ),
}
real_log_range = secondary_indexes.log_range


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_lookup_is_detected(shop: Any, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    orders = shop.table(types=TYPES)
    orders.build([{"id": 1, "customer": 1, "v": 0}])
    context = orders.session.context
    apply_indexes(context, orders.table, ["customer"])
    MUTANTS[mutant](monkeypatch)
    orders.upsert([{"id": 2, "customer": 2, "v": 0}])
    if mutant == "the end of the log only":
        monkeypatch.setattr(major, "refresh_indexes", lambda *arguments: [])
        orders.compact(0)
        orders.upsert([{"id": 3, "customer": 3, "v": 0}])
    with pytest.raises(AssertionError):
        assert rows_where(orders, customer=2) == [{"id": 2, "customer": 2, "v": 0}]


VALUES: dict[str, list[Any]] = {
    "decimal(20,5)": [Decimal("1.50000"), Decimal("-99999999999999.99999")],
    "timestamp": [datetime(2020, 1, 1, 0, 0, 0, 1, timezone.utc), datetime(1, 1, 1, tzinfo=timezone.utc)],
    "timestamp_ntz": [datetime(2020, 3, 29, 2, 30), datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "date": [date(2020, 2, 29), date(1, 1, 1)],
    "binary": [b"\x00\xff", b""],
    "string": ["ß", "", "A", "a", "a ", "x" * 40, "it's `quoted`"],
    "bigint": [-(2**63), 2**63 - 1],
}


def test_values_of_each_type_are_found(shop: Any, lookups: Lookups) -> None:
    spark, context = shop.main.connection.session, shop.main.context
    for place, (type_, values) in enumerate(VALUES.items()):
        types = {"a": "int", "b": "string", "Wert ": type_}
        orders = shop.table(f"t{place}", types=types, unique_key=["a", "b"], buckets=1)
        rows = [(number, "k", value) for number, value in enumerate(values)]
        spark.createDataFrame(rows, f"a int, b string, `Wert ` {type_}").createOrReplaceTempView("batch")
        orders.build_sql("SELECT * FROM batch")
        apply_indexes(context, orders.table, ["Wert "])
        orders.upsert_sql("SELECT a + 100 AS a, b, `Wert ` FROM batch")
        for number, value in enumerate(values):
            read = read_table(shop.main.catalog, orders.name, ["a"], where={"wert ": [value]})
            assert sorted(row["a"] for row in read.to_pylist()) == [number, number + 100]
        both = read_table(shop.main.catalog, orders.name, ["a"], where={"Wert ": values, "a": [0, 101]})
        assert sorted(row["a"] for row in both.to_pylist()) == [0, 101]
    assert all(lookups.used)


def test_a_lookup_opens_few_files(shop: Any, lookups: Lookups, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = shop.table(types=TYPES, buckets=4)
    orders.build_sql("SELECT id, CAST(id % 1000 AS INT) AS customer, 0 AS v FROM range(4000)")
    apply_indexes(orders.session.context, orders.table, ["customer"])
    opened: list[str] = []
    open_file = table_scan.open_file

    def opening(location: str, properties: Any) -> Any:
        opened.append(location)
        return open_file(location, properties)

    monkeypatch.setattr(table_scan, "open_file", opening)
    assert [row["id"] for row in rows_where(orders, customer=7)] == [7, 1007, 2007, 3007]
    assert sum("__index_customer" in file for file in opened) == 1
    assert lookups.used == [True]


def test_a_lookup_without_an_index_reads_the_table(shop: Any, lookups: Lookups) -> None:
    orders = shop.table(types=TYPES)
    orders.build([{"id": key, "customer": key % 4, "v": key} for key in range(8)])
    orders.upsert([{"id": 1, "customer": 2, "v": 9}])
    rows = {row["id"]: row for row in orders.rows()}
    require_rows(orders, rows)
    assert rows_where(orders, customer=[1, 2], v=9) == [rows[1]]
    assert not any(lookups.used)
    limited = read_table(orders.session.catalog, orders.name, ["id"], limit=1, where={"customer": 2})
    assert limited.num_rows == 1
    by_key = read_table(orders.session.catalog, orders.name, keys=[1, 2], where={"customer": 2})
    assert sorted(row["id"] for row in by_key.to_pylist()) == [1, 2]
    assert rows_where(orders, customer=[]) == []
    with pytest.raises(ConfigError, match="has no column custmer"):
        rows_where(orders, custmer=1)
    with pytest.raises(ConfigError, match="a value of customer is not of the type"):
        rows_where(orders, customer="1")


def test_rows_of_a_plain_table_are_found(shop: Any) -> None:
    session = shop.main
    name = session.name("plain")
    session.query(f"CREATE TABLE {name.sql} (id INT, s STRUCT<a: INT>, w STRING) USING iceberg")
    session.query(
        f"INSERT INTO {name.sql} VALUES (1, NULL, 'x'), (2, named_struct('a', 1), NULL), (3, NULL, 'x')"
    )
    read = read_table(session.catalog, name, ["id"], where={"W": "x"})
    assert sorted(row["id"] for row in read.to_pylist()) == [1, 3]
    assert read_table(session.catalog, name, ["id"], where={"w": None}).to_pylist() == [{"id": 2}]
    assert read_table(session.catalog, name, ["id"], where={"id": [2, 9]}, limit=5).to_pylist() == [{"id": 2}]
    with pytest.raises(ArcticError, match="has fields or elements"):
        read_table(session.catalog, name, ["id"], where={"s": {"a": 1}})


def test_an_interrupted_index_costs_time_and_no_row(shop: Any, troubled: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([{"id": key, "customer": key % 4, "v": key} for key in range(8)])
    rows = {row["id"]: row for row in orders.rows()}
    context = orders.session.context
    for place, attempt in troubled("die", *IN_TURN):
        key = 100 + place
        orders.upsert([{"id": key, "customer": 3, "v": 0}])
        rows[key] = {"id": key, "customer": 3, "v": 0}

        def run(session: Any, place: int = place) -> None:
            table = orders.on(session).table
            wanted = [] if place % 3 == 2 else ["customer"]
            apply_indexes(session.context, table, wanted)
            refresh_indexes(session.context, table, load_change(session.catalog, table))

        attempt(run)
        require_rows(orders, rows)
        attempt.land()
        require_rows(orders, rows)
    apply_indexes(context, orders.table, ["customer"])
    refresh_index(context, orders.table, "customer")
    require_rows(orders, rows)
    assert findings(orders) == []


def test_two_processes_extend_an_index(shop: Any, lookups: Lookups) -> None:
    """The second commit covers nothing, because it was based on an older state. The next one repairs it."""
    orders = shop.table(types=TYPES)
    orders.build([{"id": 1, "customer": 1, "v": 0}])
    context = orders.session.context
    apply_indexes(context, orders.table, ["customer"])
    orders.upsert([{"id": 2, "customer": 2, "v": 0}])

    def meanwhile(step: str) -> None:
        if step == "extend_index":
            orders.session.statements.before = None
            table = orders.table
            name = index_name(table, "customer")
            # Another process builds the index from an older version, and publishes it now.
            context.run("older", f"DELETE FROM {name.sql} WHERE true", table)

    orders.session.statements.before = meanwhile
    assert refresh_index(context, orders.table, "customer") == "extended"
    rows = {key: {"id": key, "customer": key, "v": 0} for key in (1, 2)}
    require_rows(orders, rows)
    assert not any(lookups.used)
    assert refresh_index(context, orders.table, "customer") == "built"
    require_rows(orders, rows)
    assert any(lookups.used)


def test_stale_entries_and_small_files_go(
    shop: Any, lookups: Lookups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secondary_indexes, "_FEW_ENTRIES", 0)
    monkeypatch.setattr(secondary_indexes, "_MANY_FILES", 2)
    orders = shop.table(types=TYPES, buckets=1)
    orders.build([{"id": key, "customer": 1, "v": 0} for key in range(3)])
    session = orders.session
    apply_indexes(session.context, orders.table, ["customer"])
    done: list[str] = []
    results: list[CompactionResult] = []
    for customer in range(2, 9):
        orders.upsert([{"id": key, "customer": customer, "v": 0} for key in range(3)])
        steps = session.log_of(lambda: results.append(orders.compact(0)))
        done += [step for step in steps if step.endswith("_index")]
        assert [row["id"] for row in rows_where(orders, customer=customer)] == [0, 1, 2]
        assert rows_where(orders, customer=customer - 1) == []
    # As of any other plain table.
    merge_small_files(session.context, index_name(orders.table, "customer"))
    assert [row["id"] for row in rows_where(orders, customer=8)] == [0, 1, 2]
    assert all(lookups.used)
    assert {"extend_index", "rewrite_index", "fill_index"} == set(done)
    reported = {text for result in results for text in result.indexes}
    assert reported == {"index of customer extended", "index of customer built"}
    ((entries,),) = session.query(f"SELECT count(*) FROM {index_name(orders.table, 'customer').sql}")
    assert entries <= 3 * (secondary_indexes._STALE + 1)


def test_the_commits_of_an_index(shop: Any) -> None:
    """One commit for the entries of a compaction, none for a write, and none if nothing has changed."""
    orders = shop.table(types=TYPES)
    orders.build([{"id": 1, "customer": 1, "v": 0}])
    session, context = orders.session, orders.session.context
    apply_indexes(context, orders.table, ["customer"])
    assert session.log_of(lambda: orders.upsert([{"id": 2, "customer": 2, "v": 0}])) == ["upsert"]
    assert session.log_of(lambda: apply_indexes(context, orders.table, ["customer"])) == []
    steps = session.log_of(lambda: orders.compact(0))
    assert [step for step in steps if "index" in step] == ["extend_index"]
    assert session.log_of(lambda: refresh_index(context, orders.table, "customer")) == []
    assert session.log_of(lambda: apply_indexes(context, orders.table, [])) == ["set_indexes", "drop_index"]


def test_an_erased_key_is_in_no_index(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([{"id": key, "customer": key, "v": 0} for key in range(4)])
    session, context = orders.session, orders.session.context
    apply_indexes(context, orders.table, ["customer"])
    name = index_name(orders.table, "customer")
    plan = plan_by_values(context, orders.name, [ColumnValue("id", "2")])
    assert [(one.kind, one.what) for one in plan.in_the_way] == [("index", name.identifier)]
    erase_keys(context, plan, force=True)
    assert session.catalog.load_table(name.schema, name.identifier) is None
    apply_indexes(context, orders.table, ["customer"])
    assert sorted(session.query(f"SELECT customer FROM {name.sql}")) == [(0,), (1,), (3,)]


def test_another_table_has_the_name(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([{"id": 1, "customer": 1, "v": 0}])
    name = index_name(orders.table, "customer")
    orders.session.query(f"CREATE TABLE {name.sql} (x INT) USING iceberg")
    orders.session.query(f"INSERT INTO {name.sql} VALUES (5)")
    with pytest.raises(ConfigError, match="is not an index of dbt-arctic"):
        apply_indexes(orders.session.context, orders.table, ["customer"])
    assert orders.session.query(f"SELECT x FROM {name.sql}") == [(5,)]


def test_rows_that_an_index_misses_are_reported(shop: Any) -> None:
    orders = shop.table(types=TYPES)
    orders.build([{"id": key, "customer": key, "v": 0} for key in range(4)])
    session = orders.session
    apply_indexes(session.context, orders.table, ["customer"])
    name = index_name(orders.table, "customer")
    state = session.catalog.load_table(name.schema, name.identifier)
    covered = state.history()[0].summary[PROPERTY_COVERED]
    # Another program deletes entries, and repeats what the newest commit covers.
    session.query(f"SET `spark.sql.iceberg.snapshot-property.{PROPERTY_COVERED}`={quote(covered)}")
    session.query(f"DELETE FROM {name.sql} WHERE customer = 2")
    session.query(f"RESET `spark.sql.iceberg.snapshot-property.{PROPERTY_COVERED}`")
    (finding,) = findings(orders)
    assert (finding.kind, finding.where) == ("index-misses-rows", name.dotted)


def test_expired_commits(shop: Any) -> None:
    """An index whose log has expired is not used, and is built again."""
    orders = shop.table(types=TYPES)
    orders.build([{"id": 1, "customer": 1, "v": 0}])
    context = orders.session.context
    apply_indexes(context, orders.table, ["customer"])
    for key in (2, 3):
        orders.upsert([{"id": key, "customer": key, "v": 0}])
    expire_versions(context, orders.name, Claims(), context.now_ms() + 1)
    require_rows(orders, {key: {"id": key, "customer": key, "v": 0} for key in (1, 2, 3)})
    refresh_index(context, orders.table, "customer")
    require_rows(orders, {key: {"id": key, "customer": key, "v": 0} for key in (1, 2, 3)})
