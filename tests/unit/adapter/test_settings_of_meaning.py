"""Which settings of a profile are a part of what a model means: all that are not known to be of speed."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.result_inputs import settings_of_meaning, statements_of_session, time_of_invocation
from dbt_arctic.auto.session_settings import unsupported_setting


def settings_text(**conf: str) -> str:
    names = {name.replace("__", "."): value for name, value in conf.items()}
    return settings_of_meaning(ArcticCredentials(schema="shop", database="lake", spark_conf=names), {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
    ],
)
def test_these_change_what_sql_means(name: str, value: str) -> None:
    assert settings_text(**{name: value}) != settings_text()
    assert f"{name}={value}" in settings_text(**{name: value}).split(";")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.shuffle.partitions", "7"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.iceberg.vectorization.enabled", "false"),
        ("spark.driver.memory", "7g"),
        ("spark.executor.cores", "7"),
    ],
)
def test_these_change_how_fast_it_is(name: str, value: str) -> None:
    assert settings_text(**{name: value}) == settings_text()


def test_what_a_header_or_a_hook_sets_comes_after_the_profile() -> None:
    credentials = ArcticCredentials(schema="shop", database="lake", spark_conf={})
    zone = "spark.sql.session.timeZone"

    def settings_text(**config: Any) -> dict[str, str]:
        pairs = settings_of_meaning(credentials, config).split(";")
        return dict(pair.split("=", 1) for pair in pairs)

    plain = settings_text()
    assert settings_text(sql_header=f"set {zone} = Asia/Tokyo;") == {**plain, zone: "Asia/Tokyo"}
    assert settings_text(sql_header="SET TIME ZONE '+02:00';")[zone] == "+02:00"
    hooks = [{"sql": f"SET {zone}=Asia/Tokyo"}, {"sql": "insert into log values (1)"}]
    assert settings_text(**{"pre-hook": hooks}) == {**plain, zone: "Asia/Tokyo"}
    assert settings_text(**{"pre-hook": hooks}, sql_header=f"set {zone}=UTC;") == plain
    assert settings_text(sql_header="set spark.sql.shuffle.partitions=3;") == plain, "how it is run"
    made = "create temporary function f as 'F';"
    assert settings_text(sql_header=made).keys() - plain.keys() == {"statement 0"}
    assert settings_text(sql_header="with x as (select 1)") == plain, "that is put before the SQL"


def test_what_a_hook_sets_is_read_as_spark_reads_it() -> None:
    credentials = ArcticCredentials(schema="shop", database="lake", spark_conf={})
    zone, ansi = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"

    def settings_text(hook: str) -> dict[str, str]:
        pairs = settings_of_meaning(credentials, {"pre-hook": hook}).split(";")
        return dict(pair.split("=", 1) for pair in pairs)

    for hook in (
        "-- tokyo days\nset time zone 'Asia/Tokyo'",
        'set time zone "Asia/Tokyo"',
        "/* x; */ SET\ttime\nzone 'Asia/Tokyo' -- done",
        f"insert into log values (';'); set {zone} = Asia/Tokyo;",
        f"set `{zone}` = `Asia/Tokyo`",
    ):
        assert settings_text(hook)[zone] == "Asia/Tokyo", hook
    for hook in (f"-- large\nset {ansi}=false", f"set\n`{ansi}`=`false`;"):
        assert settings_text(hook)[ansi] == "false", hook


@pytest.mark.parametrize(
    "hook",
    [
        "{%- set z = 'Asia/Tokyo' -%} set time zone '{{ z }}'",
        "{% if target.name == 'prod' %} set time zone 'Asia/Tokyo' {% endif %}",
        "{# zone #} set time zone 'Asia/Tokyo'",
        "declare or replace variable cut int default 5",
        "create or replace temporary function f() returns int return 5",
        "set var cut = 5",
    ],
)
def test_what_a_hook_says_is_a_part_of_what_a_model_means(hook: str) -> None:
    credentials = ArcticCredentials(schema="shop", database="lake", spark_conf={})
    plain, changed = (settings_of_meaning(credentials, {"pre-hook": one}) for one in ([], [hook]))
    assert changed != plain
    found = unsupported_setting(changed)
    # The value of a Jinja expression is unknown here.
    assert (found is not None) == hook.startswith(("declare", "create", "set var"))


@pytest.mark.parametrize("hook", ["set time zone interval 9 hours", "SET TIME ZONE LOCAL", "reset"])
def test_a_zone_that_is_not_known_gives_no_time(hook: str) -> None:
    credentials = ArcticCredentials(schema="shop", database="lake", spark_conf={})
    assert time_of_invocation(credentials, {"pre_hook": hook}) is None
    assert time_of_invocation(credentials, {}) is not None


@pytest.mark.parametrize("hook", ["reset spark.sql.ansi.enabled", "/* all */ RESET;"])
def test_nor_is_ansi_after_a_reset(hook: str) -> None:
    credentials = ArcticCredentials(schema="shop", database="lake", spark_conf={})
    assert "spark.sql.ansi.enabled=;" in settings_of_meaning(credentials, {"pre_hook": hook}) + ";"


def test_what_a_session_needs_for_a_model_is_what_hooks_and_header_set_or_define() -> None:
    hooks = [{"sql": "set a=1; insert into log values (1)"}, "CREATE OR REPLACE TEMP VIEW v AS SELECT 1"]
    header = "declare variable least int default 2;"
    assert statements_of_session({"pre-hook": hooks, "sql_header": header}) == [
        "set a=1",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "declare variable least int default 2",
    ]
    assert statements_of_session({"pre_hook": "create table t as select 1; delete from t"}) == []
