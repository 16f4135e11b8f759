"""Sources that are captured from the log of a PostgreSQL: each change once, in the order of the commits."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from threading import Thread
from typing import Any

import psycopg
import pytest
import yaml

from dbt_arctic.databases import postgres, postgres_versions
from dbt_arctic.databases.address import parse_address
from dbt_arctic.databases.api import RowQuery, TableName, identity_in, shape_of
from dbt_arctic.databases.postgres import PostgresTable
from dbt_arctic.databases.replication_slot import PostgresSlot, open_slot
from dbt_arctic.errors import ConfigError, ServerUnreachable, UnknownRelation, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.sources import capture_changes, capture_snapshot
from dbt_arctic.sources.capture_evolution import require_old_keys
from dbt_arctic.sources.capture_settings import (
    CapturedColumns,
    CaptureSource,
    parse_capture,
    resolve_columns,
)
from dbt_arctic.sources.capture_table import Captured, CapturedRange, load_capture
from tests.extent import extent
from tests.matrix.components import PASSWORD

from .conftest import Shop, Terminal
from .database_servers import Server
from .test_database_sources import POSTGRES_VALUES

SLOT = "arctic_dev"


@pytest.fixture
def server(postgres_server: Server) -> Iterator[Server]:
    """The server, with two published tables and a slot."""
    postgres_server.sql(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text, score numeric(10,2))",
        "CREATE TABLE orders (region text, id bigint, at timestamptz, PRIMARY KEY (region, id))",
        f"CREATE PUBLICATION {SLOT} FOR TABLE customers, orders",
        f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')",
    )
    yield postgres_server
    postgres_server.sql(
        f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{SLOT}'",
        f"DROP PUBLICATION IF EXISTS {SLOT}",
        "DROP TABLE customers, orders",
    )


def declare(shop: Shop, server: Server, **settings: dict[str, Any]) -> None:
    tables = [
        {"name": name, "config": {"meta": {"arctic": settings.get(name, {})}}}
        for name in ("customers", "orders")
    ]
    shared = {"from": "postgres", "url": server.url, "slot": SLOT, **settings.get("shared", {})}
    source = {"name": "crm", "schema": "nowhere", "config": {"meta": {"arctic": shared}}, "tables": tables}
    shop.file("models/crm.yml", yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    for output in profile["shop"]["outputs"].values():
        output["jdbc"] = {"crm": {"password": PASSWORD}}
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")
    for name, key in (("customers", "id"), ("orders", "['region', 'id']")):
        key = key if key.startswith("[") else f"'{key}'"
        shop.model(
            name,
            f"{{{{ config(materialized='incremental', unique_key={key}, sequence_by='_source_sequence', "
            f"buckets=1) }}}}\nselect * from {{{{ incremental_pull(source('crm', '{name}')) }}}}",
        )


COLUMNS = {"customers": "id, name, score", "orders": "region, id, at"}
TEXTS = {
    "customers": ("CAST(id AS STRING), name, CAST(score AS STRING)", "id::text, name, score::text"),
    "orders": (
        "region, CAST(id AS STRING), date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
        "region, id::text, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
    ),
}


def assert_equal(shop: Shop, server: Server) -> None:
    for name, (spark, text) in TEXTS.items():
        stored = sorted(shop.sql(f"SELECT {spark} FROM lake.{shop.schema}.{name}"), key=repr)
        there = sorted(server.sql(f"SELECT {text} FROM {name}"), key=repr)
        assert list(map(tuple, stored)) == there, name


def confirmed(server: Server) -> int:
    ((found,),) = server.sql(
        f"SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = '{SLOT}'"
    )
    return int(found)


class Changes:
    """Random transactions."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.chance = server, random.Random(seed)

    def change(self, times: int) -> None:
        for _ in range(times):
            self.server.sql("BEGIN", *(self.one() for _ in range(self.chance.randrange(1, 5))), "COMMIT")

    def one(self) -> str:
        draw = self.chance
        if draw.random() < 0.5:
            key, other = draw.randrange(8), draw.randrange(8)
            what = draw.random()
            if what < 0.2:
                return f"DELETE FROM customers WHERE id = {key}"
            if what < 0.4:
                free = f"NOT EXISTS (SELECT 1 FROM customers WHERE id = {other})"
                return f"UPDATE customers SET id = {other} WHERE id = {key} AND {free}"
            name = draw.choice(["NULL", "''", "'Öl | \"x\"'", "'null'", "'t'", f"'n{draw.randrange(99)}'"])
            score = draw.choice(["NULL", "0", f"{draw.randrange(-(10**9), 10**9) / 100:.2f}"])
            return (
                f"INSERT INTO customers VALUES ({key}, {name}, {score}) "
                "ON CONFLICT (id) DO UPDATE SET name = excluded.name, score = excluded.score"
            )
        key = draw.randrange(6)
        if draw.random() < 0.3:
            return f"DELETE FROM orders WHERE id = {key}"
        at = draw.choice(
            ["NULL", f"'2026-0{draw.randrange(1, 9)}-0{draw.randrange(1, 9)} 10:00:00.{key}+02'"]
        )
        return (
            f"INSERT INTO orders VALUES ('{draw.choice('ab')}', {key}, {at}) "
            "ON CONFLICT (region, id) DO UPDATE SET at = excluded.at"
        )


