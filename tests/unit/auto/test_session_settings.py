"""What the settings of a session are for the refreshes of a model."""

from __future__ import annotations

import pytest

from dbt_arctic.auto.session_settings import (
    changed_settings,
    defines,
    in_effect,
    recorded,
    session_text,
    unsupported_setting,
    wraps_on_overflow,
)

OURS = {"spark.sql.variable.substitute": "false", "spark.sql.session.timeZone": "UTC"}


def test_what_is_as_assumed_or_only_of_speed_is_left_out() -> None:
    conf = {
        **OURS,
        "spark.app.id": "local-1",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.caseSensitive": "FALSE",
        "spark.sql.catalog.lake.uri": "jdbc:secret",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.sizeOfNull": "false",
    }
    expected = "spark.sql.ansi.enabled=false;spark.sql.legacy.sizeOfNull=false;spark.sql.session.timeZone=UTC"
    assert session_text(conf) == expected
    assert unsupported_setting(expected) is None
    assert wraps_on_overflow(expected)
    assert not wraps_on_overflow(session_text(OURS))
    assert session_text({**OURS, "spark.sql.ansi.enabled": "true"}) == session_text(OURS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.legacy.ctePrecedencePolicy", "LEGACY"),
        ("spark.sql.variable.substitute", "true"),
        ("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "true"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.caseSensitive", "true"),
    ],
)
def test_what_the_planner_does_not_model_is_named(name: str, value: str) -> None:
    reason = unsupported_setting(session_text({**OURS, name: value}))
    assert reason is not None
    assert reason.code == "setting"
    assert reason.what.startswith(f"{name} is {value.lower()}")


def test_a_session_without_our_own_settings_substitutes_variables_in_an_unknown_zone() -> None:
    assert session_text({}) == "spark.sql.session.timeZone=;spark.sql.variable.substitute=true"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("create or replace temporary view v as select 1", True),
        ("create global temp view v as select 1", True),
        ("declare or replace variable x int", True),
        ("set var x = 1", True),
        ("use lake.other", True),
        ("cache lazy table v as select 1", True),
        ("execute immediate 'set x=1'", True),
        ("create table t as select 1", False),
        ("create or replace view lake.s.v as select 1", False),
        ("set spark.sql.ansi.enabled=false", False),
        ("select declare from t", False),
        ("userdata", False),
        ("begin declare x int; insert into t values (x); end", False),
        ("begin create temp view v as select 1; end", True),
        ("begin use lake.other; end", True),
    ],
)
def test_what_a_macro_defines_for_the_session_cannot_be_analysed(statement: str, expected: bool) -> None:
    assert defines(statement) is expected
    reason = unsupported_setting(session_text(OURS, filter(defines, [statement])))
    assert (reason is not None) is expected


def test_a_defined_value_may_look_like_jinja_in_a_session_but_not_in_a_hook() -> None:
    statement = "declare variable x string default '{{'"
    assert unsupported_setting(session_text(OURS, [statement])) is not None
    assert unsupported_setting(f"statement 0={statement}") is None


def test_a_header_may_create_a_function_of_any_kind_for_the_query() -> None:
    reason = unsupported_setting("statement 0=CREATE FUNCTION f AS 'F'")
    assert reason is not None
    assert reason.what.endswith("create function f as 'f'")


def test_the_settings_of_the_session_are_in_effect_and_so_is_what_the_hooks_define() -> None:
    declared = "spark.sql.caseSensitive=true;statement 0=declare x int"
    assert in_effect(declared, None) == declared
    assert in_effect(declared, "a=b") == "a=b;statement 0=declare x int"
    assert in_effect("spark.sql.caseSensitive=true", "") == ""


def test_the_record_of_the_settings_names_them_without_values() -> None:
    before = recorded("spark.sql.a=secret;spark.sql.b=2")
    assert "secret" not in before
    assert changed_settings(before, recorded("spark.sql.b=2;spark.sql.c=x")) == ["spark.sql.a", "spark.sql.c"]
    assert changed_settings(before, recorded("spark.sql.b=3;spark.sql.a=secret")) == ["spark.sql.b"]
    assert recorded("") == ""
