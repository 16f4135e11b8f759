"""The picture of a report: each table is to the right of what it reads, and lateness has its cause."""

from __future__ import annotations

from itertools import combinations

from dbt_arctic.cli.lineage_picture import BOX_HEIGHT, MOST_BOXES, Picture, lineage_picture
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.overview import TableOverview
from tests.unit.cli.conftest import HOUR, MINUTE, NOW


def table(name: str, *lags: Lag) -> TableOverview:
    return TableOverview(Name("lake", "dev", name), lags=lags)


def has_read(upstream: str) -> Lag:
    return Lag(f"lake.dev.{upstream}")


def waiting_for(upstream: str, ms: int) -> Lag:
    return Lag(f"lake.dev.{upstream}", NOW - ms, commits=2)


def drawn(*tables: TableOverview) -> Picture:
    found = lineage_picture(tables, NOW)
    assert found is not None
    return found


def test_without_recorded_reads_there_is_no_picture() -> None:
    assert lineage_picture([], NOW) is None
    assert lineage_picture([table("orders")], NOW) is None


def test_a_table_is_to_the_right_of_what_it_reads_and_no_boxes_overlap() -> None:
    picture = drawn(
        table("sums", has_read("lines"), has_read("raw")),
        table("lines", has_read("orders")),
        table("orders", has_read("raw")),
        table("users", has_read("raw_users")),
    )
    at = {box.label: box for box in picture.boxes}
    assert at["dev.raw"].x < at["dev.orders"].x < at["dev.lines"].x < at["dev.sums"].x
    assert at["dev.raw_users"].x == at["dev.raw"].x
    for one, other in combinations(picture.boxes, 2):
        assert one.x != other.x or abs(one.y - other.y) > BOX_HEIGHT
    assert len(picture.lines) == 5
    assert not any(line.is_late or box.detail for line in picture.lines for box in picture.boxes)
    assert picture.width > max(box.x for box in picture.boxes)
    assert picture.left_out == 0


def test_a_late_table_and_what_waits_for_it() -> None:
    picture = drawn(
        table("orders", waiting_for("raw", HOUR), waiting_for("rates", MINUTE)),
        table("lines", has_read("orders")),
        table("sums", has_read("lines")),
        table("other", Lag("lake.dev.raw", lost="it was rebuilt")),
    )
    details = {box.label: (box.detail, box.colour) for box in picture.boxes}
    assert details["dev.orders"] == ("1 h behind", "warn")
    assert details["dev.lines"] == details["dev.sums"] == ("waits for orders", "muted")
    assert details["dev.raw"] == ("", "")
    titles = [line.title for line in picture.lines if line.is_late]
    assert titles == [
        "lake.dev.raw → lake.dev.orders: 2 commits not read, 1 h",
        "lake.dev.rates → lake.dev.orders: 2 commits not read, 1 min",
        "lake.dev.raw → lake.dev.other: it was rebuilt",
    ]


def test_a_table_that_reads_itself_or_a_circle_is_drawn() -> None:
    picture = drawn(table("a", has_read("b"), has_read("a")), table("b", has_read("a")))
    assert {box.label for box in picture.boxes} == {"dev.a", "dev.b"}


def test_of_many_tables_the_late_ones_are_drawn() -> None:
    many = [table(f"t{number}", has_read(f"raw{number}")) for number in range(MOST_BOXES)]
    picture = drawn(*many, table("last", waiting_for("orders", HOUR)))
    assert len(picture.boxes) == MOST_BOXES
    assert {"dev.last", "dev.orders"} <= {box.label for box in picture.boxes}
    assert picture.left_out == MOST_BOXES + 2


def test_a_long_name_is_shortened_and_stays_complete_in_its_title() -> None:
    name = "a_table_with_a_name_that_does_not_fit_its_box"
    box = next(box for box in drawn(table(name, has_read("raw"))).boxes if box.name.endswith(name))
    assert box.label == f"…{name[-19:]}"
    assert box.name == f"lake.dev.{name}"
