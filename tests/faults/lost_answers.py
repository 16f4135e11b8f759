"""Commits whose answers are lost, with other commits before the client notices it.

``python -m tests.faults.lost_answers postgres``, or another type of catalog. The word ``short`` after it
plays some cases only. A statement commits through a proxy that holds back the answer. Another writer commits
a number of times, then the connection is cut. Nothing may be lost or doubled, each snapshot must remain
readable, and an error has to say that the outcome is unknown.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.catalog_settings import read_definition
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ArcticError, CommitStateUnknown
from tests.dbt.keyed.kafka_topics import tools
from tests.faults.proxy import Proxy, Trouble
from tests.matrix.cells import AWS
from tests.matrix.components import PASSWORD, hive, moto, postgres, rest

TABLE = "lake.shop.orders"
FIRST = {1: 10, 2: 20, 3: 30}
STATEMENTS: dict[str, tuple[str, dict[int, int]]] = {
    "append": (f"INSERT INTO {TABLE} VALUES (4, 40)", {**FIRST, 4: 40}),
    "update": (f"UPDATE {TABLE} SET amount = 11 WHERE id = 1", {**FIRST, 1: 11}),
    "merge": (
        f"MERGE INTO {TABLE} t USING (SELECT 1 AS id, 1 AS more UNION ALL SELECT 9, 90) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = t.amount + s.more "
        "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.more)",
        {**FIRST, 1: 11, 9: 90},
    ),
    "delete of files": (f"DELETE FROM {TABLE} WHERE id > 0", {}),
    "replace": (f"INSERT OVERWRITE {TABLE} SELECT 7, 70", {7: 70}),
}
"""Statements, and the rows after each of them."""
CREATED = {
    "table": "CREATE TABLE lake.shop.made (id BIGINT) USING iceberg",
    "table with rows": "CREATE TABLE lake.shop.filled USING iceberg AS SELECT 1 AS id",
    "view": "CREATE VIEW lake.shop.shown AS SELECT 1 AS id",
    "other view": "CREATE OR REPLACE VIEW lake.shop.shown AS SELECT 2 AS id",
    "new rows": "CREATE OR REPLACE TABLE lake.shop.filled USING iceberg AS SELECT 2 AS id",
}
"""Statements whose answer is lost while nothing else happens. Spark refuses to repeat most of them."""
OTHERS = (0, 1, 3)
"""Numbers of commits in between."""
SHORT = (("append", 1), ("append", 3), ("update", 0))
"""The cases in which each of the known damages occurs: a commit of others lost, and files deleted."""


@contextmanager
def catalogs(kind: str, folder: Path) -> Iterator[tuple[Proxy, dict[str, Any], dict[str, Any]]]:
    """A proxy, and the settings of a catalog through it and without it."""
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own
    warehouse = str(folder / "warehouse")
    with ExitStack() as stack:
        if kind == "postgres":
            component = stack.enter_context(postgres(folder))
            writes: tuple[bytes, ...] = (b"UPDATE iceberg_tables", b"INSERT INTO iceberg_tables")
            rest_of: dict[str, Any] = {"user": "dbt", "password": PASSWORD, "warehouse": warehouse}
            pattern = "postgresql://127.0.0.1:{}/lake"
        elif kind == "hive":
            component = stack.enter_context(hive(folder, s3=False))
            writes, rest_of = (b"alter_table_with_environment_context",), {"warehouse": warehouse}
            pattern = "thrift://127.0.0.1:{}"
        elif kind == "glue":
            component = stack.enter_context(moto(folder, tools()))
            writes, pattern = (b"AWSGlue.UpdateTable",), "http://127.0.0.1:{}"
            store = {"endpoint": component.address, "region": "us-east-1", "path_style": True}
            rest_of = {"region": "us-east-1", "warehouse": "s3://lake/warehouse", "s3": store}
            os.environ |= AWS
        else:
            component = stack.enter_context(rest(folder, tools(), warehouse, None))
            writes = (b"POST /v1/namespaces/shop/tables/orders HTTP",)
            rest_of, pattern = {}, "http://127.0.0.1:{}"
        port = urlsplit(component.address).port or 0
        proxy = Proxy(port, writes)
        stack.callback(proxy.close)
        address = "endpoint" if kind == "glue" else "uri"
        made = [{"type": kind, address: pattern.format(one), **rest_of} for one in (proxy.port, port)]
        yield proxy, made[0], made[1]


def _connected(folder: Path, catalog: dict[str, Any]) -> Connection:
    definition = read_definition(catalog)
    settings = SparkSettings(
        catalog="lake",
        warehouse=definition.warehouse or "",
        catalog_properties=definition.properties,
        master="local[1]",
        driver_memory="1g",
        small_data=True,
        spark_conf={"spark.hadoop.iceberg.engine.hive.lock-enabled": "false"},
    )
    return SessionEngine(settings).connect()


def _run(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


class LostAnswers:
    """:param troubled: a connection through the proxy; ``healthy`` is one without it."""

    def __init__(self, proxy: Proxy, troubled: Connection, healthy: Connection) -> None:
        self._proxy, self._troubled, self._healthy = proxy, troubled, healthy

    def play(self, sql: str, after: dict[int, int], others: int) -> str:
        """Lose the answer to a statement while another writer commits. Returns how the statement ended."""
        self._build()
        errors: list[ArcticError] = []
        thread = threading.Thread(target=self._attempt, args=(sql, errors))
        before = self._proxy.met
        self._proxy.begin(Trouble.ANSWER_HELD)
        thread.start()
        while self._snapshots() < 2:
            assert thread.is_alive(), f"{sql} ended before it was in the table: {errors}"
            threading.Event().wait(0.1)
        for number in range(others):
            _run(self._healthy, f"INSERT INTO {TABLE} VALUES ({100 + number}, 0)")
        assert self._proxy.met > before
        self._proxy.heal()
        thread.join()
        expected = {**after, **{100 + number: 0 for number in range(others)}}
        self._check(sorted(expected.items()), 2 + others)
        assert all(isinstance(error, CommitStateUnknown) for error in errors), errors
        return "unknown" if errors else "done"

    def create(self, sql: str) -> str:
        """Lose the answer to the creation of a table or view. Returns how the statement ended."""
        errors: list[ArcticError] = []
        before = self._proxy.met
        self._proxy.begin(Trouble.ANSWER_LOST)
        self._attempt(sql, errors)
        assert self._proxy.met > before
        assert errors == [], errors
        return "done"

    def cut(self, idle_s: float) -> str:
        """Cut a connection with the driver, then write with it. Returns the state of the error.

        08003 is repeated by Iceberg, because nothing was sent.
        """
        from py4j.protocol import Py4JJavaError

        assert isinstance(self._troubled, SessionConnection)
        manager = self._troubled.process.context._gateway.jvm.java.sql.DriverManager
        address = f"jdbc:arctic:postgresql://127.0.0.1:{self._proxy.port}/lake"
        with closing(manager.getConnection(address, "dbt", PASSWORD)) as opened:
            statement = opened.prepareStatement("UPDATE iceberg_tables SET table_name = '' WHERE 1 = 0")
            assert statement.executeUpdate() == 0
            threading.Event().wait(idle_s)
            assert statement.executeUpdate() == 0
            threading.Event().wait(idle_s)
            self._proxy.begin(Trouble.REFUSED)
            self._proxy.heal()
            try:
                statement.executeUpdate()
            except Py4JJavaError as error:
                return str(error.java_exception.getSQLState())
        return "done"

    def _build(self) -> None:
        rows = ", ".join(f"({id_}, {amount})" for id_, amount in FIRST.items())
        for sql in (
            f"DROP TABLE IF EXISTS {TABLE}",
            f"CREATE TABLE {TABLE} (id BIGINT, amount BIGINT) USING iceberg",
            f"INSERT INTO {TABLE} VALUES {rows}",
        ):
            _run(self._healthy, sql)

    def _attempt(self, sql: str, errors: list[ArcticError]) -> None:
        try:
            _run(self._troubled, sql)
        except ArcticError as error:
            errors.append(error)

    def _snapshots(self) -> int:
        return int(_run(self._healthy, f"SELECT count(*) FROM {TABLE}.snapshots")[0][0])

    def _check(self, expected: list[tuple[int, int]], commits: int) -> None:
        found = sorted(_run(self._healthy, f"SELECT id, amount FROM {TABLE}"))
        assert found == expected, f"{found}, and not {expected}"
        history = [one for (one,) in _run(self._healthy, f"SELECT snapshot_id FROM {TABLE}.history")]
        assert len(history) == len(set(history)) == commits, f"{commits} commits, and the history {history}"
        for snapshot in history:
            _run(self._healthy, f"SELECT count(*), sum(amount) FROM {TABLE} VERSION AS OF {snapshot}")


def main() -> int:
    kind, *short = sys.argv[1:]
    cases = SHORT if short else [(what, others) for what in STATEMENTS for others in OTHERS]
    with (
        tempfile.TemporaryDirectory(prefix="answers-") as name,
        catalogs(kind, Path(name)) as (proxy, through, direct),
    ):
        troubled, healthy = (_connected(Path(name), one) for one in (through, direct))
        _run(healthy, "CREATE SCHEMA lake.shop")
        story = LostAnswers(proxy, troubled, healthy)
        failed = 0
        for what, others in cases:
            try:
                ended = story.play(*STATEMENTS[what], others)
            except (AssertionError, ArcticError) as error:
                proxy.heal()
                ended, failed = f"WRONG: {str(error)[:500]}", failed + 1
            sys.stdout.write(f"{what}, {others} others: {ended}\n")
            sys.stdout.flush()
        for what, sql in CREATED.items() if kind == "postgres" else ():
            try:
                ended = story.create(sql)
            except AssertionError as error:
                ended, failed = f"WRONG: {str(error)[:500]}", failed + 1
            sys.stdout.write(f"{what}: {ended}\n")
        for idle_s in (0.0, 1.2) if kind == "postgres" else ():
            sys.stdout.write(f"cut after {idle_s} s: {story.cut(idle_s)}\n")
        troubled.close()
        healthy.close()
    sys.stdout.write(f"answers: {failed} wrong\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
