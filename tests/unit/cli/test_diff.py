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


def test_a_target_in_which_nothing_is_built_is_not_a_success() -> None:
    unbuilt = ModelDiff("orders", "a", "b", "not built")
    found = DiffReport("ci", "prod", (unbuilt, unbuilt))
    assert found.exit_code == 2
    assert found.summary.endswith("2 not built; build the models in ci first")
    some = DiffReport("ci", "prod", (unbuilt, ModelDiff("shown", "a", "b", "clone")))
    assert (some.exit_code, "first" in some.summary) == (0, False)


def test_an_ignored_column_that_no_relation_has_is_reported() -> None:
    compared = ModelDiff("orders", "a", "b", "compared", ignored=frozenset({"loaded_at"}))
    other = ModelDiff("customers", "a", "b", "compared")
    found = DiffReport("ci", "prod", (compared, other))
    assert found.unknown_columns(frozenset({"loaded_at", "lodaed_at"})) == ["lodaed_at"]
    assert found.unknown_columns(frozenset()) == []
    clones = DiffReport("ci", "prod", (ModelDiff("orders", "a", "b", "clone"),))
    assert clones.unknown_columns(frozenset({"loaded_at"})) == [], "no columns were read"
