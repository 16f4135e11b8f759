"""What a reader of the log of a real MariaDB finds, compared with the rows of the table. Without Spark."""

from __future__ import annotations

import contextlib
import random
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
import pytest

from dbt_arctic.databases import mariadb_log
from dbt_arctic.databases.address import parse_address
from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.databases.mariadb import MariaTable
from dbt_arctic.databases.mariadb_log import MariaLog, open_log
from dbt_arctic.databases.mariadb_types import MariaDialect
from dbt_arctic.errors import ArcticError, VersionUnavailable
from tests.matrix.components import PASSWORD

from .database_servers import Server, run

NAME = "größe"


@pytest.fixture
def server(mariadb_alone: Server) -> Iterator[Server]:
    yield mariadb_alone
    mariadb_alone.sql(f"DROP TABLE IF EXISTS `{NAME}`, untransacted")


@contextlib.contextmanager
def opened(server: Server) -> Iterator[MariaLog]:
    address = parse_address(server.url, "dbt", PASSWORD, "x")
    with open_log(address, [TableName("lake", NAME)], "x", "models/x.yml") as log:
        yield log


def read(log: MariaLog, since: int) -> Sequence[LoggedChange]:
    return log.changes(since, log.state().current, 10**6).changes


def _create(server: Server, columns: str = "id int PRIMARY KEY, n int") -> None:
    server.sql(f"CREATE TABLE `{NAME}` ({columns}) CHARACTER SET utf8mb4")


def test_values_have_the_texts_of_the_initial_load(server: Server) -> None:
    draw = random.Random(7)
    times = [f"t{digits} time({digits})" for digits in range(7)]
    _create(
        server, ", ".join(("id int PRIMARY KEY", *times, "a inet6", "e enum('a','b') CHARACTER SET ucs2"))
    )
    with opened(server) as log:
        since = log.state().current
        for key in range(60):
            seconds = draw.choice([0, 59, 3599, 3600, 838 * 3600 + 3599, draw.randrange(10**6)])
            micros = draw.choice([0, 1, 10, 500_000, 999_999, draw.randrange(10**6)])
            time = f"'-{seconds // 3600}:{seconds // 60 % 60}:{seconds % 60}.{micros:06}'"
            groups = [draw.choice(["0", "0", "1", "ffff", f"{draw.randrange(2**16):x}"]) for _ in range(8)]
            listed = ", ".join([time] * 7)
            insert = f"INSERT INTO `{NAME}` VALUES ({key}, {listed}, '{':'.join(groups)}', 'a')"
            server.sql("SET sql_mode = 'TIME_ROUND_FRACTIONAL'", insert)
        found = {int(one.after["id"]): one.after for one in read(log, since) if one.after}
        transaction = MariaTable(log.address, NAME, "x", True).begin()
        with contextlib.closing(transaction):
            table = transaction.table
    readable = [one for one in table.columns if one.family != "unreadable"]
    assert {one.name for one in table.columns} - {one.name for one in readable} == {"e"}
    texts = ", ".join(MariaDialect().text(one, one.name) for one in readable)
    for row in server.sql(f"SELECT {texts} FROM `{NAME}`"):
        assert [found[int(row[0])][one.name] for one in readable] == list(map(str, row))
    assert len(found) == 60


def test_columns_whose_values_the_client_misreads_are_refused(server: Server) -> None:
    for statements, says in (
        (("SET GLOBAL mysql56_temporal_format = OFF", "t time"), "the format of MariaDB 5.3"),
        (("SET GLOBAL mysql56_temporal_format = ON", "t varchar(99) COMPRESSED"), "COMPRESSED"),
    ):
        setting, column = statements
        server.sql(setting, f"CREATE OR REPLACE TABLE `{NAME}` (id int PRIMARY KEY, {column})")
        with opened(server) as log:
            assert not log.followed()
            assert f"its column t has {says}" in str(log.not_followed(TableName("lake", NAME)))


def test_what_a_savepoint_keeps_is_read(server: Server) -> None:
    _create(server)
    server.sql("CREATE TABLE untransacted (id int) ENGINE = MyISAM")
    with opened(server) as log:
        since = log.state().current
        server.sql(
            *("BEGIN", f"INSERT INTO `{NAME}` VALUES (1, 1)", "SAVEPOINT s"),
            *(f"INSERT INTO `{NAME}` VALUES (2, 1)", "INSERT INTO untransacted VALUES (1)"),
            *("ROLLBACK TO s", f"INSERT INTO `{NAME}` VALUES (3, 1)", "COMMIT"),
        )
        assert [one.after and one.after["id"] for one in read(log, since)] == ["1", "3"]


