"""The workload of the benchmark's peers: rows, changes, orders, and the reports of processes. No Spark."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from benchmarks.peers.data import expect, make, prepare
from benchmarks.peers.files import Files
from benchmarks.peers.meter import Cost, Meter, lying
from benchmarks.peers.order import WorkOrder
from benchmarks.peers.peer import Machine
from benchmarks.peers.report import Reporter, read_lines
from benchmarks.peers.roster import PEERS
from benchmarks.peers.smoke import ratios
from benchmarks.peers.story import growth, mixed, pending, upserts
from benchmarks.peers.workload import (
    COLUMNS,
    KEYS,
    as_text,
    check_sql,
    digest_sql,
    plan_rounds,
    state_sql,
)

ROWS = 20_000


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("count", [10, 200, 2_000])
def test_a_round_changes_each_key_once_and_a_tenth_of_them_goes(
    keys: str, count: int, tmp_path: Path
) -> None:
    files, rounds = Files(tmp_path), plan_rounds(ROWS, [(count, keys)] * 3)
    with duckdb.connect() as duck:
        make(duck, files, ROWS, rounds)
        for one in rounds:
            found = duck.execute(
                "SELECT count(*), count(DISTINCT id), count(CASE WHEN deleted THEN 1 END), "
                f"count(CASE WHEN id >= {one.newest} THEN 1 END), min(id) >= 0 FROM '{files.changes(one)}'"
            ).fetchone()
            assert found == (count, count, count // 10, one.inserts, True)


def test_recent_keys_are_recent_and_hot_ones_the_same(tmp_path: Path) -> None:
    files, recent, hot = (
        Files(tmp_path),
        plan_rounds(ROWS, [(200, "recent")] * 2),
        plan_rounds(ROWS, [(200, "hot")] * 2),
    )
    with duckdb.connect() as duck:
        make(duck, files, ROWS, [*recent, *hot])
        among_newest = duck.execute(
            f"SELECT count(*) FROM '{files.changes(recent[1])}' "
            f"WHERE id BETWEEN {recent[1].newest - 400} AND {recent[1].newest - 1}"
        ).fetchone()
        assert among_newest is not None
        assert 140 <= among_newest[0] <= 160
        ids = {frozenset(duck.execute(f"SELECT id FROM '{files.changes(one)}'").fetchall()) for one in hot}
        assert len(ids) == 1


def test_the_rows_that_a_rebuild_reads_are_those_that_all_must_hold(tmp_path: Path) -> None:
    files, story = Files(tmp_path), upserts(2_000, 1)
    expected = prepare(files, story)
    planned = story.planned()
    changes = [f"'{files.changes(one)}'" for one in planned]
    rows = f"({state_sql(repr(str(files.initial(2_000))), changes, COLUMNS, ('id',))}) AS told"
    with duckdb.connect() as duck:
        for what, sql in (("check", check_sql(rows)), ("digest", digest_sql(rows, COLUMNS, "duckdb"))):
            assert as_text(duck.execute(sql).fetchall()) == expected[f"{len(planned)} {what}"]


def test_what_must_be_found_is_computed_once_and_again_for_other_rounds(tmp_path: Path) -> None:
    files, story = Files(tmp_path), growth(2_000, 20, 2)
    prepare(files, story)
    kept = files.folder / f"expected-{story.name}.json"
    written = kept.read_text().replace('"0 lookup"', '"0 kept"')
    kept.write_text(written)
    with duckdb.connect() as duck:
        assert "0 kept" in expect(duck, files, story)
        other = growth(2_000, 20, 3)
        make(duck, files, 2_000, other.planned())
        assert "0 kept" not in expect(duck, files, other)


@pytest.mark.parametrize(
    "story", [upserts(5_000, 2), growth(5_000, 50, 3), pending(5_000, 8), mixed(5_000, 4)]
)
def test_a_work_order_is_the_same_after_its_way_through_a_file(story: object, tmp_path: Path) -> None:
    order = WorkOrder(
        "arctic",
        story,  # type: ignore[arg-type]
        tmp_path / "lake",
        tmp_path / "data",
        tmp_path / "told",
        Machine(2, "1g", {"spark.a": "b"}),
        8,
    )
    assert WorkOrder.from_json(order.to_json()) == order


def test_reads_against_pending_commits_follow_powers_of_two() -> None:
    (case,) = pending(100_000, 20).cases
    assert sorted(case.read_after) == [0, 1, 2, 4, 8, 16]


def test_the_report_of_a_process_before_its_failure_is_kept(tmp_path: Path) -> None:
    report = Reporter(tmp_path / "told.jsonl")
    report.versions({"spark": "4.1.4"})
    report.sample("1% uniform", "write", Cost(1.5, 10, 20, 30), number=1, commits=1, lying=(3, 400))
    report.check(1, "check", ["1", "2"])
    report.absent("feed", "it has none")
    report.error("out of memory")
    told_of = read_lines((tmp_path / "told.jsonl").read_text().splitlines())
    (sample,) = told_of.samples
    assert (sample.seconds, sample.written, sample.files, sample.size) == (1.5, 20, 3, 400)
    assert told_of.checks[0].values == ["1", "2"]
    assert (told_of.versions, told_of.absent) == ({"spark": "4.1.4"}, {"feed": "it has none"})
    assert told_of.error == "out of memory"


def test_files_of_a_table_are_those_below_folders_of_its_name(tmp_path: Path) -> None:
    for place in ("db/orders/data", "db/orders__base_1/data", "db/orders_of_others/data"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "rows").write_bytes(b"12345")
    (tmp_path / "db" / "orders.txt").write_bytes(b"1")
    assert lying(tmp_path, "orders") == (2, 10)


def test_a_step_costs_what_it_wrote(tmp_path: Path) -> None:
    result, cost = Meter(os.getpid()).measure(lambda: (tmp_path / "rows").write_bytes(b"1" * 100_000))
    assert result == 100_000
    assert cost.seconds > 0
    assert cost.written is None or cost.written >= 100_000


def test_ratios_are_of_medians_and_the_last_line_contains_them() -> None:
    found = ratios(
        {
            "merge": [10.0, 20.0, 1000.0],
            "upsert": [2.0],
            "read": [3.0],
            "plain read": [2.0],
            "compaction": [5.0],
        }
    )
    assert found.line() == "bench: write x10.0 vs merge, read x1.50 vs plain, compaction x4.0 vs merge"


def test_every_peer_has_a_module() -> None:
    root = Path(__file__).parents[3]
    for place in PEERS.values():
        module, _, _ = place.partition(":")
        assert (root / f"{module.replace('.', '/')}.py").is_file()
