"""The example project, as a newcomer runs it: the demo in a process of its own, at a tiny scale."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

DEMO = Path(__file__).resolve().parents[2] / "example_project" / "demo.py"
PROJECT = DEMO.parent
LONGEST_S = 1500
pytestmark = pytest.mark.timeout(LONGEST_S + 60)
LAST_LINE = re.compile(r"demo: (\d+) rounds, (\d+) models, (\d+) differences, \d+ seconds")


# Over so few rows, most refreshes would be full ones.
INCREMENTALLY = f"""
import runpy
from dbt_arctic.auto import few_rows
few_rows.FEW_ROWS = 0
runpy.run_path({str(DEMO)!r}, run_name="__main__")
"""


def run_demo(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INCREMENTALLY, "--dir", str(work), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_S)


def last_line(done: subprocess.CompletedProcess[str]) -> re.Match[str]:
    lines = done.stdout.rstrip().splitlines()
    found = LAST_LINE.fullmatch(lines[-1]) if lines else None
    assert found is not None, done.stdout + done.stderr
    return found


@pytest.fixture(scope="module")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    work = tmp_path_factory.mktemp("demo") / "work"
    return work, run_demo(work, "--scale", "0.001", "--rounds", "2")


@pytest.fixture(scope="module")
def stages(finished_demo: tuple[Path, subprocess.CompletedProcess[str]]) -> dict[str, dict[str, Any]]:
    report = finished_demo[0] / "report.json"
    return {stage["name"]: stage for stage in json.loads(report.read_text(encoding="utf-8"))}


def test_every_model_equals_its_rebuild_after_every_stage(
    finished_demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = finished_demo
    rounds, models, differences = (int(number) for number in last_line(done).groups())
    assert (rounds, differences, done.returncode) == (2, 0, 0), done.stdout + done.stderr
    relations = {path.stem for path in PROJECT.glob("models/*/*.sql")} - {"nations"}
    relations |= {"nation", "region", "customer_history"}
    assert models == len(relations)
    # Each node, each relation that is read and each table that is compacted has its line.
    lines = [line.strip() for line in done.stdout.splitlines() if re.match(r" *\d+\.\d s  ", line)]
    for told in (
        r": dwd_order_lines, \d+\.\d s$",
        r"  read dwd_order_lines$",
        r"dwd_order_lines: compacted ",
    ):
        assert any(re.search(told, line) for line in lines), (told, lines)
    elapsed = [float(line.split()[0]) for line in lines]
    assert elapsed == sorted(elapsed)
    for phase in ("parse the project", "load", "round 2", "compaction", "tests", "compare with rebuilds"):
        assert re.search(rf"│ {phase} +│ +\d+\.\d │ +\d+% │", done.stdout), phase
    parses = (finished_demo[0] / "logs" / "dbt.log").read_text(encoding="utf-8")
    assert parses.count("Starting full parse") == 1


def test_each_stage_compares_every_model(stages: dict[str, dict[str, Any]]) -> None:
    compared_stages = ["load", "round 1", "round 2", "compaction"]
    assert list(stages) == [*compared_stages, "tests"]
    assert len({len(stages[name]["comparisons"]) for name in compared_stages}) == 1
    compared = {one["name"]: one["rows"] for one in stages["round 2"]["comparisons"]}
    assert compared["ods_orders"] > 1000
    assert compared["dwd_order_lines"] > 4000


def test_a_stage_makes_one_commit_for_each_table_that_it_changes(stages: dict[str, dict[str, Any]]) -> None:
    # less the ephemeral one; the sums of automatic models are in their own tables
    keyed = len([*PROJECT.glob("models/o*/*.sql"), *PROJECT.glob("models/d*/*.sql")]) - 1
    files = len([*PROJECT.glob("models/ods/*.sql")])  # each model of the first layer has a list of its files
    tables, snapshots, seeds = 3, 1, 2
    commits = {name: stage["commits"] for name, stage in stages.items()}
    # a keyed table begins with base and change
    assert commits["load"] == 2 * keyed + files + tables + snapshots + seeds
    assert commits["round 1"] == commits["round 2"] == keyed + files + tables + snapshots
    assert commits["compaction"] == keyed


def test_a_table_of_a_profile_for_small_data_has_one_bucket(
    finished_demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    for table in ("shop_ods/ods_lineitem__base_1", "shop_dwd/dwd_order_lines__base_1"):
        data = finished_demo[0] / "warehouse" / table / "data"
        (bucket,) = (path.name for path in data.iterdir() if path.is_dir())
        assert bucket.endswith("_bucket=0")


@pytest.mark.long
def test_a_planted_difference_is_found_and_fails_the_demo(
    finished_demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    # Planted in the feed, from which the rebuild is made: warehouse and rebuild are compared both ways.
    work, _ = finished_demo
    feed = work / "feed" / "supplier" / "round_002.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE changed AS FROM read_parquet('{feed}')")
        connection.execute(
            "UPDATE changed SET s_acctbal = s_acctbal + 1 "
            "WHERE change_seq = (SELECT max(change_seq) FROM changed WHERE change_op = 'U')"
        )
        connection.execute(f"COPY changed TO '{feed}' (FORMAT parquet)")
    done = run_demo(work, "--steps", "compare")
    assert int(last_line(done).group(3)) == 2  # one row that should not be there, one that should
    assert done.returncode == 1
    assert "ods_supplier differs from its rebuild" in done.stdout
