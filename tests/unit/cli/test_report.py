"""The page of a report: it is complete, without scripts, external links or details of the machine."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dbt_arctic.adapter.run_results import RunResults
from dbt_arctic.cli.charts import COLOURS, Artist
from dbt_arctic.cli.output import shareable
from dbt_arctic.cli.report import report_as_dict
from dbt_arctic.cli.report_charts import charts_of
from dbt_arctic.cli.report_page import Page
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.compaction.series import LagPoint, Point
from dbt_arctic.errors import PackageMissing
from dbt_arctic.maintenance.report import Report, TableHistory
from tests.unit.cli.conftest import HOSTILE, MINUTE, NOW, ORDERS

VOID = {"meta", "img", "br", "link", "input"}


class Reader(HTMLParser):
    """The elements of a page, its text, and whether what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {}


@pytest.fixture
def page(report: Report, results: RunResults, pages: dict[str, str]) -> str:
    """Drawn once: each chart takes a tenth of a second."""
    if not pages:
        pages["full"] = Page(report, results, "shop (local)").html()
    return pages["full"]


def test_the_page_is_whole_and_has_its_charts(page: str) -> None:
    read = Reader(page)
    assert read.open == []
    assert read.texts.count("Keyed tables of shop (local)") == 2
    titles = ["Pending", "Lag", "Read amplification", "Operations", "Gain", "Files", "Size", "Commits"]
    titles += ["Strategies", "Refreshes"]
    assert [text for text in read.texts if text in titles] == titles
    assert read.count("figure") == 10
    assert "incremental refresh of lake.shop.orders, 2.5 s, 1,200 changed rows" in page
    assert read.count("svg") > 9, "each chart, and the dots of its legend"


def test_charts_of_a_small_and_new_warehouse_have_readable_axes(report: Report) -> None:
    """Its sizes are not fractions of a MB, and its points are not all at the same minute."""
    points = [Point(NOW - 20_000, 0, 0.0, 1.0, 1, 1800), Point(NOW, 0, 0.0, 1.0, 2, 4608)]
    past = [TableHistory(ORDERS, points, [LagPoint(NOW - 20_000, 0.0), LagPoint(NOW, 0.5)])]
    found = {one.title: one for one in charts_of(replace(report, past=past, operations=[], writes=[]), None)}
    assert found["Size"].caption == "Size of the newest version, in kB."
    texts = Reader(found["Size"].svg).texts
    assert {"4", "2", "0"} <= set(texts)
    times = [text for text in texts if ":" in text]
    assert len(times) == len(set(times)) > 2, times
    ticks = [text for name in ("Size", "Lag") for text in Reader(found[name].svg).texts if ":" not in text]
    assert not [text for text in ticks if text.endswith("m")], "milli"


def test_two_tables_of_one_name_are_two_lines(report: Report) -> None:
    for twin, shown in (
        (replace(ORDERS, schema="prod"), {"shop.orders", "prod.orders"}),
        (replace(ORDERS, catalog="archive"), {"lake.shop.orders", "archive.shop.orders"}),
    ):
        past = [*report.past, replace(report.past[0], name=twin)]
        files = next(one for one in charts_of(replace(report, past=past), None) if one.title == "Files")
        assert {entry.name for entry in files.legend} == {*shown, HOSTILE}


def test_a_lag_that_is_unknown_is_no_good_news(report: Report) -> None:
    lost = replace(report.tables[1], lags=(Lag("lake.raw.feed", lost="it was rebuilt since then"),))
    for tables, shown in ((report.tables[:1], "good"), ([report.tables[0], lost], "warn")):
        page = Page(replace(report, tables=tables), None, "shop")
        (card,) = [one for one in page.cards if one.label == "Furthest behind"]
        assert card.colour == shown


def test_a_table_that_cannot_be_read_is_no_good_news(report: Report) -> None:
    """Neither in the figures nor in the picture of the tables that read it."""
    whole, broken = report.tables[0], report.tables[2]
    reader = replace(report.tables[1], lags=(Lag(broken.name.dotted),))
    quiet = replace(report, past=[], writes=[], refreshes=[], operations=[], due=[], held=[])
    for tables, colour, lag in (([whole], "", "good"), ([whole, reader, broken], "bad", "warn")):
        page = Page(replace(quiet, tables=tables), None, "shop")
        cards = {one.label: one for one in page.cards}
        assert (cards["Tables"].colour, cards["Furthest behind"].colour) == (colour, lag)
    assert cards["Tables"].detail.endswith("; 1 table cannot be read")
    assert cards["Furthest behind"].detail == "unknown for shop.broken"
    assert '<text class="detail bad" x="10" y="34">cannot be read</text>' in page.html()


def test_a_name_acts_nowhere(page: str) -> None:
    read = Reader(page)
    assert {"img", "script", "iframe", "object", "link", "a", "form"} & {
        tag for tag, _ in read.elements
    } == set()
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    assert any(HOSTILE in cell for row in read.rows for cell in row)
    assert "49" not in "".join(cell for row in read.rows for cell in row if "7 * 7" in cell)


