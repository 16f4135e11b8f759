"""Tables at 80 and 120 columns, on narrow terminals, and in a pipe."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from rich.cells import cell_len

from dbt_arctic.cli import output
from dbt_arctic.cli.changes import changes_by_key
from dbt_arctic.cli.compact import _show_plan
from dbt_arctic.cli.history import print_entries
from dbt_arctic.cli.output import print_table
from dbt_arctic.cli.status import _print_tables
from dbt_arctic.cli.tables import Abbreviated, Kind, for_pipe, for_terminal
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.report import Report
from dbt_arctic.maintenance.timeline import Entry
from tests.unit.cli.conftest import NOW

KINDS: tuple[Kind, ...] = ("name", "number", "text", "value")
RUN = "5f3c2a10-8c4e-4c6f-9d0a-111122223333:model.shop.orders"
COMMIT = Version(1, 8432123456789012345, 7432123456789012345)
COMPACTED = replace(COMMIT, base_snapshot=6432123456789012345)
ROLLBACK = Version(1, 5432123456789012345, 6432123456789012345)
ENTRIES = [
    Entry(ROLLBACK, NOW, f"rollback to {COMMIT.token}", 1_000_812, RUN),
    Entry(COMPACTED, NOW - 1000, "compaction of 3", 5_000_000, ""),
    Entry(COMMIT, NOW - 2000, "upsert", 812, RUN, ("opening", "before-migration")),
    Entry(None, NOW - 3000, "upsert", 8, RUN),
]


@pytest.fixture(params=[80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    found: int = request.param
    monkeypatch.setattr(output, "terminal_width", lambda: found)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_every_table_fits_its_terminal_and_loses_nothing(seed: int) -> None:
    rng = random.Random(seed)
    columns = [
        (" ".join(f"heading{at}" for _ in range(rng.randint(1, 2))), rng.choice(KINDS))
        for at in range(rng.randint(1, 8))
    ]

    def cell(kind: Kind) -> str:
        words = [
            "x" * rng.randint(1, 12) for _ in range(rng.randint(0, 9 if kind in ("text", "value") else 1))
        ]
        return rng.choice([" ", " ", "\n"]).join(words) + rng.choice(["", "", "表"])

    rows = [[cell(kind) for _, kind in columns] for _ in range(rng.randint(0, 4))]
    shown_in = rng.choice([40, 80, 120])
    lines = [line.text for line in for_terminal(columns, rows, shown_in)]
    assert max(map(cell_len, lines), default=0) <= shown_in
    together = "".join(lines)
    for character in ("x", "表"):
        assert together.count(character) == sum(cell.count(character) for row in rows for cell in row)
    piped = [line.text.split("\t") for line in for_pipe(columns, rows)]
    assert piped[0] == [heading for heading, _ in columns]
    assert [
        [len(cell.replace("; ", "").replace("\\n", "").replace(" ", "")) for cell in row] for row in piped[1:]
    ] == [[len("".join(cell.split())) for cell in row] for row in rows]


def test_a_history_has_ids_that_can_be_copied(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_entries(ENTRIES, 0)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split() == ["time", "(UTC)", "kind", "rows", "version"] + (
        ["savepoints", "by"] if width == 120 else []
    )
    shown = "\n".join(lines)
    assert " 1.8432123\n" in shown if width == 80 else " 1.8432123 " in shown
    assert "1.8432123.6432123" in shown, "a compaction of the same commit"
    assert "rollback to" in shown
    assert "5f3c2a10:model.shop.orders" in shown
    assert {"opening,", "before-migration"} <= set(shown.split())


def test_a_pipe_has_full_ids_and_no_padding(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries(ENTRIES, 3)
    done = capsys.readouterr()
    heading, newest, _, commit = done.out.splitlines()
    assert heading == "time (UTC)\tkind\trows\tversion\tsavepoints\tby"
    assert newest.split("\t")[1] == f"rollback to {COMMIT.token}"
    assert commit.split("\t")[2:] == ["812", COMMIT.token, "opening, before-migration", RUN]
    assert done.err == "1 more: --limit 0\n", "a note is no row"


def test_status_and_plans_have_whole_headings(
    width: int, report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    _print_tables(report.tables, NOW)
    operations = [
        Operation(
            "major", Name("lake", "analytics_production", f"customer_order_amounts_{at}"), why, 2.0, 1.5
        )
        for at, why in enumerate(
            ["20% of the rows are pending", "a read costs 3.1 times as much as it could"]
        )
    ]
    _show_plan(operations, as_json=False)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    words = set(shown.replace(":", " ").split())
    for heading in ("table", "rows", "files", "size", "pending", "read", "cost", "behind", "due"):
        assert heading in words
    assert {"analytics_production.customer_order_amounts_1", "estimated", "saved", "per"} <= words


STATUS: list[tuple[str, Kind]] = [
    ("table", "name"),
    *((heading, "number") for heading in ("rows", "files", "size", "pending", "read cost", "behind")),
    ("due", "text"),
]


def _status(*names: str) -> list[str]:
    rest = ["4", "3", "7.2 kB", "3 (150%)", "3.0 x", "", "major"]
    return [line.text for line in for_terminal(STATUS, [[name, *rest] for name in names], 80)]


def test_a_long_name_is_above_its_row_and_does_not_make_lists_of_all() -> None:
    assert _status("orders", "orders__landing__order_events__files", "order_amounts") == [
        "table          rows  files    size   pending  read cost  behind  due",
        "orders            4      3  7.2 kB  3 (150%)      3.0 x          major",
        "orders__landing__order_events__files",
        "                  4      3  7.2 kB  3 (150%)      3.0 x          major",
        "order_amounts     4      3  7.2 kB  3 (150%)      3.0 x          major",
    ]


def test_tables_with_long_names_only_are_lists() -> None:
    assert (
        _status("orders__landing__order_events__files")[0]
        == "table:     orders__landing__order_events__files"
    )
    assert (
        _status("orders", *(f"orders__landing__order_events__files_{at}" for at in (1, 2)))[1]
        == "rows:      4"
    )


def test_a_heading_that_is_wider_than_its_column_wraps_at_spaces() -> None:
    lines = for_terminal([("a very long heading", "number"), ("b", "name")], [["1", "x" * 30]], 40)
    assert [line.text for line in lines] == [
        "  a very",
        "    long",
        " heading  b",
        "       1  " + "x" * 30,
    ]
    assert [line.is_heading for line in lines] == [True, True, True, False]


def test_a_value_of_a_query_keeps_its_line_breaks_in_a_pipe() -> None:
    (_, line) = for_pipe([("a", "value"), ("why", "text")], [["x\ty\nz", "one\ntwo"]])
    assert line.text == "x\\ty\\nz\tone; two"


def test_a_table_of_one_wide_column_is_not_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_table({"id": "name"}, [[Abbreviated("1.234", "1.2")]])
    assert capsys.readouterr().out == "id\n1.234\n"


def test_old_and_new_rows_are_paired_by_a_key_in_any_letter_case() -> None:
    columns = ["Id", "day", "n", "_action"]
    rows = [(1, "a", None, "-U"), (1, "a", 5, "U"), (1, "b", 5, "U"), (2, "a", 5, "-U"), (2, "a", 5, "D")]
    found = changes_by_key(columns, rows, ["ID", "DAY"])
    assert [(one.kind, one.shown("n")) for one in found] == [
        ("changed", "NULL → 5"),
        ("new", "5"),
        ("deleted", "5"),
    ]
    after = changes_by_key(columns, [row for row in rows if row[3] != "-U"], ["ID", "DAY"])
    assert [one.old for one in after] == [None] * 3


def test_one_long_delay_leaves_the_tables_in_rows(
    report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is too wide is below the row of its table. The other tables have one line each."""
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    lost = Lag("landing.page_views", lost="it was rebuilt since then, with another key")
    late = replace(report.tables[1], lags=(lost,))
    tables = [late, *(replace(late, name=replace(late.name, identifier=name), lags=()) for name in "abc")]
    _print_tables(tables, NOW)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for name in ("orders", "a", "b", "c"):
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert "2,000" in line
    assert {*f"{lost.upstream}: {lost.lost}".split()} <= {*" ".join(lines).split()}
