"""Each row of the pages on migration is true: the left cell is answered with what the right cell says.

The settings, commands, macros and types of a row are tried on the code that runs them. The real runs of the
strategies are in ``tests/dbt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dbt.artifacts.resources import ModelConfig
from dbt_common.exceptions import DbtRuntimeError
from sqlglot import exp

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.model_config import ArcticConfig
from dbt_arctic.adapter.profile_methods import METHODS
from dbt_arctic.adapter.profile_settings import check_names
from dbt_arctic.cli.main import main
from dbt_arctic.errors import ConfigError, ProfileError
from dbt_arctic.refresh.config import OWN_SETTINGS
from dbt_arctic.refresh.foreign_settings import STRATEGIES, reject_without_effect, settings_without_effect
from dbt_arctic.refresh.materializations import INCREMENTAL

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
PAGES = ("migrate-from-dbt-spark", "migrate-from-dbt-databricks", "migrate-from-dbt-snowflake")
CODE = re.compile(r"`([^`]+)`")
SETTING = re.compile(r"(\w+)(?:='([^']*)')?")
WORD = re.compile(r"[a-z]\w{3,}", re.IGNORECASE)
MACRO = re.compile(r"\{%-? *macro (\w+)")
KNOWN = {*OWN_SETTINGS, *ModelConfig.__dataclass_fields__, *ArcticConfig.__dataclass_fields__}
COMPLETE = {
    "struct": "struct<a: int>",
    "array": "array<int>",
    "map": "map<string, int>",
    "decimal(p, s)": "decimal(38, 10)",
}
"""Types as a statement writes them."""


@dataclass(frozen=True)
class Row:
    """A row of a table of a page, without its links."""

    page: str
    heading: str
    theirs: str
    ours: str

    def __str__(self) -> str:
        return f"{self.page.removeprefix('migrate-from-')}: {self.theirs[:50]}"


def rows(*headings: str) -> list[Row]:
    return [row for page in PAGES for row in rows_of(page) if row.heading in headings]


def rows_of(page: str) -> Iterator[Row]:
    text = (HOW_TO / f"{page}.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        lines = re.findall(r"^\| (.*) \|$", body, re.MULTILINE)
        for line in lines[1:]:
            theirs, _, ours = re.sub(r"\]\([^)]*\)", "]", line).partition(" | ")
            yield Row(page, heading, theirs, ours)


def test_the_pages_have_the_rows_that_are_tried() -> None:
    headings = {(row.page, row.heading) for page in PAGES for row in rows_of(page)}
    assert {heading for _, heading in headings} == {"Profile", "Models", "Commands", "Types"}
    assert len(rows("Profile", "Models", "Commands", "Types")) > 55


def answers(config: dict[str, Any]) -> list[str]:
    """What is said about a config: the warnings, or the error."""
    try:
        reject_without_effect("orders", config)
    except ConfigError as refusal:
        return [refusal.fix]
    return [warning.fix for _, warning in settings_without_effect("orders", config)]


def words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


@pytest.mark.parametrize("row", rows("Models"), ids=str)
def test_a_setting_of_the_other_adapter_is_answered_with_the_right_cell(row: Row) -> None:
    spans = [SETTING.fullmatch(span) for span in CODE.findall(row.theirs)]
    given = {span[1]: span[2] for span in spans if span is not None}
    if "delta.*" in CODE.findall(row.theirs):
        given["tblproperties"] = {"delta.enableChangeDataFeed": "true"}  # type: ignore[assignment]
    given.pop("where", None)
    tried = 0
    for name, value in given.items():
        if name in ("incremental_strategy", "materialized"):
            tried += try_word(row, name, value)
            continue
        config = {"materialized": "table", name: value or "x"}
        found = answers({**config, "materialized": "incremental"} if name == "buckets" else config)
        if found:
            assert words(found[0]) & words(row.ours), (found, row.ours)
        else:
            assert name in KNOWN, f"{name} is neither answered nor a setting of ours"
            assert "same" in row.ours or name in row.ours
        tried += 1
    assert tried or "select max" in row.theirs


def try_word(row: Row, name: str, value: str) -> int:
    """Try a strategy or a materialization: it is ours, or its answer names ours."""
    ours = STRATEGIES if name == "incremental_strategy" else INCREMENTAL
    keeps = "the same" in row.ours or "still works" in row.ours or row.ours.startswith("remove it")
    if value in ours:
        assert keeps or "remove" in row.ours
    else:
        assert not keeps
        assert {*STRATEGIES, *INCREMENTAL} & words(row.ours)
    return 1


@pytest.mark.parametrize("row", rows("Commands"), ids=str)
def test_a_command_or_a_macro_of_the_right_cell_exists(row: Row) -> None:
    macros = {name for path in (ROOT / "macros").rglob("*.sql") for name in MACRO.findall(path.read_text())}
    adapters_own = {"keyed_sql"}
    tried = 0
    for span in CODE.findall(row.ours):
        if span.startswith("dbt-arctic "):
            _, name, *arguments = span.split()
            command = main.get_command(None, name)  # type: ignore[arg-type] # its context is not used
            assert command is not None, span
            options = {option for parameter in command.params for option in parameter.opts}
            assert {one for one in arguments if one.startswith("--")} <= options
            tried += 1
        elif call := re.fullmatch(r"(?:\{\{ )?(\w+)\(\)(?: \}\})?", span):
            assert call[1] in macros | adapters_own, span
            tried += 1
        elif span.startswith("dbt ") or span == "ref()":
            tried += 1
    assert tried or "scheduler" in row.ours


@pytest.mark.parametrize("row", rows("Types"), ids=str)
def test_a_type_of_the_right_cell_is_a_type_of_spark(row: Row) -> None:
    spans = CODE.findall(row.theirs if "the same" in row.ours else row.ours)
    assert spans
    for span in spans:
        assert exp.DataType.build(COMPLETE.get(span, span), dialect="spark").sql("spark")


@pytest.mark.parametrize("row", rows("Profile"), ids=str)
def test_a_setting_of_the_profile_is_ours_or_is_answered_with_the_right_cell(row: Row) -> None:
    known = [*ArcticCredentials.__dataclass_fields__]
    theirs = CODE.findall(row.theirs)
    if theirs[0].startswith("method: ") and theirs != ["method: session"]:
        for method in (span.removeprefix("method: ") for span in theirs):
            if method in METHODS:
                assert f"method: {method}" in CODE.findall(row.ours)
                continue
            with pytest.raises(DbtRuntimeError, match=r"AR-101.*\n.*\n.*\n.*method: connect"):
                ArcticCredentials(database="lake", schema="dev", method=method)
        return
    ours = words(" ".join(CODE.findall(row.ours)))
    for name in (span.partition(":")[0] for span in theirs):
        answer = answer_of_profile(name, known)
        assert answer is None or words(answer) & ours
    for span in CODE.findall(row.ours):
        assert answer_of_profile(span.partition(":")[0], known) is None


def answer_of_profile(name: str, known: list[str]) -> str | None:
    """What is said about a setting of a profile; ``None`` if it is one of ours."""
    try:
        check_names([name], known)
    except ProfileError as refusal:
        return refusal.fix
    return None