def test_nothing_is_loaded_and_nothing_may_be(page: str) -> None:
    for tag, attributes in Reader(page).elements:
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            assert not (attributes.get(name) or "").strip(), (tag, name)
    assert "@import" not in page
    assert not [found for found in re.findall(r"url\(([^)]*)", page) if not found.startswith("#")]
    addresses = set(re.findall(r"\w+://[^\"'\s<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "names, not addresses"
    assert "default-src 'none'" in page


def test_no_path_and_no_secret_is_shown(page: str, report: Report, results: RunResults) -> None:
    for text in (page, repr(report_as_dict(report, results))):
        assert "hunter2" not in text
        assert not re.search(r"/(data|srv)/|s3://", text)
        assert "part-1.parquet" in text
        assert "v1.metadata.json" in text


def test_the_tables_say_what_the_report_has(page: str) -> None:
    rows = Reader(page).rows
    major = "major,shop.orders,20% of the rows are pending,all,2 s,1.5 s"
    assert ",".join(next(row for row in rows if row[0] == "major")) == major
    orders = next(row for row in rows if row[:2] == ["shop.orders", "2,000"])
    # 8 MB and 4 files of the base, 36 files and 4 x 1 MB of changes, over 8 MB in 4 files; 1 MB to open one.
    assert orders[2:] == ["40", "9.0 MB", "400 (20%)", "4.3 x", "2 h", "major"]
    held = next(row for row in rows if row[:2] == ["shop.orders", "7"])
    assert held[2] == f"lake.shop.{HOSTILE} has not read newer versions (from 2027-01-06 08:00)"
    done = next(row for row in rows if len(row) == 9 and row[4].startswith("compacted"))
    assert done[5:] == ["2.0 s", "13.5 s", "4.3 → 1.2", "40 → 8"]
    failed = next(row for row in rows if len(row) == 9 and row[4].startswith("failed"))
    assert failed[4] == "failed: AR-201 no file part-1.parquet password=*****"
    assert failed[7:] == ["", ""], "of a failure nobody knows what it gained"
    revenue = next(row for row in rows if row[0] == "revenue")
    assert revenue == ["revenue", "success", "incremental", "", "12", "12", "4.0 MB", "9.5 s"]


def test_it_is_for_phones_and_for_the_dark(page: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "prefers-color-scheme: dark" in page
    colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{3,6}|rgb[^"]*)"', page.split("</style>")[1]))
    assert colours <= {"#000", "#fff"}, "a colour that is not of the page is the same by night"


def test_without_anything_there_is_a_page(report: Report) -> None:
    empty = replace(
        report, tables=[], due=[], past=[], writes=[], refreshes=[], operations=[], held=[], unreadable=[]
    )
    read = Reader(Page(empty, None, "shop").html())
    assert read.count("figure") == 0
    assert "Nothing is due." in read.texts
    assert "none" in read.texts


def test_of_long_lists_the_page_shows_the_beginning_and_says_so(report: Report) -> None:
    many = replace(report, due=list(report.due) * 13, operations=list(report.operations) * 30, past=[])
    many = replace(many, writes=[], refreshes=[])
    page = Page(many, None, "shop")
    assert len(page.due.rows) == 10
    assert page.due.note.endswith(" 3 more: dbt-arctic compact --plan.")
    assert len(page.operations.rows) == 50
    assert page.operations.note == "10 more: dbt-arctic report --json"


def test_the_data_are_those_of_the_page(report: Report, results: RunResults) -> None:
    told = report_as_dict(report, results)
    orders = next(one for one in told["tables"] if one["table"] == "lake.shop.orders")
    assert [point["pending_rows"] for point in orders["series"]] == [None, 400]
    assert orders["lag"][-1] == {"at": "2027-01-15 08:00:00.000", "seconds": 7200.0}
    assert told["due"] == orders["due"]
    assert told["operations"][0]["at"] == "2027-01-15 07:30:00.000"
    assert told["commits"][0] == {"from": "2027-01-15 06:00:00.000", "kind": "upsert", "count": 8}
    assert [one["changed_rows"] for one in told["refreshes"]] == [1200, None]
    assert told["held_back"][0]["table"] == "lake.shop.orders"
    assert told["last_run"]["refreshes"][1]["strategy"] == "incremental"


def test_a_name_has_one_colour_on_the_page_and_no_two_share_one_in_a_chart() -> None:
    artist = Artist(NOW - MINUTE, NOW)
    names = [f"table {number}" for number in range(12)]
    first = artist._colours_of(names[:6])
    assert artist._colours_of(reversed(names[:6])) == first
    second = artist._colours_of([*names[6:12], names[0]])
    assert len(set(second.values())) == 7 <= len(COLOURS)


def test_without_the_package_that_draws_it_says_how_to_get_it(
    report: Report, results: RunResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(PackageMissing, match=r"dbt-arctic\[report\]"):
        Page(report, results, "shop").html()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/mnt/me/lake/x.parquet is gone", "x.parquet is gone"),
        ("file:/data/a/b", "b"),
        ("abfss://box@store.net/lake/t", "t"),
        ("2 / 3 of a/b, 5 km/h", "2 / 3 of a/b, 5 km/h"),
        ("at '/a/b': no", "at 'b': no"),
        ("token=abcdef", "token=*****"),
    ],
)
def test_a_text_that_may_leave_the_machine_has_no_folder_and_no_secret(text: str, told: str) -> None:
    assert shareable(text) == told
