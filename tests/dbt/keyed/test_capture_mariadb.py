"""Sources that are captured from the log of a MariaDB: each change once, in the order of the commits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dbt_arctic.databases import mariadb_log
from dbt_arctic.databases.mariadb_transactions import file_and_offset, log_position
from dbt_arctic.keyed.names import Name
from dbt_arctic.sources import capture_changes, capture_snapshot
from dbt_arctic.sources.capture_table import CapturedRange, load_capture
from tests.extent import extent
from tests.matrix.components import PASSWORD

from .conftest import Shop, Terminal
from .database_servers import Server
from .test_database_sources import MARIADB_VALUES

TABLES = ("customers", "orders")
KEYED = (
    "materialized='incremental', unique_key={key}, sequence_by='_source_sequence', buckets=1, "
    "on_schema_change='sync_all_columns'"
)


@pytest.fixture
def server(mariadb_server: Server) -> Iterator[Server]:
    """The server, with two tables."""
    binary = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    mariadb_server.sql(
        f"CREATE TABLE customers (id bigint PRIMARY KEY, name varchar(40), score decimal(10,2)) {binary}",
        f"CREATE TABLE orders (region varchar(9), id int, at timestamp(6) NULL, PRIMARY KEY (region, id)) "
        f"{binary}",
    )
    yield mariadb_server
    left = mariadb_server.sql("SHOW TABLES")
    mariadb_server.sql("SET foreign_key_checks = 0", *(f"DROP TABLE `{name}`" for (name,) in left))


def declare(shop: Shop, server: Server, *names: str, **own: Any) -> None:
    """A source with these tables, and a keyed model of each with all columns."""
    names = names or TABLES
    tables = [{"name": name, "config": {"meta": {"arctic": own.get(name, {})}}} for name in names]
    shared = {"from": "mariadb", "url": server.url, **own.get("shared", {})}
    source = {"name": "crm", "schema": "nowhere", "config": {"meta": {"arctic": shared}}, "tables": tables}
    shop.file("models/crm.yml", yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    for output in profile["shop"]["outputs"].values():
        output["jdbc"] = {"crm": {"password": PASSWORD}}
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")
    for model in (shop.folder / "models").glob("*.sql"):
        model.unlink()
    for name in names:
        key = "['region', 'id']" if name == "orders" else "'id'"
        shop.model(
            name,
            f"{{{{ config({KEYED.format(key=key)}) }}}}\n"
            f"select * from {{{{ incremental_pull(source('crm', '{name}')) }}}}",
        )


def assert_followed(shop: Shop, server: Server, *names: str) -> None:
    """The models have the columns and the rows of the database."""
    for name in names or TABLES:
        found = server.sql(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'lake' AND table_name = "
            f"'{name}' ORDER BY ordinal_position"
        )
        columns = [row[0] for row in found]
        described = [row[0] for row in shop.sql(f"DESCRIBE {{s}}.{name}")]
        assert {one for one in described if not one.startswith(("_", "#"))} == set(columns), name
        text = "date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
        stored = ", ".join(text if one == "at" else f"CAST(`{one}` AS STRING)" for one in columns)
        there = ", ".join(f"CAST(`{one}` AS CHAR)" for one in columns)
        rows = sorted(map(tuple, shop.sql(f"SELECT {stored} FROM {{s}}.{name}")), key=repr)
        assert rows == sorted(server.sql("SET time_zone = '+00:00'", f"SELECT {there} FROM {name}"), key=repr)


class Changes:
    """Random transactions, of which some are rolled back."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.chance = server, random.Random(seed)

    def change(self, times: int) -> None:
        for _ in range(times):
            end = "ROLLBACK" if self.chance.random() < 0.1 else "COMMIT"
            self.server.sql("BEGIN", *(self.one() for _ in range(self.chance.randrange(1, 5))), end)

    def one(self) -> str:
        draw = self.chance
        if draw.random() < 0.5:
            key, other = draw.randrange(8), draw.randrange(8)
            what = draw.random()
            if what < 0.2:
                return f"DELETE FROM customers WHERE id = {key}"
            if what < 0.4:
                return f"UPDATE IGNORE customers SET id = {other} WHERE id = {key}"
            name = draw.choice(["NULL", "''", "'Öl | \"x\"'", "'null'", "'😀'", f"'n{draw.randrange(99)}'"])
            score = draw.choice(["NULL", "0", f"{draw.randrange(-(10**9), 10**9) / 100:.2f}"])
            return f"REPLACE INTO customers (id, name, score) VALUES ({key}, {name}, {score})"
        key = draw.randrange(6)
        if draw.random() < 0.3:
            return f"DELETE FROM orders WHERE id = {key}"
        at = draw.choice(["NULL", f"'2026-0{draw.randrange(1, 9)}-0{draw.randrange(1, 9)} 10:00:00.{key}'"])
        return (
            f"INSERT INTO orders VALUES ('{draw.choice('ab')}', {key}, {at}) "
            "ON DUPLICATE KEY UPDATE at = VALUES(at)"
        )


