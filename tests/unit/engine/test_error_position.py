"""A position in a statement is the line that Spark's message names."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.error_position import position, without_position
from dbt_arctic.engine.faults import classify, clean_message
from dbt_arctic.engine.java_causes import Cause

COMMENT = '/* {"app": "dbt", "node_id": "test.shop.ids"} */'


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("[UNRESOLVED_COLUMN] no. SQLSTATE: 42703; line 2 pos 7", "b"),
        ("[PARSE_SYNTAX_ERROR] no. SQLSTATE: 42601 (line 3, pos 0)\n\n== SQL ==\nselect", "from t"),
        ("[DIVIDE_BY_ZERO] no. SQLSTATE: 22012\n== SQL (line 2, position 3) ==\n b\n ^", "b"),
        ("[DIVIDE_BY_ZERO] no. SQLSTATE: 22012\n== SQL of VIEW v (line 2, position 3) ==\n b\n ^", None),
        ("[DIVIDE_BY_ZERO] no", None),
        ("no; line 9 pos 1", None),
        ("no; line 4 pos 1", None),
    ],
)
def test_a_message_names_a_line(message: str, text: str | None) -> None:
    found = position(message, "select a,\n  b\n from t\n\n")
    assert (found and found.text) == text


def test_a_message_without_its_position_and_without_the_statement() -> None:
    text = "[PARSE_SYNTAX_ERROR] no. SQLSTATE: 42601 (line 3, pos 0)\n\n== SQL ==\nselect\n^^^"
    assert without_position(text) == "[PARSE_SYNTAX_ERROR] no. SQLSTATE: 42601"
    assert without_position("[DIVIDE_BY_ZERO] no") == "[DIVIDE_BY_ZERO] no"
    text = "[DIVIDE_BY_ZERO] no.\n== SQL (line 2, position 3) ==\nx / 0\n^^^^^"
    assert without_position(text) == "[DIVIDE_BY_ZERO] no."


def test_a_missing_table_has_no_advice_about_names_without_a_schema() -> None:
    text = (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `l`.`s`.`t` cannot be found.\n"
        "If you did not qualify the name with a schema, verify the current_schema() output, or qualify it.\n"
        "To tolerate the error on drop use DROP VIEW IF EXISTS or DROP TABLE IF EXISTS. SQLSTATE: 42P01; "
        "line 1 pos 14"
    )
    assert clean_message(text) == (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `l`.`s`.`t` cannot be found. SQLSTATE: 42P01; "
        "line 1 pos 14"
    )


def test_an_error_shows_the_line_instead_of_the_beginning_of_a_long_statement() -> None:
    sql = f"{COMMENT}\nselect count(*)\nfrom t\nwhere nope is null"
    message = "[UNRESOLVED_COLUMN] no. SQLSTATE: 42703; line 4 pos 6"
    error = classify([Cause("x.AnalysisException", message)], sql).error
    assert error.where == "test.shop.ids, the line: where nope is null"
    assert (error.why, error.statement) == ("[UNRESOLVED_COLUMN] no. SQLSTATE: 42703", sql)
    one = classify([Cause("x.AnalysisException", message.replace("4 pos", "2 pos"))], f"{COMMENT}\nselect x")
    assert one.error.where == "test.shop.ids: select x"


def test_the_line_of_a_statement_that_is_sent_without_its_comment_is_not_guessed() -> None:
    sql = f"{COMMENT}\nalter table t\nadd columns\n(nope)"
    error = classify([Cause("x.ParseException", "no (line 2, pos 0)")], sql).error
    assert error.where == "test.shop.ids: alter table t add columns (nope)"