class Story:
    """Random transactions, with savepoints, XA, and a table that cannot be rolled back."""

    def __init__(self, server: Server, seed: int) -> None:
        self.chance, self.connection = random.Random(seed), server.connect()
        self.xid = f"'{seed}-{uuid.uuid4().hex[:6]}'"

    def run(self) -> None:
        for _ in range(self.chance.randrange(4, 14)):
            self.chance.choice([self.transaction, self.transaction, self.prepared, self.row, self.rotation])()
        self.connection.close()

    def rotation(self) -> None:
        run(self.connection, "FLUSH BINARY LOGS")

    def row(self) -> None:
        draw = self.chance
        key, other, n = draw.randrange(6), draw.randrange(6), draw.randrange(99)
        statements = (
            f"REPLACE INTO `{NAME}` VALUES ({key}, {n})",
            f"DELETE FROM `{NAME}` WHERE id = {key}",
            f"UPDATE IGNORE `{NAME}` SET id = {other} WHERE id = {key}",
            f"INSERT INTO `{NAME}` VALUES ({key}, {n}), ({other}, {n}) ON DUPLICATE KEY UPDATE n = n + 1",
            f"INSERT INTO untransacted VALUES ({key})",
        )
        run(self.connection, draw.choice(statements))

    def transaction(self) -> None:
        draw, points = self.chance, list[str]()
        run(self.connection, "BEGIN")
        for _ in range(draw.randrange(1, 9)):
            act = draw.random()
            if act < 0.2:
                points.append(f"s{len(points)}")
                run(self.connection, f"SAVEPOINT {points[-1]}")
            elif act < 0.35 and points:
                # A rollback forgets the savepoints after it.
                points = points[: draw.randrange(len(points)) + 1]
                run(self.connection, f"ROLLBACK TO {points[-1]}")
            else:
                self.row()
        run(self.connection, draw.choice(["COMMIT", "COMMIT", "ROLLBACK"]))

    def prepared(self) -> None:
        run(self.connection, f"XA START {self.xid}")
        self.row()
        self.row()
        run(self.connection, f"XA END {self.xid}")
        if self.chance.random() < 0.3:
            run(self.connection, f"XA COMMIT {self.xid} ONE PHASE")
        else:
            end = self.chance.choice(["COMMIT", "ROLLBACK"])
            run(self.connection, f"XA PREPARE {self.xid}", f"XA {end} {self.xid}")


@pytest.mark.parametrize("seed", range(8))
def test_the_changes_lead_to_the_rows_of_the_table(server: Server, seed: int) -> None:
    _create(server)
    server.sql("CREATE TABLE untransacted (id int) ENGINE = MyISAM")
    rows: dict[str, Any] = {}
    with opened(server) as log:
        at = log.state().current
        Story(server, seed).run()
        until, is_all = log.state().current, False
        while not is_all:
            changes, end, is_all = log.changes(at, until, 3)
            for one in (one for one in changes if one.end > at):
                if one.before:
                    assert rows.pop(one.before["id"]) == one.before["n"]
                if one.after:
                    rows[one.after["id"]] = one.after["n"]
            at = max(at, end)
    assert rows == {str(key): str(n) for key, n in server.sql(f"SELECT id, n FROM `{NAME}`")}


def test_statements_are_found_in_every_form(server: Server) -> None:
    _create(server)
    ((folder,),) = server.sql("SELECT @@datadir")
    rows = f"{folder}rows-{uuid.uuid4().hex}.txt"
    server.sql(f"SELECT 7, 7 INTO OUTFILE '{rows}'")
    with opened(server) as log:
        since = log.state().current
        server.sql("SET sql_mode = 'ANSI_QUOTES'", f'TRUNCATE "{NAME}"')
        server.sql(f"SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE `{NAME}` ADD x int DEFAULT 5")
        mode = "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"
        server.sql(mode, f"ALTER TABLE `{NAME}` COMMENT 'a\\', ADD y varchar(9) DEFAULT 'b'")
        with contextlib.closing(server.connect()) as connection:
            connection.set_character_set("latin1")
            run(connection, f"TRUNCATE `{NAME}`")
        load = f"LOAD DATA INFILE '{rows}' INTO TABLE `{NAME}` (id, n)"
        server.sql("SET SESSION binlog_format = 'STATEMENT'", load)
        found = [one.operation for one in read(log, since)]
    assert found == ["truncate", "alter", "alter", "truncate", "truncate"]


def test_a_table_that_was_dropped_since_is_one_of_other_rows(server: Server) -> None:
    """It may be created again before the next run, which then finds no trace of it."""
    _create(server)
    with opened(server) as log:
        since = log.state().current
        server.sql(f"DROP TABLE `{NAME}`")
        assert [one.operation for one in read(log, since)] == ["truncate"]


