"""The picture in pictures: SVG charts of a summary by Vega-Lite, and one page with all of them."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.summary import MAIN, Spread, Summary
from dbt_arctic.cli.charts import VEGA_LITE

COLOURS = {
    "arctic": "#0b62d6",
    "iceberg-cow": "#8a94a3",
    "iceberg-dv": "#4b5563",
    "delta": "#d97706",
    "hudi": "#7c3aed",
    "paimon": "#059669",
    "paimon-dv": "#84cc16",
    "rebuild": "#dc2626",
}
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Picture:
    """:param name: of its file, without the ending."""

    name: str
    title: str
    told: str
    specification: dict[str, Any]

    def svg(self) -> str:
        import vl_convert

        specification = {
            **self.specification,
            "title": {"text": self.title, "subtitle": self.told, "anchor": "start"},
            "background": "white",
            "config": _CONFIG,
        }
        return str(vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE))


_CONFIG = {
    "font": "Arial, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 12, "gridColor": "#e5e7eb", "labelLimit": 260, "titleFontWeight": "normal"},
    "title": {"fontSize": 15, "subtitleFontSize": 12, "subtitleColor": "#4b5563", "offset": 12},
    "legend": {"labelLimit": 260, "title": None},
}


def pictures_of(summary: Summary, titles: Mapping[str, str]) -> list[Picture]:
    """One without anything to show is left out."""
    artist = _Artist(summary, titles)
    found = [
        artist.bars(
            "write", "Write", f"Seconds a round, {MAIN}; shorter is better", "upserts", "write", case=MAIN
        ),
        artist.reads(),
        artist.bars(
            "feed", "Incremental read", "Seconds to read a round's changes", "upserts", "feed", case=MAIN
        ),
        artist.bars(
            "compaction", "Compaction", f"Seconds, after rounds of {MAIN}", "upserts", "compact", case=MAIN
        ),
        artist.growth("growth-write", "Write, by size of the table", "write"),
        artist.growth("growth-read", "Read with changes pending, by size", "read aggregate", state="pending"),
        artist.growth("growth-compaction", "Compaction, by size of the table", "compact"),
        artist.pending(),
        artist.mixed(),
        artist.tpch(),
        artist.layers(),
    ]
    return [picture for picture in found if picture is not None]


@dataclass(frozen=True)
class _Artist:
    summary: Summary
    titles: Mapping[str, str]

    def bars(
        self, name: str, title: str, told: str, workload: str, step: str, **where: object
    ) -> Picture | None:
        rows: Rows = []
        for peer in self.summary.peers:
            spread = self.summary.seconds(peer, workload, step, **where)
            if spread is not None:
                rows.append(self._row(peer, spread))
        if not rows:
            return None
        rows.sort(key=lambda row: row["seconds"])
        bar = {
            "mark": {"type": "bar", "cornerRadiusEnd": 3},
            "encoding": {"x": _SECONDS, "color": self._colour(legend=False)},
        }
        label = {
            "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 12},
            "encoding": {"x": _SECONDS, "text": {"field": "seconds", "format": ".2f"}},
        }
        return Picture(
            name,
            title,
            told,
            {
                "data": {"values": rows},
                "layer": [bar, label],
                "encoding": {
                    "y": {"field": "peer", "type": "nominal", "title": None, "sort": self._order(rows)}
                },
                "width": 420,
                "height": 30 * len(rows),
            },
        )

    def reads(self) -> Picture | None:
        rows: Rows = []
        words = {
            "plain": "plain table",
            "loaded": "as loaded",
            "pending": "1 % pending",
            "compacted": "compacted",
        }
        for peer in self.summary.peers:
            for state, word in words.items():
                commits = 1 if state == "pending" else None
                where = {"case": MAIN, "state": state, "commits": commits}
                spread = self.summary.seconds(peer, "upserts", "read aggregate", **where)
                if spread is not None:
                    rows.append({**self._row(peer, spread), "state": word})
        return self._grouped(
            "read", "Read of all rows", "Seconds; shorter is better", rows, list(words.values())
        )

    def tpch(self) -> Picture | None:
        rows: Rows = []
        queries = ("q01", "q06", "q12")
        for peer in self.summary.peers:
            for query in queries:
                spread = self.summary.seconds(peer, "tpch", f"read {query}", state="pending")
                if spread is not None:
                    rows.append({**self._row(peer, spread), "state": query.upper()})
        told = "Seconds with 1 % of orders and line items pending; shorter is better"
        return self._grouped(
            "tpch", "TPC-H on tables that change", told, rows, [one.upper() for one in queries]
        )

    def layers(self) -> Picture | None:
        rows: Rows = []
        for peer in self.summary.peers:
            for step in ("ods", "dwd", "dws"):
                spread = self.summary.seconds(peer, "layers", step)
                if spread is not None:
                    rows.append({**self._row(peer, spread), "state": step.upper()})
        if not rows:
            return None
        return Picture(
            "layers",
            "Refresh of three layers, each round",
            "Seconds of ODS, DWD and DWS, one above the other; shorter is better",
            {
                "data": {"values": rows},
                "mark": "bar",
                "encoding": {
                    "y": {"field": "peer", "type": "nominal", "title": None, "sort": self._order(rows)},
                    "x": {"field": "seconds", "type": "quantitative", "title": "seconds"},
                    "color": {
                        "field": "state",
                        "type": "nominal",
                        "scale": {
                            "domain": ["ODS", "DWD", "DWS"],
                            "range": ["#93c5fd", "#2563eb", "#1e3a8a"],
                        },
                    },
                    "order": {"field": "place"},
                },
                "transform": [{"calculate": "indexof(['ODS','DWD','DWS'], datum.state)", "as": "place"}],
                "width": 420,
                "height": 30 * len({row["peer"] for row in rows}),
            },
        )

    def growth(self, name: str, title: str, step: str, **where: object) -> Picture | None:
        rows: Rows = []
        for peer in self.summary.peers:
            for size in self.summary.sizes("growth"):
                spread = self.summary.seconds(peer, "growth", step, rows=size, **where)
                if spread is not None:
                    rows.append({**self._row(peer, spread), "at": size / 1e6})
        told = "Seconds for as many changes, against millions of rows; both axes are logarithmic"
        return self._lines(name, title, told, rows, "million rows", log=True)

    def pending(self) -> Picture | None:
        rows: Rows = []
        for peer in self.summary.peers:
            samples = [
                one for one in self.summary.samples(peer, "pending", "read aggregate") if one.state != "plain"
            ]
            for commits in sorted({one.commits for one in samples}):
                spread = Spread.of(one.seconds for one in samples if one.commits == commits)
                if spread is not None:
                    rows.append({**self._row(peer, spread), "at": commits})
        told = "Seconds to read all rows, against commits of 0.1 % that nothing has compacted"
        return self._lines("pending", "Read with more and more pending", told, rows, "commits")

    def mixed(self) -> Picture | None:
        rows: Rows = []
        for peer in self.summary.peers:
            for one in self.summary.samples(peer, "mixed", "read aggregate", state="pending"):
                rows.append({"peer": self.titles[peer], "seconds": one.seconds, "at": one.number})
        told = "Seconds to read all rows after each round, with regular upkeep"
        return self._lines("mixed", "Many small rounds", told, rows, "round")

    def _grouped(self, name: str, title: str, told: str, rows: Rows, order: Sequence[str]) -> Picture | None:
        if not rows:
            return None
        return Picture(
            name,
            title,
            told,
            {
                "data": {"values": rows},
                "mark": {"type": "bar", "cornerRadiusEnd": 2},
                "encoding": {
                    "y": {"field": "peer", "type": "nominal", "title": None, "sort": self._order(rows)},
                    "yOffset": {"field": "state", "sort": list(order)},
                    "x": {"field": "seconds", "type": "quantitative", "title": "seconds"},
                    "color": {
                        "field": "state",
                        "type": "nominal",
                        "scale": {
                            "domain": list(order),
                            "range": ["#cbd5e1", "#93c5fd", "#2563eb", "#1e3a8a"],
                        },
                    },
                },
                "width": 420,
                "height": {"step": 12},
            },
        )

    def _lines(
        self, name: str, title: str, told: str, rows: Rows, across: str, log: bool = False
    ) -> Picture | None:
        if not rows:
            return None
        scale = {"type": "log", "nice": False} if log else {}
        x: dict[str, Any] = {"field": "at", "type": "quantitative", "title": across, "scale": scale}
        if log:
            x["axis"] = {"values": sorted({row["at"] for row in rows}), "format": "~g"}
        return Picture(
            name,
            title,
            told,
            {
                "data": {"values": rows},
                "mark": {"type": "line", "point": len(rows) < 200, "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "y": {"field": "seconds", "type": "quantitative", "title": "seconds", "scale": scale},
                    "color": self._colour(),
                },
                "width": 460,
                "height": 280,
            },
        )

    def _row(self, peer: str, spread: Spread) -> dict[str, Any]:
        return {"peer": self.titles[peer], "seconds": spread.median}

    def _order(self, rows: Rows) -> list[str]:
        return list(dict.fromkeys(row["peer"] for row in rows))

    def _colour(self, legend: bool = True) -> dict[str, Any]:
        peers = [peer for peer in self.summary.peers if peer in COLOURS]
        scale = {"domain": [self.titles[peer] for peer in peers], "range": [COLOURS[peer] for peer in peers]}
        colour: dict[str, Any] = {"field": "peer", "type": "nominal", "scale": scale}
        return colour if legend else {**colour, "legend": None}


_SECONDS = {"field": "seconds", "type": "quantitative", "title": "seconds"}


def write_pictures(folder: Path, pictures: Sequence[Picture], text: str) -> None:
    """A file for each picture, and one page with all of them above the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for picture in pictures:
        svg = picture.svg()
        (folder / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
        drawn.append(f"<figure>{svg}</figure>")
    page = _PAGE.format(pictures="\n".join(drawn), tables=_as_html(text))
    (folder / "index.html").write_text(page, encoding="utf-8")


def _as_html(text: str) -> str:
    """The Markdown of our own tables; nothing more of Markdown is known here."""
    parts: list[str] = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if lines and lines[0].startswith("|"):
            cells = [[_cell(one) for one in line.strip("| ").split(" | ")] for line in (lines[0], *lines[2:])]
            head = "".join(f"<th>{one}</th>" for one in cells[0])
            body = "".join(f"<tr>{''.join(f'<td>{one}</td>' for one in row)}</tr>" for row in cells[1:])
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        elif lines:
            level = len(lines[0]) - len(lines[0].lstrip("#"))
            tag = f"h{level}" if level else "p"
            parts.append(f"<{tag}>{html.escape(block.strip().lstrip('# '))}</{tag}>")
    return "\n".join(parts)


def _cell(text: str) -> str:
    escaped = html.escape(text.strip())
    return f"<b>{escaped.strip('*')}</b>" if escaped.startswith("**") else escaped


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>dbt-arctic side by side</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 15px/1.5 Arial, Helvetica, sans-serif; color: #1f2937 }}
body {{ margin: 2rem auto; max-width: 84rem; padding: 0 1rem }}
main {{ display: flex; flex-wrap: wrap; gap: 1.5rem }}
figure {{ margin: 0; border: 1px solid #e5e7eb; border-radius: 6px; padding: 12px }}
figure {{ max-width: 100%; overflow-x: auto }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; font-size: 14px }}
td, th {{ border-bottom: 1px solid #e5e7eb; padding: 4px 10px; text-align: right; white-space: nowrap }}
td:first-child, th:first-child {{ text-align: left }}
</style>
<main>
{pictures}
</main>
{tables}
</html>
"""
