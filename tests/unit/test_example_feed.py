"""The example project's change feed and its comparison, without dbt and Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dbt_arctic.sources.file_settings import parse_source

PROJECT = Path(__file__).resolve().parents[2] / "example_project"
sys.path.insert(0, str(PROJECT))

from check.compare import compare  # noqa: E402
from check.definitions import Definition  # noqa: E402
from check.rebuild import Rebuild  # noqa: E402
from feed.land import LandingFolder  # noqa: E402
from feed.tables import TABLES  # noqa: E402
from feed.write import feed_file, rounds_written, write_feed  # noqa: E402

KEYS = {table.name: ", ".join(table.key) for table in TABLES}


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("feed")
    write_feed(folder, scale=0.001, rounds=3)
    return folder


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def rows(feed: Path, table: str) -> str:
    return f"read_parquet('{feed / table}/round_*.parquet')"


def test_the_same_seed_gives_the_same_feed(feed: Path, tmp_path: Path) -> None:
    write_feed(tmp_path, scale=0.001, rounds=3)
    assert rounds_written(tmp_path) == 3
    for table in TABLES:
        for number in range(4):
            again = feed_file(tmp_path, table.name, number).read_bytes()
            assert again == feed_file(feed, table.name, number).read_bytes()


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_key_is_inserted_only_when_absent_and_changed_only_when_present(
    feed: Path, database: duckdb.DuckDBPyConnection, table: str
) -> None:
    impossible = database.execute(f"""
        SELECT change_op, before, count(*)
        FROM (
            SELECT change_op,
                lag(change_op, 1, 'D') OVER (PARTITION BY {KEYS[table]} ORDER BY change_seq) AS before
            FROM {rows(feed, table)}
        )
        WHERE (change_op = 'I') <> (before = 'D')
        GROUP BY ALL""").fetchall()
    assert impossible == []


def test_each_round_has_keys_that_change_twice_that_come_and_go_and_that_come_back(
    feed: Path, database: duckdb.DuckDBPyConnection
) -> None:
    histories = database.execute(f"""
        SELECT change_round, string_agg(change_op, '' ORDER BY change_seq) AS ops
        FROM {rows(feed, "orders")}
        WHERE change_round > 0
        GROUP BY change_round, o_orderkey""").fetchall()
    for number in (1, 2, 3):
        assert {"I", "D", "U", "IU", "ID", "DI"} <= {ops for in_round, ops in histories if in_round == number}


def test_lines_never_outlive_their_order(feed: Path, database: duckdb.DuckDBPyConnection) -> None:
    def live(table: str) -> str:
        latest = f"max_by(change_op, change_seq) AS op FROM {rows(feed, table)} GROUP BY {KEYS[table]}"
        return f"(SELECT {KEYS[table]}, {latest} HAVING op <> 'D')"

    found = database.execute(f"""
        SELECT count(*), count(o_orderkey), count(DISTINCT o_orderkey)
        FROM {live("lineitem")} LEFT JOIN {live("orders")} ON l_orderkey = o_orderkey""").fetchone()
    orders = database.execute(f"SELECT count(*) FROM {live('orders')}").fetchone()
    assert found is not None
    assert orders is not None
    assert found[0] == found[1]
    assert found[2] == orders[0]


def test_landing_a_round_twice_lands_it_once(feed: Path, tmp_path: Path) -> None:
    landing = LandingFolder(feed, tmp_path)
    assert landing.last_round() == -1
    first, again = landing.land_round(0), landing.land_round(0)
    assert (first > 0, again) == (True, 0)
    assert landing.land_round(1) > 0
    assert landing.last_round() == 1
    for table in TABLES:
        for number in (0, 1):
            landed = feed_file(tmp_path, table.name, number).read_bytes()
            assert landed == feed_file(feed, table.name, number).read_bytes()
    landing.start_over()
    assert (landing.last_round(), landing.land_round(0)) == (-1, first)


def test_a_file_that_is_not_complete_has_a_hidden_name(
    feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = LandingFolder(feed, tmp_path)

    def ends(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:100])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("feed.land.shutil.copyfile", ends)
        with pytest.raises(KeyboardInterrupt):
            landing.land_round(0)
    (written,) = (path for path in tmp_path.rglob("*") if path.is_file())
    source = parse_source("raw.orders", {"from": "files", "path": str(tmp_path), "format": "parquet"}, {})
    assert not source.accepts(str(written))
    assert landing.last_round() == -1
    landing.land_round(0)
    assert all(source.accepts(str(path)) for path in tmp_path.rglob("*") if path.is_file())


@pytest.fixture
def one_table_rebuilt(feed: Path) -> Rebuild:
    definition = Definition("ods_orders", "model", "shop_ods", 'lake."shop_ods"."ods_orders"', "")
    rebuild = Rebuild(feed, PROJECT / "seeds", [definition])
    rebuild.build(last_round=2)
    return rebuild


def test_a_rebuild_of_the_same_round_is_made_once(one_table_rebuilt: Rebuild) -> None:
    run = one_table_rebuilt.connection.execute
    run('DROP TABLE lake."shop_ods"."ods_orders"')
    one_table_rebuilt.build(last_round=2)
    assert run("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)
    one_table_rebuilt.build(last_round=1)
    assert run("SELECT count(*) FROM duckdb_tables()").fetchone() == (1,)


def export(rebuild: Rebuild, folder: Path, select: str) -> Path:
    (folder / "ods_orders").mkdir()
    rebuild.connection.execute(f"COPY ({select}) TO '{folder}/ods_orders/part.parquet' (FORMAT parquet)")
    return folder


@pytest.mark.parametrize(
    ("select", "wrong", "missing"),
    [
        ("SELECT * FROM {orders}", 0, 0),
        ("SELECT * FROM {orders} LIMIT (SELECT count(*) - 1 FROM {orders})", 0, 1),
        ("SELECT * FROM {orders} UNION ALL (SELECT * FROM {orders} LIMIT 2)", 2, 0),
        (
            "SELECT * REPLACE (IF(o_orderkey = (SELECT min(o_orderkey) FROM {orders}), NULL, o_clerk)"
            " AS o_clerk) FROM {orders}",
            1,
            1,
        ),
    ],
    ids=["equal", "a row lost", "rows doubled", "a value changed"],
)
def test_a_comparison_counts_rows_with_their_multiplicity(
    one_table_rebuilt: Rebuild, tmp_path: Path, select: str, wrong: int, missing: int
) -> None:
    sql = select.format(orders='lake."shop_ods"."ods_orders"')
    (found,) = compare(one_table_rebuilt, export(one_table_rebuilt, tmp_path, sql))
    assert (found.wrong, found.missing, found.differences) == (wrong, missing, wrong + missing)


def test_a_column_on_one_side_only_is_a_difference(one_table_rebuilt: Rebuild, tmp_path: Path) -> None:
    sql = 'SELECT *, 1 AS extra FROM lake."shop_ods"."ods_orders"'
    (found,) = compare(one_table_rebuilt, export(one_table_rebuilt, tmp_path, sql))
    assert found.differences == 1
    assert "extra" in found.problem
