"""From the reports of processes to medians, targets, tables and pictures. No Spark, no DuckDB."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.peers.layers import dws_sql
from benchmarks.peers.pictures import pictures_of, write_pictures
from benchmarks.peers.report import Check, ProcessReport, Sample, first_line
from benchmarks.peers.run import Run, differences
from benchmarks.peers.stored_runs import as_dict, kept_runs
from benchmarks.peers.story import growth, layers, upserts
from benchmarks.peers.summary import MAIN, Spread, Summary, targets
from benchmarks.peers.tables import markdown, shown_seconds
from benchmarks.peers.workload import as_text

TITLES = {"arctic": "dbt-arctic", "iceberg-cow": "MERGE on Iceberg", "hudi": "Hudi"}


def sample(step: str, seconds: float, state: str = "", case: str = MAIN) -> Sample:
    return Sample(case, step, state, 1, 1, seconds, 1_000_000, 2_000_000, 3_000_000, 4, 5_000_000)


def run(peer: str, write: float, pending: float, *, error: str | None = None, plain: float = 2.0) -> Run:
    samples = [
        *(sample("write", write * times) for times in (1, 2, 3)),
        sample("read aggregate", pending, "pending"),
        sample("feed", write),
        sample("compact", write),
    ]
    if peer == "arctic":
        samples.append(sample("read aggregate", plain, "plain"))
    return Run(peer, upserts(1_000, 1), 0, ProcessReport(samples=samples, error=error))


def outcome(summary: Summary, what: str) -> tuple[str, bool | None]:
    (found,) = [one for one in targets(summary) if what in one.what]
    return found.measured, found.met


def test_a_target_compares_medians_and_a_missed_one_is_reported_like_the_others() -> None:
    summary = Summary([run("arctic", 1, 2.8), run("iceberg-cow", 30, 2.0), run("hudi", 4, 2.0)])
    assert outcome(summary, "write: times faster than MERGE copy-on-write") == ("30.0", True)
    assert outcome(summary, "write: times faster than Hudi") == ("4.0", False)
    assert outcome(summary, "write: times faster than Delta") == ("not measured", None)
    assert outcome(summary, "read: times faster than Hudi") == ("0.7", False)
    assert outcome(summary, "over a plain scan") == ("1.40", True)
    assert outcome(summary, "compaction") == ("1.00 s; next hudi 4.00 s", True)
    text = markdown(summary, {"machine": "small"}, TITLES)
    assert "| write: times faster than Hudi | at least 5 | 4.0 | **missed** |" in text
    assert "| dbt-arctic |" in text
    assert "2.00 (1.00 to 3.00)" in text


def test_a_run_that_failed_or_found_wrong_rows_gives_no_numbers_and_says_why() -> None:
    wrong = Run("iceberg-cow", upserts(1_000, 1), 0, run("iceberg-cow", 1, 1).told, ["round 1: 2 | 3"])
    summary = Summary([run("arctic", 1, 1), run("hudi", 5, 5, error="no such jar"), wrong])
    assert outcome(summary, "write: times faster than Hudi") == ("not measured", None)
    text = markdown(summary, {}, TITLES)
    assert "| Hudi | upserts-1000 | no such jar |" in text
    assert "| MERGE on Iceberg | upserts-1000 | round 1: 2 \\| 3 |" in text


def test_growth_is_reported_from_the_smallest_to_the_largest_table() -> None:
    runs = [
        Run(
            "arctic",
            growth(rows, 100, 1),
            0,
            ProcessReport(samples=[sample("write", seconds, case="growth")]),
        )
        for rows, seconds in ((1_000, 1.0), (20_000, 1.2))
    ]
    assert outcome(Summary(runs), "largest table") == ("1.20 (20 times the rows)", True)
    assert "| rows | 1,000 | 20,000 |" in markdown(Summary(runs), {}, TITLES)


def test_layers_are_compared_with_the_best_peer_and_not_with_a_rebuild() -> None:
    def refreshed(peer: str, seconds: float) -> Run:
        samples = [sample("refresh", seconds, case="layers"), sample("ods", seconds / 2, case="layers")]
        return Run(peer, layers(1_000, 1), 0, ProcessReport(samples=samples))

    summary = Summary([refreshed("arctic", 2), refreshed("hudi", 12), refreshed("rebuild", 1)])
    assert outcome(summary, "layered refresh") == ("6.0 (hudi)", True)


def test_rounds_of_another_workload_are_not_taken_for_those_that_are_pending() -> None:
    more = Run("arctic", layers(1_000, 5), 0, ProcessReport(samples=[sample("refresh", 1, case="layers")]))
    alone, both = (
        markdown(Summary(runs), {}, TITLES) for runs in ([run("arctic", 1, 1)], [run("arctic", 1, 1), more])
    )
    (told_of,) = [line for line in alone.splitlines() if "such rounds pending" in line]
    assert told_of in both.splitlines()


def test_what_differs_from_what_must_be_found_is_a_difference() -> None:
    told_of = ProcessReport(
        checks=[Check(1, "check", ["1"]), Check(2, "check", ["3"]), Check(9, "other", ["7"])]
    )
    (found,) = differences(told_of, {"1 check": ["1"], "2 check": ["2"]})
    assert found == "after round 2, check: ['3'] instead of ['2']"


def test_the_last_cause_says_most() -> None:
    java = (
        "Py4JJavaError: An error occurred\n: java.Outer: no\n\tat x\nCaused by: A: first\nCaused by: B: last"
    )
    assert first_line(java) == "B: last"
    assert first_line("Py4JJavaError: An error occurred\n: java.Outer: no\n\tat x") == "java.Outer: no"
    assert first_line("KeyError: 'x'") == "KeyError: 'x'"


def test_numbers_are_the_same_text_from_every_engine() -> None:
    from decimal import Decimal

    assert as_text([(Decimal("1.500"), Decimal("100"), None, 7)]) == ["1.5", "100", "0", "7"]


def test_a_spread_of_nothing_is_nothing() -> None:
    assert Spread.of([None, None]) is None
    assert shown_seconds(None) == ""
    assert shown_seconds(Spread.of([2.0])) == "2.00"


def test_signed_sums_add_what_came_and_take_what_went() -> None:
    assert "sum(sign * amount)" in dws_sql("changed", "sign")
    assert "sum(sign) AS orders" in dws_sql("changed", "sign")


def test_pictures_are_drawn_of_what_there_is(tmp_path: Path) -> None:
    summary = Summary([run("arctic", 1, 2), run("hudi", 5, 4)])
    pictures = pictures_of(summary, TITLES)
    assert [picture.name for picture in pictures] == ["write", "read", "feed", "compaction"]
    write_pictures(tmp_path, pictures[:1], markdown(summary, {"machine": "a <small> one"}, TITLES))
    assert ElementTree.fromstring((tmp_path / "write.svg").read_text()).tag.endswith("svg")
    page = (tmp_path / "index.html").read_text()
    assert "a &lt;small&gt; one" in page
    assert "<td>dbt-arctic</td>" in page


def test_other_workloads_that_were_measured_before_stay_in_the_results(tmp_path: Path) -> None:
    before = Run(
        "hudi",
        upserts(1_000, 1),
        0,
        ProcessReport([sample("write", 2)], absent={"feed": "none"}),
        measured="May",
    )
    failed = Run("delta", layers(1_000, 1), 0, ProcessReport(error="no such jar"))
    results = tmp_path / "results.json"
    assert kept_runs(results, ["layers"]) == []
    results.write_text(json.dumps({"runs": [as_dict(before), as_dict(failed)]}))
    assert kept_runs(results, ["layers"]) == [before]
    assert kept_runs(results, ["upserts"]) == [failed]
