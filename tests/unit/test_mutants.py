"""Mistakes that are put in on purpose where no table shows them: each fails the tests of its subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dbt_arctic.adapter import checking, show
from dbt_arctic.adapter.check_report import CheckReport
from dbt_arctic.data_type import DataType
from dbt_arctic.engine.statement import RunningStatement
from tests.unit.adapter import test_check_parts, test_show
from tests.unit.engine import test_cancelling

Patch = pytest.MonkeyPatch


def binary_as_text(patch: Patch) -> None:
    """Bytes are shown as characters, which not all of them are."""

    def value_of(value: Any, type_: DataType) -> Any:
        return value.decode("latin-1") if isinstance(value, bytes) else shown(value, type_)

    shown = test_show.table_value
    patch.setattr(test_show, "table_value", value_of)


def nan_as_a_number(patch: Patch) -> None:
    """JSON contains ``NaN`` without quotes."""
    patch.setattr(show.math, "isfinite", lambda value: True)


def map_keys_by_python(patch: Patch) -> None:
    """The keys of maps are shown as Python writes them."""
    patch.setattr(show, "_text", lambda value, type_: str(value))


def sent_after_a_cancel(patch: Patch) -> None:
    """A connection that was cancelled sends its next statement."""
    patch.setattr(RunningStatement, "refuse_if_cancelled", lambda running, sql: None)


def sources_under_another_name(patch: Patch) -> None:
    """A check reads no copy in the schema where a model looks up a table by its name."""
    patch.setattr(checking, "is_schema_of", lambda schema, own: False)


def success_of_nothing(patch: Patch) -> None:
    """A check that compared no model succeeds."""
    code = property(lambda report: 1 if report.differences else 2 if report.failures else 0)
    patch.setattr(CheckReport, "exit_code", code)


def cases_of(test: Callable[..., None]) -> list[tuple[Any, ...]]:
    """The parameters of a test's cases; one case without parameters if it has none."""
    marks: Iterable[pytest.Mark] = getattr(test, "pytestmark", ())
    return next((list(mark.args[1]) for mark in marks if mark.name == "parametrize"), [()])


@pytest.mark.parametrize(
    ("mutant", "test"),
    [
        (binary_as_text, test_show.test_a_cell_contains_the_value),
        (nan_as_a_number, test_show.test_a_cell_contains_the_value),
        (map_keys_by_python, test_show.test_a_cell_contains_the_value),
        (sent_after_a_cancel, test_cancelling.test_what_was_cancelled_before_it_began_is_not_sent),
        (
            sent_after_a_cancel,
            test_cancelling.test_what_has_landed_in_spite_of_a_cancel_is_done_and_the_next_is_not_sent,
        ),
        (
            sources_under_another_name,
            test_check_parts.test_a_copy_has_its_sources_name_in_a_schema_of_the_check,
        ),
        (
            success_of_nothing,
            test_check_parts.test_the_exit_code_shows_differences_first_and_then_what_was_not_compared,
        ),
    ],
)
def test_each_mutant_fails_a_test_that_holds_without_it(
    mutant: Callable[[Patch], None], test: Callable[..., None]
) -> None:
    def failures() -> int:
        found = 0
        for case in cases_of(test):
            try:
                test(*case)
            except (Exception, pytest.fail.Exception):
                found += 1
        return found

    assert failures() == 0
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        assert failures() > 0
