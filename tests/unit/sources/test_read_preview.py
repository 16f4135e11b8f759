"""``dbt-arctic ingest plan``: what the next run would read, or why it would fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.sources.read_preview import ReadPreview, preview_read
from tests.unit.sources.test_file_pull import PROD, SOURCE, Lake, Model, file, lake_of


def preview(lake: Lake, model: Model, **settings: Any) -> ReadPreview:
    return preview_read(cast(Any, lake), replace(SOURCE, **settings), "clicks", model.name, model.consumed)


def test_the_next_run_reads_what_the_plan_says() -> None:
    lake, model = lake_of(file("a"), ListedFile("/data/b", 1, 5)), Model(PROD)
    assert preview(lake, model) == ReadPreview("clicks", SOURCE.name, True, 2, 6, 0, 0, 0)
    model.run(lake)
    assert preview(lake, model) == ReadPreview("clicks", SOURCE.name, False, 0, 0, 0, 0, 0)
    lake.folder["/data/c"] = file("c")
    lake.folder["/data/a"] = file("a", 2)
    assert preview(lake, model) == ReadPreview("clicks", SOURCE.name, False, 2, 2, 1, 0, 0)
    assert preview(lake, model, changed_files="ignore").files == 1
    seen = len(model.stored)
    model.run(lake)
    assert len(model.stored) - seen == 2


def test_the_plan_says_why_a_run_would_fail() -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    lake.folder["/data/a"] = file("a", 2)
    lake.folder["/data/b"] = file("b")
    failing = preview(lake, model, changed_files="fail")
    assert (failing.files, failing.changed) == (1, 1)
    assert "changed after clicks had read it" in failing.problem
    model.run(lake, commits=False)
    del lake.folder["/data/b"]
    assert "disappeared before clicks read it" in preview(lake, model).problem
    lake.lists.clear()
    lost = preview(lake, model)
    assert (lost.files, lost.reads_all) == (0, False)
    assert "is not available" in lost.problem