def captured_range(shop: Shop) -> CapturedRange:
    found = load_capture(shop.catalog, Name("lake", shop.schema, "crm__capture"), "crm.customers")
    assert found is not None
    assert found[1] is not None
    return found[1].range


def position(server: Server) -> int:
    """The end of the log."""
    file, offset, *_ = server.sql("SHOW MASTER STATUS")[0]
    return log_position(file, offset)


def test_models_have_the_rows_of_the_database(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = Changes(server, 1)
    declare(shop, server)
    changes.change(5)
    shop.dbt("run")
    assert_followed(shop, server)
    # A run ends at each of its statements, and the next one goes on.
    for at in range(extent(3, 10)):
        changes.change(4)
        shop.end({"crm__capture": (at, True)})
        shop.try_dbt("run", "--select", "customers")
        shop.end({})
    # Many changes are taken in several commits, across files of the log.
    monkeypatch.setattr(capture_changes, "_MESSAGES_OF_COMMIT", 5)
    changes.change(4)
    server.sql("FLUSH BINARY LOGS")
    changes.change(8)
    commits = len(shop.catalog.load_table(shop.schema, "crm__capture").snapshots)
    shop.dbt("run")
    assert len(shop.catalog.load_table(shop.schema, "crm__capture").snapshots) > commits + 1
    monkeypatch.setattr(capture_changes, "_MESSAGES_OF_COMMIT", 100_000)
    assert_followed(shop, server)
    ((rows, distinct),) = shop.rows("crm__capture", "count(*), count(DISTINCT message)")
    assert rows == distinct
    # Nothing is new, or only in tables that are not followed: no statement is sent.
    server.sql("CREATE TABLE other AS SELECT 1 AS x", "CREATE TABLE IF NOT EXISTS orders (x int)")
    shop.dbt("run")
    assert not [one for one in shop.script.ran if "INSERT" in one or "VIEW" in one]
    # What waits is shown without taking it.
    server.sql("DELETE FROM customers WHERE score = 5", "UPDATE customers SET score = 5")
    at = captured_range(shop)
    (lag,) = Terminal(shop).json("lag", "customers")
    (waiting,) = lag["upstreams"]
    assert waiting["changes"] == len(server.sql("SELECT id FROM customers WHERE score = 5"))
    ((file, byte, *_),) = server.sql("SHOW MASTER STATUS")
    assert waiting["end"] == f"{int(file.rpartition('.')[2])}:{byte}"
    assert waiting["position"] == "{}:{}".format(*file_and_offset(at.end))
    assert captured_range(shop) == at


def test_each_type_has_one_value_however_it_was_read(shop: Shop, server: Server) -> None:
    """What the initial load reads through JDBC, the log has in another form."""
    cases = [
        *MARIADB_VALUES,
        ("binary(4)", "x'00'"),
        ("inet4", "'10.0.0.1'"),
        ("float", "1e-7"),
        ("double", "1e300"),
        ("time", "'-838:59:59'"),
        ("set('p','q')", "''"),
        ("enum('a','é')", "'é'"),
        ("varchar(9) CHARACTER SET latin1", "'é'"),
        ("tinytext", "''"),
        ("datetime(3)", "'9999-12-31 23:59:59.999'"),
        ("bit(9)", "b'101'"),
    ]
    columns = ", ".join(f"c{at} {kind}" for at, (kind, *_) in enumerate(cases))
    values = ", ".join(value for _, value, *_ in cases)
    nulls = ", ".join("NULL" for _ in cases)
    names = ", ".join(f"c{at}" for at in range(len(cases)))
    utf16 = "x varchar(3) CHARACTER SET utf16"
    server.sql(
        f"CREATE TABLE typed (id int PRIMARY KEY, {columns}, twice int AS (id * 2) VIRTUAL) "
        "CHARACTER SET utf8mb4",
        f"CREATE TABLE odd (id int PRIMARY KEY, {utf16})",
        f"INSERT INTO typed (id, {names}) VALUES (1, {values}), (2, {nulls})",
    )
    declare(shop, server, "typed", "odd")
    assert "varchar(3)" in shop.fail("run")
    shop.dbt("run", "--select", "typed")
    server.sql(f"INSERT INTO typed (id, {names}) VALUES (3, {values}), (4, {nulls})")
    (planned,) = Terminal(shop).json("ingest", "plan", "--select", "typed")
    assert (planned["reads_all"], planned["changes"], planned["problem"]) == (False, 2, "")
    shop.dbt("run", "--select", "typed")
    assert "twice" not in [row[0] for row in shop.sql("DESCRIBE {s}.typed")]
    for loaded, captured in ((1, 3), (2, 4)):
        (before,), (after,) = (shop.rows(f"typed WHERE id = {at}", names) for at in (loaded, captured))
        for (kind, *_), left, right in zip(cases, before, after, strict=True):
            assert left == right, kind


def test_a_date_that_spark_does_not_have_is_an_error(shop: Shop, server: Server) -> None:
    declare(shop, server)
    shop.dbt("run")
    server.sql("SET sql_mode = ''", "INSERT INTO orders VALUES ('a', 1, '0000-00-00')")
    assert "at is not a timestamp: not a date" in shop.fail("run")


ALTERED = {
    "quiet": [
        "ALTER TABLE quiet ADD INDEX by_n (n), COMMENT = 'x'",
        "UPDATE quiet SET a = 'changed' WHERE id = 1",
        "OPTIMIZE TABLE quiet",
    ],
    "added": [
        "UPDATE added SET a = 'before' WHERE id = 1",
        "ALTER TABLE added ADD COLUMN active int NOT NULL DEFAULT 3 AFTER id",
        "DELETE FROM added WHERE id = 2",
        "INSERT INTO added VALUES (5, 4, 'new', 5)",
    ],
    "renamed": [
        "UPDATE renamed SET a = 'before' WHERE id = 1",
        "ALTER TABLE renamed RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "DELETE FROM renamed WHERE id = 2",
        "ALTER TABLE renamed MODIFY n bigint",
    ],
    "emptied": [
        "UPDATE emptied SET a = 'before'",
        "TRUNCATE emptied",
        "INSERT INTO emptied VALUES (3, 'again', 3), (4, 'new', 4)",
    ],
    "swapped": [
        "CREATE TABLE fresh LIKE swapped",
        "INSERT INTO fresh VALUES (7, 'fresh', 7)",
        "RENAME TABLE swapped TO stale, fresh TO swapped",
        "DELETE FROM stale",
    ],
    "in_words": ["SET SESSION binlog_format = 'STATEMENT'", "DELETE FROM in_words WHERE id > 1"],
}
READ_AGAIN = {"added", "renamed", "emptied", "swapped", "in_words"}


def test_models_follow_the_statements_that_change_a_table(shop: Shop, server: Server) -> None:
    for name in ALTERED:
        other = "b varchar(9), " if name == "renamed" else ""
        server.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, a varchar(9), {other}n int)",
            f"INSERT INTO {name} (id, a, n) VALUES (1, 'a1', 1), (2, 'a2', 2), (3, 'a3', 3)",
        )
    declare(shop, server, *ALTERED, shared={"truncate": "apply"})
    shop.dbt("run")
    assert_followed(shop, server, *ALTERED)
    for statements in ALTERED.values():
        server.sql(*statements)
    planned = {one["model"] for one in Terminal(shop).json("ingest", "plan") if one["reads_all"]}
    assert planned == READ_AGAIN
    shop.dbt("run")
    assert_followed(shop, server, *ALTERED)
    server.sql(*(f"UPDATE {name} SET n = n + 1" for name in ALTERED))
    shop.dbt("run")
    assert_followed(shop, server, *ALTERED)
    # Rows that are read again win over the last transaction in the log as well.
    again = ("DELETE FROM added WHERE id = 1", "INSERT INTO added (id, a) VALUES (1, 'again')")
    server.sql("ALTER TABLE added ADD COLUMN late int NOT NULL DEFAULT 7", "BEGIN", *again, "COMMIT")
    shop.dbt("run", "--select", "added")
    assert_followed(shop, server, "added")
    first = {"columns": ["id", "active", "a"]}
    declare(shop, server, *ALTERED, shared={"truncate": "apply"}, added=first)
    server.sql("UPDATE added SET a = 'last' WHERE id = 1")
    shop.dbt("run", "--select", "added")
    declare(shop, server, *ALTERED, shared={"truncate": "apply"})
    shop.dbt("run", "--select", "added")
    assert_followed(shop, server, "added")
    # The key had another name, or other values, in the deletes from before.
    server.sql("DELETE FROM quiet WHERE id = 2", "ALTER TABLE quiet CHANGE id id bigint")
    assert "its rows in the model have the old key" in shop.fail("run", "--select", "quiet")