def test_what_the_client_cannot_read_is_an_error(server: Server) -> None:
    _create(server, "id int PRIMARY KEY, l varchar(9) CHARACTER SET latin1, d date")
    for statements, says in (
        (("SET GLOBAL binlog_checksum = NONE", "SET GLOBAL binlog_checksum = CRC32"), "binlog_checksum was"),
        (
            ("SET sql_mode = 'ALLOW_INVALID_DATES'", f"INSERT INTO `{NAME}` VALUES (1, '', '2026-02-31')"),
            "an event that cannot be decoded",
        ),
        ((f"INSERT INTO `{NAME}` VALUES (2, x'81', NULL)",), "an event that cannot be decoded"),
        (
            ("SET binlog_alter_two_phase = ON", f"ALTER TABLE `{NAME}` COMMENT 'x'"),
            "an event that cannot be decoded",
        ),
    ):
        with opened(server) as log:
            since = log.state().current
            server.sql(*statements)
            with pytest.raises(ArcticError, match=says) as caught:
                read(log, since)
            assert "AR-403" in str(caught.value)
            assert not read(log, log.state().current)
    server.sql("SET GLOBAL binlog_alter_two_phase = ON")
    try:
        with opened(server) as log, pytest.raises(ArcticError, match="binlog_alter_two_phase=OFF"):
            log.state()
    finally:
        server.sql("SET GLOBAL binlog_alter_two_phase = OFF")


def test_a_file_that_was_removed_is_not_taken_for_the_first_one(server: Server) -> None:
    _create(server)
    with opened(server) as log:
        since = log.state().current
        server.sql(f"INSERT INTO `{NAME}` VALUES (1, 1)", "FLUSH BINARY LOGS")
        while len(server.sql("SHOW BINARY LOGS")) > 1:
            server.sql("PURGE BINARY LOGS BEFORE now() + INTERVAL 1 DAY")
        server.sql(*(f"INSERT INTO `{NAME}` VALUES ({key}, 1)" for key in range(2, 9)))
        with pytest.raises(ArcticError, match="was removed while it was read") as caught:
            read(log, since)
        assert "AR-403" in str(caught.value)


def test_a_log_that_ends_early_is_an_error(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    _create(server)
    with opened(server) as log:
        since = log.state().current
        server.sql(*(f"INSERT INTO `{NAME}` VALUES ({key}, 1)" for key in range(3)))
        until = log.state().current
        read_events = MariaLog._read

        def cut(own: MariaLog, stream: Any) -> Iterator[Any]:
            for at, event in enumerate(read_events(own, stream)):
                if at > 4:
                    return
                yield event

        monkeypatch.setattr(MariaLog, "_read", cut)
        with pytest.raises(ArcticError, match="has ended the connection"):
            log.changes(since, until, 9)


def test_a_reader_begins_when_no_transaction_is_prepared(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of such a transaction are in the log before the position where the reader begins."""
    _create(server)
    monkeypatch.setattr(mariadb_log, "_PREPARED_S", 0.2)
    with contextlib.closing(server.connect()) as connection, opened(server) as log:
        log.wait_for_prepared()
        insert = f"INSERT INTO `{NAME}` VALUES (1, 1)"
        run(connection, "XA START 'x'", insert, "XA END 'x'", "XA PREPARE 'x'")
        try:
            with pytest.raises(ArcticError, match=r"the XA transaction 'x' on .* has not ended"):
                log.wait_for_prepared()
            monkeypatch.setattr(mariadb_log, "_PREPARED_S", 20)
            timer = threading.Timer(0.5, lambda: run(connection, "XA COMMIT 'x'"))
            timer.start()
            log.wait_for_prepared()
            timer.join()
            assert server.sql(f"SELECT id FROM `{NAME}`") == [(1,)]
        finally:
            with contextlib.suppress(pymysql.Error):
                run(connection, "XA ROLLBACK 'x'")


def test_an_incident_is_a_log_that_lacks_changes(server: Server) -> None:
    """The server writes one if a change of a table cannot be rolled back and does not fit into the log."""
    _create(server)
    server.sql("CREATE TABLE untransacted (id int, t longtext) ENGINE = MyISAM")
    limit = "SET GLOBAL max_binlog_stmt_cache_size = {}, GLOBAL binlog_stmt_cache_size = {}"
    before = server.sql("SELECT @@max_binlog_stmt_cache_size, @@binlog_stmt_cache_size")[0]
    with opened(server) as log:
        since = log.state().current
        server.sql(limit.format(4096, 4096))
        try:
            with pytest.raises(pymysql.Error, match="max_binlog_stmt_cache_size"):
                server.sql("INSERT INTO untransacted SELECT seq, repeat('x', 9999) FROM seq_1_to_99")
        finally:
            server.sql(limit.format(*before))
        server.sql(f"INSERT INTO `{NAME}` VALUES (1, 1)")
        with pytest.raises(VersionUnavailable, match="incident"):
            read(log, since)
        now = log.state().current
        server.sql(f"INSERT INTO `{NAME}` VALUES (2, 1)")
        assert [one.after and one.after["id"] for one in read(log, now)] == ["2"]
