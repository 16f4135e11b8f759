"""The pictures and outputs on pages have the columns that the commands print today."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.cli import history, output
from dbt_arctic.cli.compact import _show_plan
from dbt_arctic.cli.status import _print_tables
from dbt_arctic.maintenance.report import Report
from tests.pages import HOW_TO, blocks
from tests.unit.cli.conftest import NOW, ORDERS, record

SESSION: Any = SimpleNamespace(catalog=None, own_schema=ORDERS)
SHOWN: dict[str, Callable[[Report], None]] = {
    "status": lambda report: _print_tables(report.tables[:2], NOW),
    "compact --plan": lambda report: _show_plan(list(report.due), as_json=False),
    "history --compaction": lambda report: history._operations(SESSION, None, 0, as_json=False),
}
PICTURES = {
    "status": ("status",),
    "compact --plan": ("plan", "learned"),
    "history --compaction": ("history",),
}


def lines_of_picture(name: str) -> list[str]:
    """The lines of a terminal's picture."""
    drawing = (HOW_TO / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    found: dict[float, str] = {}
    for height, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', drawing):
        plain = html.unescape(re.sub("<[^>]*>", "", text)).replace("\xa0", " ")
        found[float(height)] = found.get(float(height), "") + plain
    return [found[height] for height in sorted(found)]


@pytest.mark.parametrize("command", [*SHOWN])
def test_pictures_and_pages_have_the_columns_of_today(
    command: str, report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "terminal_width", lambda: 200)
    monkeypatch.setattr(history, "read_operations", lambda *given: [record()])
    SHOWN[command](report)
    headings = capsys.readouterr().out.splitlines()[0].split()
    for picture in PICTURES[command]:
        typed, first, *_ = lines_of_picture(picture)
        assert typed.startswith(f"$ dbt-arctic {command}")
        assert first.split() == headings
    (shown,) = (
        one.shown
        for block in blocks(HOW_TO / "compact.md")
        for one in block.commands
        if str(one) == f"dbt-arctic {command}"
    )
    assert shown.splitlines()[0].split() == headings