def test_models_have_the_rows_of_the_database(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = Changes(server, 1)
    looked, everything = list[int](), PostgresSlot.changes

    def counted(slot: Any, since: int, until: int, limit: int) -> Any:
        looked.append(limit)
        return everything(slot, since, until, limit)

    monkeypatch.setattr(PostgresSlot, "changes", counted)
    declare(shop, server)
    changes.change(5)
    shop.dbt("run")
    assert_equal(shop, server)
    for _ in range(extent(2, 12)):
        changes.change(changes.chance.randrange(1, 4))
        shop.dbt("run")
        assert_equal(shop, server)
        # All models of a run read what one look at the slot has found.
        assert sum("INSERT INTO" in one and "crm__capture" in one for one in shop.script.ran) <= 1
    # Many changes are taken in several commits. Each transaction has more messages than changes.
    monkeypatch.setattr(capture_changes, "_MESSAGES_OF_COMMIT", 5)
    looked.clear()
    changes.change(6)
    shop.dbt("run")
    assert len(looked) > 2
    monkeypatch.setattr(capture_changes, "_MESSAGES_OF_COMMIT", 100_000)
    assert_equal(shop, server)
    # Where the commits do not say what they have, because they have expired, the messages do.
    with monkeypatch.context() as expired:
        expired.setattr(Captured, "changes_since", lambda *_: None)
        changes.change(2)
        shop.dbt("run")
        assert_equal(shop, server)
    # PostgreSQL 14 sends transactions without changes. The slot moves behind them.
    with monkeypatch.context() as empty:
        at, looks = confirmed(server), iter([False])

        def first_without_changes(slot: Any, since: int, until: int, limit: int) -> Any:
            return everything(slot, since, until, limit)._replace(is_all=next(looks, True))

        server.sql("CREATE TABLE other AS SELECT 1 AS x", "DROP TABLE other")
        empty.setattr(PostgresSlot, "changes", first_without_changes)
        shop.dbt("run")
        assert confirmed(server) >= at
    # Nothing is new: no statement is sent, and nothing is committed.
    before = shop.catalog.load_table(shop.schema, "crm__capture")
    shop.dbt("run")
    assert not [one for one in shop.script.ran if "INSERT" in one or "VIEW" in one]
    assert shop.catalog.load_table(shop.schema, "crm__capture") == before
    # Rows are shown, and queries compiled, without taking anything.
    changes.change(3)
    server.sql("UPDATE customers SET score = 5", "ANALYZE customers")
    at = confirmed(server)
    shop.dbt("compile")
    shop.dbt("show", "--select", "customers")
    shop.dbt("run", "--empty")
    assert confirmed(server) == at
    (lag,) = Terminal(shop).json("lag", "customers")
    looked.clear()
    planned, _ = Terminal(shop).json("ingest", "plan")
    assert len(looked) == 1, "the slot is read once for all tables"
    (waiting,) = lag["upstreams"]
    assert waiting["changes"] == planned["changes"] > 0
    ((end, rows),) = server.sql("SELECT pg_current_wal_flush_lsn(), count(*) FROM customers")
    ((is_before,),) = server.sql(f"SELECT '{waiting['position']}'::pg_lsn < '{waiting['end']}'::pg_lsn")
    assert is_before
    assert server.sql(f"SELECT '{waiting['end']}'::pg_lsn <= '{end}'::pg_lsn") == [(True,)]
    assert waiting["full_refresh"] == {"rows": rows, "size_bytes": None}
    assert (planned["reads_all"], planned["problem"]) == (False, "")
    # A transaction that commits between two models of a run is read by neither of them, or by both.
    take, both = capture_changes.Capture.take, ["customers VALUES (88, 'x', 1)", "orders VALUES ('x', 88)"]

    def then_changed(*given: Any) -> Any:
        read = take(*given)
        if both:
            server.sql("BEGIN", *(f"INSERT INTO {both.pop()}" for _ in range(2)), "COMMIT")
        return read

    with monkeypatch.context() as between:
        between.setattr(capture_changes.Capture, "take", then_changed)
        shop.dbt("run")
    assert not both
    assert not [*shop.rows("customers WHERE id = 88"), *shop.rows("orders WHERE id = 88")]
    shop.dbt("run")
    assert_equal(shop, server)


def captured_range(shop: Shop) -> CapturedRange:
    found = load_capture(shop.catalog, Name("lake", shop.schema, "crm__capture"), "crm.customers")
    assert found is not None
    assert found[1] is not None
    return found[1].range


def test_a_change_is_captured_once_wherever_a_run_ends(shop: Shop, server: Server) -> None:
    """The slot moves after the commit of the changes, and only then."""
    changes = Changes(server, 2)
    declare(shop, server)
    changes.change(3)
    shop.dbt("run")
    for at in range(extent(7, 14)):
        for after in extent((True,), (False, True)):
            changes.change(2)
            shop.end({"crm__capture": (at, after)})
            # With another model, which takes the changes again, nothing would be left to the next run.
            shop.try_dbt("run", "--select", "customers")
            shop.end({})
            assert confirmed(server) <= captured_range(shop).end
    shop.dbt("run")
    assert_equal(shop, server)
    places = "count(*), count(DISTINCT message)"
    ((rows, distinct),) = shop.rows("crm__capture", places)
    assert rows == distinct


def test_changes_that_another_reader_took_are_missed_by_nobody(shop: Shop, server: Server) -> None:
    changes = Changes(server, 3)
    declare(shop, server)
    shop.dbt("run")
    changes.change(5)
    server.sql(f"SELECT pg_replication_slot_advance('{SLOT}', pg_current_wal_lsn())")
    changes.change(5)
    said = shop.fail("run")
    assert said.count("AR-403") == 2
    assert "by another reader" in said
    assert "--full-refresh --select customers" in said
    # The table that is loaded again has everything. The other one still says what it lacks.
    shop.dbt("run", "--full-refresh", "--select", "customers")
    assert "orders has not read are lost" in shop.fail("run", "--select", "orders")
    shop.dbt("run", "--full-refresh", "--select", "orders")
    changes.change(5)
    shop.dbt("run")
    assert_equal(shop, server)


def test_a_restored_slot_is_noticed_by_other_transactions_at_captured_positions(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the server's storage has the same timeline, and its log soon has the same positions."""
    changes = Changes(server, 6)
    declare(shop, server)
    shop.dbt("run")
    copy = "SELECT pg_copy_logical_replication_slot('{}', '{}')"
    server.sql(copy.format(SLOT, "before"))
    try:
        changes.change(4)
        shop.dbt("run")
        at = confirmed(server)
        drop = f"SELECT pg_drop_replication_slot('{SLOT}')"
        server.sql(drop, copy.format("before", SLOT))
        assert confirmed(server) < at
        changes.change(2)
        shop.dbt("run")  # the slot of a run that ended before it moved it
        assert_equal(shop, server)
        server.sql(drop, copy.format("before", SLOT))
        everything = PostgresSlot.changes

        def restored(slot: Any, since: int, until: int, limit: int) -> Any:
            batch = everything(slot, since, until, limit)
            return batch._replace(changes=[one._replace(at_ms=one.at_ms + 1) for one in batch.changes])

        with monkeypatch.context() as patched:
            patched.setattr(PostgresSlot, "changes", restored)
            assert "that of a restored server" in shop.fail("run", "--select", "customers")
            shop.dbt("run", "--full-refresh")
        assert_equal(shop, server)
    finally:
        server.sql("SELECT pg_drop_replication_slot('before')")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait at most half a minute."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it has not happened")


def test_a_commit_that_is_not_visible_yet_is_read_later(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a synchronous standby, a commit is in the log before other transactions see its rows."""
    declare(shop, server)
    shop.model(
        "each_name",
        "{{ config(materialized='incremental', incremental_strategy='append') }}\n"
        "select id, name from {{ incremental_pull(source('crm', 'customers')) }}",
    )
    both = ("run", "--select", "customers", "each_name")
    server.sql("INSERT INTO customers VALUES (1, 'a', 1)")
    with not_visible(server, "INSERT INTO customers VALUES (2, 'waits', 1)"):
        shop.dbt(*both)
        assert "waits" in shop.rows("crm__capture", "message")[-1][0]
        assert shop.rows("customers", "id") == shop.rows("each_name", "id") == [(1,)]
        # If a later commit is visible, the rows are those of no position. A change would be there twice.
        server.sql("SET synchronous_commit = local", "INSERT INTO customers VALUES (3, 'c', 1)")
        monkeypatch.setattr(capture_snapshot, "_LONGEST_PAUSE_S", 0)
        said = shop.fail("run", "--full-refresh", "--select", "each_name")
        assert "cannot be read as of one position of the log" in said
    shop.dbt(*both)
    assert shop.rows("customers", "id") == shop.rows("each_name", "id") == [(1,), (2,), (3,)]
    # The same if all rows are read again: they do not win over the change.
    server.sql(
        "UPDATE customers SET name = 'b'", "ALTER TABLE customers ALTER name TYPE text USING name || '!'"
    )
    with not_visible(server, "UPDATE customers SET name = 'late' WHERE id = 2"):
        # A later commit that is visible: its delete does not win over the row that is read.
        server.sql(
            "SET synchronous_commit = local",
            "DELETE FROM customers WHERE id = 1",
            "INSERT INTO customers VALUES (1, 'back', 1)",
        )
        shop.dbt("run", "--select", "customers")
        assert shop.rows("customers", "id, name") == [(1, "back"), (2, "b!"), (3, "b!")]
    shop.dbt("run", "--select", "customers")
    assert shop.rows("customers", "id, name") == [(1, "back"), (2, "late"), (3, "b!")]


@contextmanager
def not_visible(server: Server, statement: str) -> Iterator[None]:
    """During the block, the commit of a statement is in the log, and waits for a standby that is missing."""
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'missing'")
    server.sql("SELECT pg_reload_conf()")
    waiting = Thread(target=server.sql, args=(statement,))
    try:
        wait_until(lambda: bool(server.sql("SHOW synchronous_standby_names")[0][0]))
        waiting.start()
        wait_until(lambda: bool(server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")))
        yield
    finally:
        server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        server.sql("SELECT pg_reload_conf()")
        if waiting.is_alive():
            waiting.join(30)


def test_the_rows_that_a_run_reads_are_not_written_again_meanwhile(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction from before finds no rows in a table that was written again, so that has to wait."""
    server.sql("INSERT INTO customers VALUES (1, 'a', 1)")
    followed = PostgresTable(parse_address(server.url, "", PASSWORD, "t"), "public.customers", "t", SLOT)
    with closing(followed.begin()) as transaction:
        assert transaction.share()
        for statement in ("ALTER TABLE customers ALTER score TYPE numeric(20,3)", "TRUNCATE customers"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                server.sql("SET lock_timeout = '100ms'", statement)
    # Rows that a policy hides from the user would be missing.
    server.sql(
        f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
        "GRANT SELECT ON customers TO reader",
        "ALTER TABLE customers ENABLE ROW LEVEL SECURITY",
    )
    try:
        reader = replace(followed, address=parse_address(server.url, "reader", PASSWORD, "t"))
        with pytest.raises(ConfigError, match="row-level security hides rows"):
            reader.begin().close()
        assert "row_security = off" in reader.read(RowQuery(())).options["sessionInitStatement"]
        server.sql('ALTER ROLE "reader" BYPASSRLS')
        reader.begin().close()
    finally:
        server.sql("REVOKE ALL ON customers FROM reader", "DROP ROLE reader")
    missing = replace(followed, name="public.missing")
    with pytest.raises(UnknownRelation):
        missing.begin()
    # The readers of Spark wait no longer than the run does.
    assert "lock_timeout = '30s'" in followed.read(RowQuery(())).options["sessionInitStatement"]
    with closing(server.connect()) as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE customers")
        quick = tuple(one.replace("30s", "100ms") for one in postgres._BEFORE)
        monkeypatch.setattr(postgres, "_BEFORE", quick)
        with pytest.raises(ServerUnreachable, match="lock timeout"):
            followed.begin()


def test_a_commit_that_is_visible_is_in_the_log_before_it_is_waited_for(server: Server) -> None:
    """An asynchronous commit may reach the disk seconds later, and a slot reads what is there."""
    server.sql("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.sql("SELECT pg_reload_conf()")
    address = parse_address(server.url, "", PASSWORD, "t")
    try:
        with open_slot(address, SLOT, SLOT, "t") as log:
            server.sql("SET synchronous_commit = off", "INSERT INTO customers VALUES (1, 'a', 1)")
            log.write_visible()
            changes = log.changes(0, log.state().current, 100).changes
        assert [one.operation for one in changes] == ["insert"]
    finally:
        server.sql("ALTER SYSTEM RESET wal_writer_delay")
        server.sql("SELECT pg_reload_conf()")


def test_partitions_log_old_values_by_an_identity_of_their_own(server: Server) -> None:
    """That of the table says nothing of them, and that of now nothing of what was logged before."""
    server.sql(
        "CREATE TABLE parts (id int, mail text NOT NULL, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "CREATE UNIQUE INDEX high_mail ON high (mail)",
        "CREATE PUBLICATION parts FOR TABLE parts WITH (publish_via_partition_root = true)",
        "SELECT pg_create_logical_replication_slot('parts', 'pgoutput')",
    )
    address = parse_address(server.url, "", PASSWORD, "t")
    followed = PostgresTable(address, "public.parts", "t", "parts")
    source, place = parse_capture("crm.parts", {"slot": "parts"}), TableName("public", "parts")

    def resolved(key: str) -> CapturedColumns:
        with closing(followed.begin()) as transaction:
            return resolve_columns(replace(source, key=(key,)), transaction.table, place, "m")

    def identities() -> list[Any]:
        with open_slot(address, "parts", "parts", "t") as log:
            found = log.changes(0, log.state().current, 100).changes
            log.advance(found[-1].end)
        return [(one.operation, identity_in(one.shape)) for one in found]

    try:
        resolved("id")
        server.sql("ALTER TABLE parts REPLICA IDENTITY FULL")
        with pytest.raises(ConfigError, match="old values of mail") as error:
            resolved("mail")
        assert '"low" REPLICA IDENTITY FULL; ALTER TABLE "public"."high" REPLICA' in error.value.fix
        server.sql("INSERT INTO parts VALUES (1, 'a'), (11, 'b')", "DELETE FROM parts WHERE id = 1")
        assert identities() == [("insert", None)] * 2 + [("delete", ("id",))]
        server.sql(
            "ALTER TABLE high REPLICA IDENTITY USING INDEX high_mail",
            "UPDATE parts SET id = 12",
            "ALTER TABLE high REPLICA IDENTITY FULL",
            "UPDATE parts SET id = 13",
        )
        server.sql("ALTER TABLE low REPLICA IDENTITY FULL")
        columns = resolved("mail")
        assert identities() == [("update", ("mail",)), ("update", None)]
        shapes = {shape_of(("id", "mail"), ("mail",)), shape_of(("id", "mail"))}
        require_old_keys(source, columns.events, shapes, "m")
        with pytest.raises(VersionUnavailable, match="old values of id"):
            require_old_keys(source, resolved("id").events, shapes, "m")
    finally:
        server.sql("SELECT pg_drop_replication_slot('parts')", "DROP PUBLICATION parts", "DROP TABLE parts")


def test_generated_columns_are_read_if_they_are_published(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PostgreSQL 18 can: its list of published columns has them then. That of 15 always has."""
    server.sql("ALTER TABLE customers ADD twice bigint GENERATED ALWAYS AS (id * 2) STORED")
    followed = PostgresTable(parse_address(server.url, "", PASSWORD, "t"), "public.customers", "t", SLOT)
    source = parse_capture("crm.customers", {"slot": SLOT})
    declared = parse_capture("crm.customers", {"slot": SLOT, "columns": ["id", "twice"]})

    def resolved(source: CaptureSource) -> CapturedColumns:
        with closing(followed.begin()) as transaction:
            return resolve_columns(source, transaction.table, TableName("public", "customers"), "m")

    found = resolved(source)
    assert found.table.version is not None
    assert "twice" not in {*found.events.columns, *found.table.version.logged}
    with pytest.raises(ConfigError, match="publish_generated_columns"):
        resolved(declared)
    as_of_18 = postgres_versions._COLUMNS.replace("180000", "150000")
    monkeypatch.setattr(postgres_versions, "_COLUMNS", as_of_18)
    assert list(resolved(declared).events.columns) == ["id", "twice"]
    found = resolved(source)
    assert found.events.columns["twice"] == "bigint"
    recorded = found.recorded(None)
    # The log describes the table with this column.
    assert recorded is not None
    assert recorded.shape == shape_of(("id", "name", "score", "twice"))
    server.sql(f"ALTER PUBLICATION {SLOT} SET TABLE customers (id, name, score), orders")
    assert "twice" not in resolved(source).events.columns


def test_what_the_database_lacks_is_named_with_its_sql(shop: Shop, server: Server) -> None:
    declare(shop, server, shared={"slot": "missing", "publication": SLOT})
    said = shop.fail("run", "--select", "customers")
    assert "SELECT pg_create_logical_replication_slot('missing', 'pgoutput')" in said
    declare(shop, server, shared={"publication": "none"})
    said = shop.fail("run", "--select", "customers")
    assert 'CREATE PUBLICATION "none" FOR TABLE "public"."customers"' in said
    server.sql(f"ALTER PUBLICATION {SLOT} DROP TABLE customers")
    declare(shop, server)
    said = shop.fail("run", "--select", "customers")
    assert f'ALTER PUBLICATION "{SLOT}" ADD TABLE "public"."customers"' in said
    shop.dbt("run", "--select", "orders")
    server.sql(f"ALTER PUBLICATION {SLOT} SET (publish = 'insert')")
    said = shop.fail("run", "--select", "orders")
    server.sql(said.partition("owner of the table: ")[2].splitlines()[0])
    server.sql(f"ALTER PUBLICATION {SLOT} ADD TABLE customers WHERE (id > 1)")
    said = shop.fail("run", "--select", "customers")
    assert "leaves out rows" in said
    server.sql(*said.partition("owner of the table: ")[2].splitlines()[0].split("; "))
    shop.dbt("run")
    assert_equal(shop, server)
    # Another table has the name now.
    server.sql("ALTER TABLE customers RENAME TO before", "CREATE TABLE customers (LIKE before INCLUDING ALL)")
    server.sql(f"ALTER PUBLICATION {SLOT} ADD TABLE customers", "DROP TABLE before")
    assert "dropped and created again" in shop.fail("run", "--select", "customers")
    shop.dbt("run", "--full-refresh", "--select", "customers")
    assert_equal(shop, server)
    # The publication was created after the slot, and a table was changed in between.
    changed = "INSERT INTO customers VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET score = 2"
    tables = "FOR TABLE customers, orders"
    server.sql(f"DROP PUBLICATION {SLOT}", changed, f"CREATE PUBLICATION {SLOT} {tables}")
    said = shop.fail("run", "--select", "customers")
    assert "AR-403" in said
    assert "when its publication did not exist" in said
    server.sql(*said.partition("run this in the database: ")[2].partition(", and build")[0].split("; "))
    shop.dbt("run", "--full-refresh")
    server.sql(changed)
    shop.dbt("run")
    assert_equal(shop, server)
    # The slot would send changes that may be rolled back.
    server.sql("SELECT pg_create_logical_replication_slot('early', 'pgoutput', false, true)")
    address = parse_address(server.url, "dbt", PASSWORD, "x")
    with open_slot(address, "early", SLOT, "x") as log, pytest.raises(ConfigError, match="with two_phase"):
        log.state()
    server.sql("SELECT pg_drop_replication_slot('early')")
    # The slot is read by another program.
    other = server.connect()
    other.execute("SELECT pg_advisory_lock(hashtextextended('dbt-arctic ' || %s, 0))", (SLOT,))
    assert Terminal(shop).json("ingest", "plan", "--select", "customers")[0]["problem"] == ""
    other.close()
    declare(shop, server, customers={"slto": "x"})
    assert "unknown setting 'slto'" in shop.fail("run", "--select", "customers")


def test_rollback_truncation_and_age(shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = Changes(server, 4)
    declare(shop, server)
    changes.change(4)
    shop.dbt("run")
    Terminal(shop)("savepoint", "customers", "before")
    server.sql("INSERT INTO customers VALUES (77, 'x', 1)")
    shop.dbt("run")
    # A rollback rewinds what was read. The capture table still has it.
    Terminal(shop)("rollback", "customers", "before", "--yes")
    assert not shop.rows("customers WHERE id = 77")
    shop.dbt("run")
    assert_equal(shop, server)
    server.sql("TRUNCATE customers", "INSERT INTO customers VALUES (1, 'new', 1)")
    assert "AR-312" in shop.fail("run", "--select", "customers")
    shop.dbt("run", "--full-refresh", "--select", "customers")
    assert_equal(shop, server)
    # Changes that are older than the retention are removed. A model that has not read them says so.
    server.sql("INSERT INTO customers VALUES (2, 'late', 1)", "INSERT INTO orders VALUES ('a', 99, NULL)")
    shop.dbt("run", "--select", "orders")
    monkeypatch.setattr(capture_changes, "cutoff_of", lambda today, days: today + timedelta(days=1))
    shop.dbt("run", "--select", "orders")
    monkeypatch.undo()
    assert not shop.rows("crm__capture")
    said = shop.fail("run", "--select", "customers")
    assert "AR-403" in said
    assert "retention" in said
    shop.dbt("run", "--select", "orders")
    shop.dbt("run", "--full-refresh", "--select", "customers")
    assert_equal(shop, server)


def test_a_log_of_changes_without_a_key(shop: Shop, server: Server) -> None:
    """A model may also add each change, in place of following the table."""
    declare(shop, server, customers={"initial_load": False})
    shop.model(
        "customers",
        "{{ config(materialized='incremental', incremental_strategy='append') }}\n"
        "select id, name, _source_operation from {{ incremental_pull(source('crm', 'customers')) }}",
    )
    server.sql("INSERT INTO customers VALUES (1, 'a', 1)")
    shop.dbt("run", "--select", "customers")
    server.sql("UPDATE customers SET name = 'b'", "DELETE FROM customers")
    shop.dbt("run", "--select", "customers")
    assert shop.rows("customers") == [(1, "a", "insert"), (1, "b", "update"), (1, None, "delete")]
    # It cannot load what it misses, but begin again.
    server.sql(
        "INSERT INTO customers VALUES (2, 'missed', 1)",
        f"SELECT pg_replication_slot_advance('{SLOT}', pg_current_wal_lsn())",
        "INSERT INTO customers VALUES (3, 'c', 1)",
    )
    assert "AR-403" in shop.fail("run", "--select", "customers")
    shop.dbt("run", "--select", "customers", "--full-refresh")
    assert shop.rows("customers") == [(3, "c", "insert")]
    # The log also has the changes of a table that was dropped. They are not those of the table of its name.
    server.sql(
        "DROP TABLE customers",
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text, score numeric(10,2))",
        f"ALTER PUBLICATION {SLOT} ADD TABLE customers",
        "INSERT INTO customers VALUES (4, 'd', 1)",
    )
    assert "dropped and created again" in shop.fail("run", "--select", "customers")
    shop.dbt("run", "--select", "customers", "--full-refresh")
    assert shop.rows("customers") == [(4, "d", "insert")]
    # Another table has the name while a run captures.
    server.sql(
        "ALTER TABLE customers RENAME TO aside",
        "CREATE TABLE customers (LIKE aside INCLUDING ALL)",
        f"ALTER PUBLICATION {SLOT} ADD TABLE customers",
        "INSERT INTO customers VALUES (5, 'other', 1)",
        "INSERT INTO aside VALUES (6, 'missed', 1)",
    )
    shop.dbt("run", "--select", "orders")
    server.sql("DROP TABLE customers", "ALTER TABLE aside RENAME TO customers")
    other = "another table was called public.customers"
    assert other in shop.fail("run", "--select", "customers")
    (planned,) = Terminal(shop).json("ingest", "plan", "--select", "customers")
    assert planned["problem"] == "changes of the source crm.customers are lost"
    # The same if the commits, which have the ids of the tables, have expired.
    expired = f"table => '{shop.schema}.crm__capture', older_than => now(), retain_last => 1"
    shop.sql(f"CALL lake.system.expire_snapshots({expired})")
    assert other in shop.fail("run", "--select", "customers")
    shop.dbt("run", "--select", "customers", "--full-refresh")
    assert shop.rows("customers") == [(4, "d", "insert")]


OTHER_VALUES: list[tuple[str, str]] = [
    ("short_code", "'ab'"),
    ("short_code[]", "ARRAY['ab']::short_code[]"),
    ("bpchar", "'ab  '"),
    ("bytea[]", r"ARRAY['\\x00ff'::bytea]"),
    ("money[]", "ARRAY[12.34::money]"),
    ("tstzrange", "'[2026-01-01 10:00+05, 2026-01-02 10:00+05)'"),
    ("int2vector", "'1 2'"),
    ("int2vector", "''"),
    ("int[]", "'{}'"),
    ("text[]", "'{}'"),
    ("float8", "'Infinity'"),
    ("timestamp", "'2026-01-02 03:04:05.123456'"),
    ("inet", "'10.0.0.1'"),
    ("inet[]", "ARRAY['10.0.0.1', NULL, '::1']::inet[]"),
    ("host", "'10.0.0.1'"),
    ("box[]", "ARRAY['((2,2),(1,1))', NULL, '((4,4),(3,3))']::box[]"),
    ("xml", '\'<?xml version="1.0" encoding="UTF-8"?><a/>\''),
    ("pair", "ROW(NULL, NULL)"),
    ("pair", "ROW('10.0.0.1', NULL)"),
    ("pair", "ROW('10.0.0.1/8', 'a \"b, ')"),
    ("pair[]", "ARRAY[ROW('10.0.0.1', 'a b')::pair]"),
    ("host[]", "ARRAY['10.0.0.1', NULL, '::1']::host[]"),
    ("cents[]", "ARRAY[5.5]::cents[]"),
    ("raw[]", r"ARRAY['\x00ff']::raw[]"),
    ("flag[]", "ARRAY[true, NULL]::flag[]"),
    ("page[]", "ARRAY['<?xml version=\"1.0\"?><a/>']::page[]"),
    ("grid[]", "ARRAY['{1,2}']::grid[]"),
    ("citext", "'It''s'"),
    ("citext[]", "ARRAY['A', NULL]::citext[]"),
    ("hstore", "'a=>1, \"b c\"=>NULL'"),
]
"""In addition to those of sources that are read through JDBC alone."""


def test_each_type_has_one_value_however_it_was_read(shop: Shop, server: Server) -> None:
    """What the initial load reads through JDBC, the log has in another form."""
    cases = [*POSTGRES_VALUES, *OTHER_VALUES]
    columns = ", ".join(f"c{at} {kind}" for at, (kind, *_) in enumerate(cases))
    values = ", ".join(value for _, value, *_ in cases)
    nulls = ", ".join("NULL" for _ in cases)
    server.sql(
        "CREATE TYPE mood AS ENUM ('ok')",
        "CREATE DOMAIN cents AS numeric(12,2)",
        "CREATE DOMAIN code AS char(4)",
        "CREATE DOMAIN short_code AS code",
        "CREATE DOMAIN host AS inet",
        "CREATE TYPE pair AS (a inet, b text)",
        "CREATE DOMAIN raw AS bytea",
        "CREATE DOMAIN flag AS boolean",
        "CREATE DOMAIN page AS xml",
        "CREATE DOMAIN grid AS int[]",
        "CREATE EXTENSION IF NOT EXISTS citext",
        "CREATE EXTENSION IF NOT EXISTS hstore",
        f"CREATE TABLE typed (id int PRIMARY KEY, {columns}, twice int GENERATED ALWAYS AS (id * 2) STORED)",
        f"ALTER PUBLICATION {SLOT} ADD TABLE typed",
        f"INSERT INTO typed VALUES (1, {values}), (2, {nulls})",
        "CREATE TABLE heir () INHERITS (typed)",
        f"INSERT INTO heir VALUES (9, {values})",
    )
    try:
        declare(shop, server, customers={"table": "typed"})
        shop.dbt("run", "--select", "customers")
        # The log has the rows of a table that inherits as those of another table.
        assert shop.rows("customers", "id") == [(1,), (2,)]
        long = f"c{[kind for kind, *_ in cases].index('text')}"
        server.sql(
            f"INSERT INTO typed VALUES (3, {values}), (4, {nulls})",
            f"INSERT INTO typed (id, {long}) VALUES (5, repeat('x', 20000001))",
            f"INSERT INTO heir VALUES (10, {values})",
        )
        shop.dbt("run", "--select", "customers")
        assert shop.rows("customers WHERE id > 4", f"id, length({long})") == [(5, 20000001)]
        assert "twice" not in [row[0] for row in shop.sql("DESCRIBE {s}.customers")]
        names = ", ".join(f"c{at}" for at in range(len(cases)))
        for loaded, captured in ((1, 3), (2, 4)):
            (before,), (after,) = (
                shop.rows(f"customers WHERE id = {at}", names) for at in (loaded, captured)
            )
            for (kind, *_), left, right in zip(cases, before, after, strict=True):
                assert left == right, kind
        at = next(at for at, (kind, *_) in enumerate(cases) if kind == "host")
        assert shop.rows("customers WHERE id = 1", f"c{at}") == [("10.0.0.1",)]
        # An array of arrays is an error in the initial load as well.
        listed = f"c{[kind for kind, *_ in cases].index('text[]')}"
        server.sql(f"INSERT INTO typed (id, {listed}) VALUES (6, ARRAY[['a','b'],['c','d']])")
        assert f"{listed} is not a array<string>" in shop.fail("run", "--select", "customers")
        # What no type of Spark has is an error that names the way out: text.
        server.sql(
            "CREATE TABLE endless (id int PRIMARY KEY, at timestamptz, day date, moment timestamp, r real)",
            f"ALTER PUBLICATION {SLOT} ADD TABLE endless",
            "INSERT INTO endless VALUES (1, '2026-01-02 03:04:05.6+02', '-infinity', 'infinity', 0.1)",
        )
        endless = {"table": "endless"}
        of_key = (
            "{{ config(materialized='incremental', unique_key='id', sequence_by='_source_sequence', "
            "buckets=1) }}\nselect * from {{ incremental_pull(source('crm', 'orders')) }}"
        )
        declare(shop, server, customers={"table": "typed"}, orders=endless)
        shop.model("orders", of_key)
        assert "{day: string}" in shop.fail("run", "--select", "orders")
        texts = dict.fromkeys(("at", "day", "moment"), "string")
        declare(shop, server, orders={**endless, "columns": {"id": "int", **texts, "r": "double"}})
        shop.model("orders", of_key)
        shop.dbt("run", "--select", "orders")
        server.sql(
            "INSERT INTO endless SELECT 2, at, day, moment, r FROM endless",
            "INSERT INTO endless VALUES (3, '-infinity', '0044-03-15 BC', '0044-03-15 BC')",
            "INSERT INTO endless VALUES (4, '0044-03-15 BC', NULL, NULL)",
        )
        shop.dbt("run", "--select", "orders")
        single = struct.unpack("f", struct.pack("f", 0.1))[0]
        assert shop.rows("orders WHERE id < 3", "r") == [(single,)] * 2
        first, second, *others = shop.rows("orders", "id, at, day, moment")
        assert first[1:] == second[1:] == ("2026-01-02 01:04:05.6", "-infinity", "infinity")
        assert others == [
            (3, "-infinity", "0044-03-15 BC", "0044-03-15 00:00:00 BC"),
            (4, "0044-03-15 00:00:00 BC", None, None),
        ]
        declare(shop, server, customers={"table": "typed", "columns": ["id", "twice"]})
        assert "twice of the source crm.customers is a generated one" in shop.fail("run", "-s", "customers")
    finally:
        server.sql(
            "DROP TABLE typed CASCADE",
            "DROP TABLE IF EXISTS endless",
            "DROP TYPE mood, pair",
            "DROP DOMAIN cents, short_code, code, host, raw, flag, page, grid",
        )


def test_a_value_that_was_not_sent_is_kept(shop: Shop, server: Server) -> None:
    server.sql("ALTER TABLE customers ALTER COLUMN name SET STORAGE EXTERNAL")
    declare(shop, server)
    server.sql("INSERT INTO customers VALUES (1, repeat('x', 9000), 1)")
    shop.dbt("run", "--select", "customers")
    server.sql("UPDATE customers SET score = 2")
    said = shop.fail("run", "--select", "customers")
    assert "name was not sent" in said
    assert "unavailable: keep" in said
    declare(shop, server, customers={"unavailable": "keep"})
    shop.dbt("run", "--select", "customers")
    (row,) = shop.rows("customers", "id, name, CAST(score AS STRING)")
    assert row == (1, "x" * 9000, "2.00")
    # The row of another key has the value, so it is not guessed.
    server.sql("UPDATE customers SET id = 2")
    said = shop.fail("run", "--select", "customers")
    assert "name was not sent with a new key" in said
    shop.dbt("run", "--full-refresh", "--select", "customers")
    server.sql("ALTER TABLE customers REPLICA IDENTITY FULL", "UPDATE customers SET id = 3")
    shop.dbt("run", "--select", "customers")
    assert shop.rows("customers", "id, name") == [(3, "x" * 9000)]
    # For a while, the log had no old values of the key.
    server.sql(
        "ALTER TABLE customers ALTER score SET NOT NULL",
        "CREATE UNIQUE INDEX scores ON customers (score)",
        "ALTER TABLE customers REPLICA IDENTITY USING INDEX scores",
        "UPDATE customers SET id = 4",
        "ALTER TABLE customers REPLICA IDENTITY FULL",
    )
    assert "do not have the old values of id" in shop.fail("run", "--select", "customers")
    shop.dbt("run", "--full-refresh", "--select", "customers")
    assert shop.rows("customers", "id") == [(4,)]


def test_the_generated_files_follow_the_database(shop: Shop, server: Server) -> None:
    changes = Changes(server, 5)
    changes.change(4)
    declare(shop, server)
    for name in ("crm.yml", "customers.sql", "orders.sql"):
        (shop.folder / "models" / name).unlink()
    words = ["--jdbc", server.url, "--slot", "arctic_new", "--table", "customers", "--table", "orders"]
    said = Terminal(shop)("ingest", "init", "crm", *words)
    statements = [line.strip() for line in said.splitlines() if line.startswith("    ") and ";" in line]
    assert [one.split()[0] for one in statements] == ["CREATE", "SELECT"]
    server.sql(*statements)
    try:
        shop.dbt("build")
        changes.change(4)
        shop.dbt("build")
        assert_equal(shop, server)
    finally:
        server.sql("SELECT pg_drop_replication_slot('arctic_new')", "DROP PUBLICATION arctic_new")


@pytest.mark.long
def test_a_slot_that_moves_before_the_commit_loses_changes(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant that the order of the protocol forbids."""
    append = capture_changes.Capture._append

    def too_early(self: Any, captured: Any, changes: Any, range_: CapturedRange) -> Any:
        server.sql(f"SELECT pg_replication_slot_advance('{SLOT}', '0/0'::pg_lsn + {range_.end}::numeric)")
        return append(self, captured, changes, range_)

    monkeypatch.setattr(capture_changes.Capture, "_append", too_early)
    with pytest.raises(AssertionError):
        test_a_change_is_captured_once_wherever_a_run_ends(shop, server)


@pytest.mark.long
def test_a_capture_that_does_not_leave_out_what_it_has_doubles_changes(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other mutant: the slot still has what was committed before a run ended."""
    append, everything = capture_changes.Capture._append, PostgresSlot.changes
    seen: list[Any] = []

    def remembered(slot: Any, since: int, until: int, limit: int) -> Any:
        batch = everything(slot, since, until, limit)
        seen[:] = batch.changes
        return batch

    monkeypatch.setattr(PostgresSlot, "changes", remembered)
    monkeypatch.setattr(
        capture_changes.Capture,
        "_append",
        lambda self, captured, changes, range_: append(self, captured, seen, range_),
    )
    with pytest.raises(AssertionError):
        test_a_change_is_captured_once_wherever_a_run_ends(shop, server)


@pytest.mark.long
def test_a_truncation_that_is_ignored_leaves_rows(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = PostgresSlot.changes

    def without(slot: Any, since: int, until: int, limit: int) -> Any:
        batch = everything(slot, since, until, limit)
        return batch._replace(changes=[one for one in batch.changes if one.operation != "truncate"])

    monkeypatch.setattr(PostgresSlot, "changes", without)
    with pytest.raises(AssertionError):
        test_models_follow_the_columns_of_the_database(shop, server)


@pytest.mark.long
def test_a_value_that_was_not_sent_is_not_null(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = PostgresSlot.changes

    def as_null(one: Any) -> Any:
        return one._replace(after=one.after and {**one.after, **dict.fromkeys(one.unsent)}, unsent=())

    def without(slot: Any, since: int, until: int, limit: int) -> Any:
        batch = everything(slot, since, until, limit)
        return batch._replace(changes=[as_null(one) for one in batch.changes])

    monkeypatch.setattr(PostgresSlot, "changes", without)
    with pytest.raises(AssertionError):
        test_a_value_that_was_not_sent_is_kept(shop, server)


def declare_others(shop: Shop, server: Server, tables: dict[str, dict[str, Any]], **config: str) -> None:
    """A source with these tables and settings, and a keyed model of each with all columns.

    :param config: text for the config of a model, by its name.
    """
    declare(shop, server)
    listed = [{"name": name, "config": {"meta": {"arctic": own}}} for name, own in tables.items()]
    shared = {"from": "postgres", "url": server.url, "slot": SLOT}
    source = {"name": "crm", "schema": "nowhere", "config": {"meta": {"arctic": shared}}, "tables": listed}
    shop.file("models/crm.yml", yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))
    for name in ("customers", "orders"):
        (shop.folder / "models" / f"{name}.sql").unlink()
    keyed = (
        "materialized='incremental', unique_key='id', sequence_by='_source_sequence', buckets=1, "
        "on_schema_change='sync_all_columns'"
    )
    for name in tables:
        shop.model(
            name,
            f"{{{{ config({config.get(name, keyed)}) }}}}\n"
            f"select * from {{{{ incremental_pull(source('crm', '{name}')) }}}}",
        )


def assert_followed(shop: Shop, server: Server, *names: str) -> None:
    """The models have the columns and the rows of the database."""
    for name in names:
        found = server.sql(
            "SELECT attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped "
            f"AND attrelid = '{name}'::regclass ORDER BY attnum"
        )
        columns = [row[0] for row in found]
        described = [row[0] for row in shop.sql(f"DESCRIBE {{s}}.{name}")]
        assert {one for one in described if not one.startswith(("_", "#"))} == set(columns), name
        listed = ", ".join(f"CAST({one} AS STRING)" for one in columns)
        stored = sorted(map(tuple, shop.sql(f"SELECT {listed} FROM {{s}}.{name}")), key=repr)
        there = server.sql(f"SELECT {', '.join(f'{one}::text' for one in columns)} FROM {name}")
        assert stored == sorted(there, key=repr), name


ALTERED = {
    # Without reading the table again
    "quiet": [
        "ALTER TABLE quiet ALTER COLUMN n SET NOT NULL, ALTER COLUMN n SET DEFAULT 4",
        "INSERT INTO quiet VALUES (4, 'before', 4)",
        "ALTER TABLE quiet ADD COLUMN note text",
        "INSERT INTO quiet VALUES (5, 'after', 5, 'new')",
        "UPDATE quiet SET a = 'changed' WHERE id = 1",
        "DELETE FROM quiet WHERE id = 2",
    ],
    "dropped": [
        "UPDATE dropped SET a = 'before', n = 7 WHERE id = 1",
        "ALTER TABLE dropped DROP COLUMN a",
        "UPDATE dropped SET id = 9 WHERE id = 2",
    ],
    # What the log does not have
    "renamed": [
        "UPDATE renamed SET a = 'before' WHERE id = 1",
        "DELETE FROM renamed WHERE id = 2",
        "ALTER TABLE renamed RENAME a TO title",
        "INSERT INTO renamed VALUES (4, 'after', 4)",
    ],
    "converted": [
        "UPDATE converted SET id = 9 WHERE id = 1",
        "DELETE FROM converted WHERE id = 2",
        "ALTER TABLE converted ALTER COLUMN n TYPE bigint USING n * 10",
        "ALTER TABLE converted ADD COLUMN active boolean NOT NULL DEFAULT true",
        "ALTER TABLE converted DROP COLUMN a",
        "ALTER TABLE converted ADD COLUMN a text",
    ],
    "emptied": [
        "UPDATE emptied SET a = 'before'",
        "TRUNCATE emptied",
        "INSERT INTO emptied VALUES (3, 'again', 3), (4, 'new', 4)",
    ],
}
PLANNED = {
    "quiet": (["note added"], False),
    "dropped": (["a dropped"], False),
    "renamed": (["a renamed to title"], True),
    "converted": (["n: int to bigint", "active added", "another column a", "a dropped"], True),
    "emptied": (["truncated"], True),
}


def test_models_follow_the_columns_of_the_database(shop: Shop, server: Server) -> None:
    """``test_schema_changes.py`` has all kinds of statements. Here are one or two of each effect."""
    for name in ALTERED:
        server.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, a text, n int)",
            f"INSERT INTO {name} SELECT i, 'a' || i, i FROM generate_series(1, 3) i",
            f"ALTER PUBLICATION {SLOT} ADD TABLE {name}",
        )
    try:
        declare_others(shop, server, {name: {"truncate": "apply"} for name in ALTERED})
        shop.dbt("run")
        assert_followed(shop, server, *ALTERED)
        for statements in ALTERED.values():
            server.sql(*statements)
        planned = {
            one["model"]: (one["table_changes"], one["reads_all"])
            for one in Terminal(shop).json("ingest", "plan")
        }
        assert planned == PLANNED
        shop.dbt("run")
        assert_followed(shop, server, *ALTERED)
        operations = {name: {one for (one,) in shop.rows(name, "_source_operation")} for name in ALTERED}
        assert {name for name, one in operations.items() if one == {"read"}} == {
            "renamed",
            "converted",
            "emptied",
        }
        # A late change does not win over rows that were read again, and a later one does.
        for name in ALTERED:
            server.sql(f"UPDATE {name} SET n = 77 WHERE id > 2", f"INSERT INTO {name} (id, n) VALUES (50, 1)")
        shop.dbt("run")
        assert_followed(shop, server, *ALTERED)
        assert not any(one["table_changes"] for one in Terminal(shop).json("ingest", "plan"))
        # Rows that are read again win over changes that were read before.
        server.sql("ALTER TABLE converted ALTER COLUMN n TYPE bigint USING n + 1")
        shop.dbt("run", "--select", "converted")
        assert_followed(shop, server, "converted")
        # What is refused has a reason, and the next command loads the table again.
        server.sql("ALTER TABLE quiet DROP COLUMN note", "ALTER TABLE renamed RENAME id TO number")
        server.sql("TRUNCATE emptied")
        declare_others(shop, server, {**{name: {} for name in ALTERED}, "quiet": {"schema_changes": "fail"}})
        planned = {one["model"]: one["problem"] for one in Terminal(shop).json("ingest", "plan")}
        said = shop.refusals("run", "--select", "quiet", "renamed", "emptied")
        assert "AR-305" in said["quiet"]
        assert "note dropped" in said["quiet"]
        assert "AR-403" in said["renamed"]
        assert "id renamed to number" in said["renamed"]
        assert "AR-312" in said["emptied"]
        assert all(planned[name] in one for name, one in said.items())
        shop.dbt("run", "--full-refresh", "--select", "quiet", "emptied")
        assert_followed(shop, server, "quiet", "emptied")
    finally:
        server.sql(f"DROP TABLE {', '.join(ALTERED)}")
