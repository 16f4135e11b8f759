"""Commits whose answers are lost, with other commits before the client notices it.

``python -m tests.faults.lost_answers postgres``, or ``rest``. The word ``short`` after it plays
some cases only. A statement commits through a proxy that holds back the answer. Another writer commits a
number of times, then the connection is cut. Nothing may be lost or doubled, each snapshot must remain
readable, and an error has to say that the outcome is unknown.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.catalog_settings import read_definition
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ArcticError, CommitStateUnknown
from tests.dbt.keyed.kafka_topics import tools
from tests.faults.proxy import Proxy, Trouble
from tests.matrix.components import PASSWORD, postgres, rest

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
            writes: tuple[bytes, ...] = (b"UPDATE iceberg_tables",)
            rest_of = {"user": "dbt", "password": PASSWORD, "warehouse": warehouse}
            pattern = "postgresql://127.0.0.1:{}/lake"
        else:
            component = stack.enter_context(rest(folder, tools(), warehouse, None))
            writes = (b"POST /v1/namespaces/shop/tables/orders HTTP",)
            rest_of, pattern = {}, "http://127.0.0.1:{}"
        port = urlsplit(component.address).port or 0
        proxy = Proxy(port, writes)
        stack.callback(proxy.close)
        made = [{"type": kind, "uri": pattern.format(one), **rest_of} for one in (proxy.port, port)]
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
    )
    return SessionEngine(settings).connect()


def _run(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


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
        troubled.close()
        healthy.close()
    sys.stdout.write(f"answers: {failed} wrong\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
