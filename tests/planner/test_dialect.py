"""Without our dialect, no SQL is analysed, and the error says what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from dbt_arctic.cli.main import main
from dbt_arctic.errors import PackageUnfit
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.spark.dialect import VerbatimSpark, verbatim


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As with ``sqlglotc``: our subclasses of sqlglot's classes can be created, but not instantiated."""

    def refuse(*args: object, **options: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(VerbatimSpark, "parser", refuse)
    verbatim.cache_clear()
    yield
    verbatim.cache_clear()


@pytest.mark.usefixtures("compiled")
def test_a_compiled_sqlglot_is_named_and_not_a_traceback() -> None:
    with pytest.raises(PackageUnfit, match="pip uninstall sqlglotc"):
        parse("SELECT 1 AS one_that_no_other_test_reads")


@pytest.mark.usefixtures("compiled")
def test_the_doctor_finds_a_compiled_sqlglot() -> None:
    told = CliRunner().invoke(main, ["doctor"])
    assert told.exit_code == 1
    (found,) = [line for line in told.output.splitlines() if "sqlglot " in line and line.startswith("!!")]
    assert "compiled" in found
    assert "fix: pip uninstall sqlglotc" in told.output


def test_the_doctor_finds_nothing_wrong_with_sqlglot_as_python() -> None:
    assert "ok  sqlglot " in CliRunner().invoke(main, ["doctor"]).output
