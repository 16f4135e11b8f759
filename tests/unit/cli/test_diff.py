"""A comparison as Markdown cannot break the comment that shows it."""

from __future__ import annotations

import re

import pytest

from dbt_arctic.adapter.diff_report import ColumnDifference, DiffReport, ModelDiff, Sample
from dbt_arctic.cli.diff_markdown import MOST_CHARACTERS, as_markdown
from dbt_arctic.cli.diff_values import shown_share

HOSTILE = "a|b\n<script>*`x` ](y) \\|"
ORDERS = ModelDiff(
    "orders",
    "lake.ci.orders",
    "lake.prod.orders",
    "compared",
    schema=(ColumnDifference(HOSTILE, "int", ""),),
    key=("id",),
    rows=1_000_000,
    base_rows=1_000_000,
    changed=1,
    columns={HOSTILE: 1},
    samples=(Sample("changed", {"id": HOSTILE}, {HOSTILE: (HOSTILE, None)}),),
)


def test_values_stay_in_their_cell() -> None:
    text = as_markdown(DiffReport("ci", "prod", (ORDERS,)))
    assert "<script" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    counts = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows]
    assert counts == [9, 9, 9, 4, 4, 4]
    assert "| orders | 1,000,000 | 1 | 0 | 0 | < 0.01 % |" in text


def test_a_comment_is_never_too_long() -> None:
    many = tuple(Sample("here", {"id": "x" * 190}) for _ in range(1000))
    long = ModelDiff("orders", "a", "b", "compared", rows=1000, only_here=1000, samples=many)
    text = as_markdown(DiffReport("ci", "prod", (long,)))
    assert len(text) < MOST_CHARACTERS
    assert text.endswith("The samples are left out, because they are too long.")


@pytest.mark.parametrize(
    ("rows", "changed", "shown"),
    [(100, 0, "0 %"), (10**6, 1, "< 0.01 %"), (1000, 5, "0.50 %"), (3, 2, "67 %")],
)
def test_a_share_never_hides_a_difference(rows: int, changed: int, shown: str) -> None:
    assert shown_share(ModelDiff("orders", "a", "b", "compared", rows=rows, changed=changed)) == shown
