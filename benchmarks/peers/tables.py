"""The picture in words: Markdown tables of a summary. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.peers.report import Sample
from benchmarks.peers.summary import MAIN, Spread, Summary, targets

MB = 1e6


def markdown(summary: Summary, about: Mapping[str, str], titles: Mapping[str, str]) -> str:
    parts = [
        "# Side by side",
        "Medians, with the least and the most in brackets. Seconds unless a heading says otherwise; bytes "
        "are what the Spark process asked the system for. Empty: not measured. A dash: not offered.",
        _table(["", ""], [[f"**{name}**", value] for name, value in about.items()]),
        "## Where we want to stand",
        _targets(summary),
    ]
    if summary.cases("upserts"):
        parts += [f"## {MAIN} changes", _main(summary, titles)]
        parts += ["## Every share and choice of keys: write", _matrix(summary, titles, "write")]
        stories = [run.story for run in summary.runs if run.story.workload == "upserts"]
        rounds = max(len(case.rounds) for story in stories for case in story.cases)
        parts += [f"## The same: read of all rows with {rounds} such rounds pending"]
        parts += [_last_reads(summary, titles)]
        parts += ["## The same: compaction", _matrix(summary, titles, "compact")]
    parts += [*_growth(summary, titles), *_pending(summary, titles), *_mixed(summary, titles)]
    parts += [*_tpch(summary, titles), *_layers(summary, titles), *_failures(summary, titles)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _last_reads(summary: Summary, titles: Mapping[str, str]) -> str:
    """Of each case the reads after its last round. What never compacts counts commits from the beginning."""

    def cell(peer: str, case: str) -> str:
        reads = summary.samples(peer, "upserts", "read aggregate", case=case, state="pending")
        last = max((one.commits for one in reads), default=0)
        return shown_seconds(Spread.of(one.seconds for one in reads if one.commits == last))

    cases = summary.cases("upserts")
    rows = [[titles[peer], *(cell(peer, case) for case in cases)] for peer in summary.peers]
    return _table(["", *cases], rows)


def _targets(summary: Summary) -> str:
    words = {True: "met", False: "**missed**", None: ""}
    rows = [[one.what, one.wanted, one.measured, words[one.met]] for one in targets(summary)]
    return _table(["", "wanted", "measured", ""], rows)


def _main(summary: Summary, titles: Mapping[str, str]) -> str:
    columns: list[tuple[str, Callable[[str], str]]] = [
        ("load", lambda peer: shown_seconds(summary.seconds(peer, "upserts", "load"))),
        ("write", lambda peer: shown_seconds(summary.seconds(peer, "upserts", "write", case=MAIN))),
        ("MB written", _of(summary, "write", lambda one: _over(one.written, MB))),
        ("MB read", _of(summary, "write", lambda one: _over(one.read, MB))),
        ("peak MB", _of(summary, "write", lambda one: _over(one.peak, MB))),
        ("files", _of(summary, "write", lambda one: one.files)),
    ]
    for what in ("aggregate", "filtered", "lookup"):
        columns.append((f"{what}, 1 % pending", _reads(summary, what, "pending")))
    columns += [
        ("incremental read", lambda peer: _offered(summary, peer, "feed")),
        ("compaction", lambda peer: _offered(summary, peer, "compact")),
        ("aggregate after it", _reads(summary, "aggregate", "compacted")),
    ]
    rows = [[titles[peer], *(value(peer) for _, value in columns)] for peer in summary.peers]
    return _table(["", *(name for name, _ in columns)], rows)


def _reads(summary: Summary, what: str, state: str) -> Callable[[str], str]:
    commits = 1 if state == "pending" else None

    def cell(peer: str) -> str:
        where = {"case": MAIN, "state": state, "commits": commits}
        return shown_seconds(summary.seconds(peer, "upserts", f"read {what}", **where))

    return cell


def _of(summary: Summary, step: str, value: Callable[[Sample], float | None]) -> Callable[[str], str]:
    def cell(peer: str) -> str:
        spread = summary.of(value, peer, "upserts", step, case=MAIN)
        return (
            ""
            if spread is None
            else f"{spread.median:,.1f}"
            if spread.median < 10
            else f"{spread.median:,.0f}"
        )

    return cell


def _offered(summary: Summary, peer: str, step: str) -> str:
    spread = summary.seconds(peer, "upserts", step, case=MAIN)
    if spread is None and any(step in run.told.absent for run in summary.good if run.peer == peer):
        return "-"
    return shown_seconds(spread)


def _matrix(summary: Summary, titles: Mapping[str, str], step: str, **where: object) -> str:
    cases = summary.cases("upserts")
    rows = [
        [
            titles[peer],
            *(shown_seconds(summary.seconds(peer, "upserts", step, case=case, **where)) for case in cases),
        ]
        for peer in summary.peers
    ]
    return _table(["", *cases], rows)


def _growth(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    sizes = summary.sizes("growth")
    if not sizes:
        return []
    parts = ["## Growth: as many changes on larger and larger tables"]
    steps: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("Write", "write", {}),
        ("Read of all rows, changes pending", "read aggregate", {"state": "pending"}),
        ("Compaction", "compact", {}),
    )
    for title, step, where in steps:
        rows = [
            [
                titles[peer],
                *(shown_seconds(summary.seconds(peer, "growth", step, rows=size, **where)) for size in sizes),
            ]
            for peer in summary.peers
        ]
        parts += [f"### {title}", _table(["rows", *(f"{size:,}" for size in sizes)], rows)]
    return parts


def _pending(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    if not summary.sizes("pending"):
        return []
    found = {peer: summary.samples(peer, "pending", "read aggregate") for peer in summary.peers}
    commits = sorted({one.commits for samples in found.values() for one in samples if one.state != "plain"})
    rows = [
        [
            titles[peer],
            *(
                shown_seconds(
                    Spread.of(one.seconds for one in samples if one.commits == at and one.state != "plain")
                )
                for at in commits
            ),
        ]
        for peer, samples in found.items()
        if samples
    ]
    heading = "## Read of all rows with so many commits pending, each of 0.1 % of the rows"
    return [heading, _table(["commits", *map(str, commits)], rows)]


def _mixed(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    if not summary.sizes("mixed"):
        return []
    rows = []
    for peer in summary.peers:
        reads = sorted(
            one.seconds for one in summary.samples(peer, "mixed", "read aggregate", state="pending")
        )
        writes = sum(one.seconds for one in summary.samples(peer, "mixed", "write"))
        upkeep = [one.seconds for one in summary.samples(peer, "mixed", "maintain")]
        if not reads:
            continue
        late = reads[min(len(reads) - 1, int(len(reads) * 0.95))]
        rows.append(
            [
                titles[peer],
                f"{writes:.1f}",
                f"{sum(upkeep):.1f} ({len(upkeep)} times)",
                f"{writes + sum(upkeep):.1f}",
                f"{reads[len(reads) // 2]:.2f}",
                f"{late:.2f}",
            ]
        )
    headings = ["", "writes in total", "upkeep in total", "both", "read, median", "read, 95th percentile"]
    return ["## Many small rounds with regular upkeep", _table(headings, rows)]


def _tpch(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    if not summary.sizes("tpch"):
        return []
    rows, steps = [], ("q01", "q06", "q12")
    for peer in summary.peers:
        cells = [
            shown_seconds(summary.seconds(peer, "tpch", f"read {step}", state=state))
            for state in ("loaded", "pending", "compacted")
            for step in steps
        ]
        if any(cells):
            rows.append([titles[peer], shown_seconds(summary.seconds(peer, "tpch", "write")), *cells])
    states = ("loaded", "1 % pending", "compacted")
    headings = ["", "write", *(f"{step.upper()} {state}" for state in states for step in steps)]
    return ["## TPC-H on tables that change", _table(headings, rows)]


def _layers(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    if not summary.sizes("layers"):
        return []
    steps = ("ods", "dwd", "dws", "refresh")
    rows = [
        [titles[peer], *(shown_seconds(summary.seconds(peer, "layers", step)) for step in steps)]
        for peer in summary.peers
        if summary.samples(peer, "layers", "refresh")
    ]
    return ["## Layers: ODS, DWD, DWS, each round", _table(["", "ODS", "DWD", "DWS", "all"], rows)]


def _failures(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    rows = [
        [titles[run.peer], run.story.name, _one_line(run.failed)]
        for run in summary.runs
        if run.failed is not None
    ]
    return ["## What could not be measured", _table(["", "workload", "why"], rows)] if rows else []


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]


def shown_seconds(spread: Spread | None) -> str:
    if spread is None:
        return ""
    if spread.count == 1:
        return f"{spread.median:.2f}"
    return f"{spread.median:.2f} ({spread.least:.2f} to {spread.most:.2f})"


def _over(value: int | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
