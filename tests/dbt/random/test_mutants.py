"""Each mistake that is put in on purpose is seen in the rows of its model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dbt.random.mutants import (
    MUTANTS,
    any_name_when_parsed,
    case_of,
    case_of_reserved_name,
    case_of_retry,
    catalog_without_tables,
    plan_that_writes_artifacts,
    retried_batch_is_the_first,
)
from tests.dbt.random.other_programs import wrong_catalog
from tests.dbt.random.run import Bench, bench


@pytest.fixture(scope="module")
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def test_each_mutant_is_caught_by_its_own_model_and_without_it_nothing_differs(
    place: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(list(MUTANTS))
    assert [str(one) for one in place.judge(case).differences] == []
    with monkeypatch.context() as patch:
        for mutant in MUTANTS.values():
            if mutant.patch is not None:
                mutant.patch(patch)
        macros = "\n".join(one.macro for one in MUTANTS.values() if one.macro)
        wrong = place.judge(case, {"macros/mutants.sql": macros})
    assert {one.model for one in wrong.differences} == set(MUTANTS)


def test_a_retry_that_takes_a_batch_for_the_first_or_finds_nothing_to_do_is_seen(
    place: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [str(one) for one in place.judge(case_of_retry()).differences] == []
    with monkeypatch.context() as patch:
        retried_batch_is_the_first(patch)
        wrong = place.judge(case_of_retry())
    assert [(one.model, one.kind) for one in wrong.differences] == [("days", "rows")]
    with monkeypatch.context() as patch:
        plan_that_writes_artifacts(patch)
        wrong = place.judge(case_of_retry())
    assert [(one.model, one.kind) for one in wrong.differences] == [("", "dbt")]


def test_a_name_that_is_reserved_for_a_part_of_a_keyed_table_is_seen_before_anything_runs(
    place: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [str(one) for one in place.judge(case_of_reserved_name()).differences] == []
    any_name_when_parsed(monkeypatch)
    wrong = place.judge(case_of_reserved_name())
    assert [(one.model, one.kind) for one in wrong.differences] == [("", "names")]


def test_a_new_catalog_whose_first_sessions_would_create_its_tables_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong_catalog(tmp_path / "prepared") == ""
    catalog_without_tables(monkeypatch)
    assert wrong_catalog(tmp_path / "empty") == "the catalog has no column iceberg_type"