@pytest.mark.long
def test_rows_that_are_read_again_before_the_last_transaction_are_found(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant that orders them as PostgreSQL's positions would."""
    monkeypatch.setattr(capture_snapshot, "place_after", lambda _, end: f"{end:020}")
    with pytest.raises(AssertionError):
        test_models_follow_the_statements_that_change_a_table(shop, server)


def test_what_the_log_lacks_is_named_with_what_to_do(shop: Shop, server: Server) -> None:
    server.sql(
        "CREATE TABLE child (id int PRIMARY KEY, customer bigint, "
        "CONSTRAINT fk FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE SET NULL)",
        "CREATE TABLE old (id int PRIMARY KEY) ENGINE = MyISAM",
    )
    declare(shop, server, "child", "old", "missing", "customers")
    said = shop.fail("run")
    assert "its foreign key fk has ON DELETE SET NULL" in said
    planned = {one["model"]: one["problem"] for one in Terminal(shop).json("ingest", "plan")}
    assert "its foreign key fk" in planned["child"]
    assert "there is no table" in planned["missing"]
    assert planned["customers"] == ""
    assert "its engine is MyISAM" in said
    assert "there is no table lake.missing" in said
    declare(shop, server)
    shop.dbt("run")
    server.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        assert "SET GLOBAL binlog_row_metadata = 'FULL'" in shop.fail("run")
    finally:
        server.sql("SET GLOBAL binlog_row_metadata = FULL")
    # Files are removed, or all of the log: no change is missed without an error.
    for lost, says, is_longer in (
        (
            ("FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE now() + INTERVAL 1 DAY"),
            "removed the files",
            False,
        ),
        (("RESET MASTER",), "has begun again", False),
        (("RESET MASTER",), "has begun again", True),
        (
            ("SET GLOBAL binlog_checksum = NONE", "TRUNCATE orders", "SET GLOBAL binlog_checksum = CRC32"),
            "binlog_checksum was changed",
            False,
        ),
    ):
        server.sql(*lost, "REPLACE INTO customers VALUES (1, 'x', 1)")
        end = captured_range(shop).end
        # The server keeps a file until its engine says that it is no longer needed.
        while says == "removed the files" and len(server.sql("SHOW BINARY LOGS")) > 1:
            server.sql(lost[-1])
        while is_longer and position(server) <= end:
            files = file_and_offset(end)[0] - file_and_offset(position(server))[0]
            server.sql(*["FLUSH BINARY LOGS"] * files, "REPLACE INTO customers VALUES (1, 'x', 2)")
        (planned, _), (lag,) = Terminal(shop).json("ingest", "plan"), Terminal(shop).json("lag", "customers")
        assert planned["problem"]
        assert lag["upstreams"][0]["problem"] == planned["problem"]
        said = shop.fail("run")
        assert said.count("AR-403") == 2
        assert says in said
        assert planned["problem"] in said
        shop.dbt("run", "--full-refresh", "--select", "customers")
        # What the other model has read is a position in the log from before.
        assert "AR-403" in shop.fail("run", "--select", "orders")
        shop.dbt("run", "--full-refresh", "--select", "orders")
        assert_followed(shop, server)


def test_rows_of_an_xa_transaction_are_read_when_it_commits(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the log before."""
    monkeypatch.setattr(mariadb_log, "_PREPARED_S", 0.2)
    # A source begins, and a table is added to it.
    for names, row in (
        (("customers",), "customers VALUES (69, 'xa', 0)"),
        (TABLES, "orders VALUES ('a', 1, NULL)"),
    ):
        declare(shop, server, *names)
        server.sql("XA START 'x'", f"INSERT INTO {row}", "XA END 'x'", "XA PREPARE 'x'")
        assert "the XA transaction 'x' on" in shop.fail("run", "--select", names[-1])
        server.sql("XA COMMIT 'x'")
        shop.dbt("run")
        assert_followed(shop, server, *names)
    for key, end in ((70, "COMMIT"), (71, "ROLLBACK")):
        row = f"INSERT INTO customers VALUES ({key}, 'xa', 0)"
        server.sql(f"XA START 'x{key}'", row, f"XA END 'x{key}'", f"XA PREPARE 'x{key}'")
        server.sql(f"REPLACE INTO customers VALUES (1, 'beside {key}', 1)")
        shop.dbt("run")
        assert not shop.rows("customers WHERE name LIKE '% 70'" if key == 70 else "customers WHERE id = 71")
        server.sql(f"XA {end} 'x{key}'")
        shop.dbt("run")
        assert_followed(shop, server)


def test_a_table_that_was_not_followed_for_a_while_is_loaded_again(shop: Shop, server: Server) -> None:
    changes = Changes(server, 3)
    declare(shop, server)
    shop.dbt("run")
    declare(shop, server, "customers")
    changes.change(4)
    shop.dbt("run", "--select", "customers")
    declare(shop, server)
    assert "the table was not followed for a while" in shop.fail("run")
    shop.dbt("run", "--full-refresh", "--select", "orders")
    changes.change(4)
    shop.dbt("run")
    assert_followed(shop, server)
