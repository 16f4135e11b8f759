"""The settings of a source that is a table of a database, and of its login in the profile."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.adapter.database_sources import database_of, database_source, writes_of
from dbt_arctic.adapter.profile_databases import kinds_of, read_databases
from dbt_arctic.databases.api import Column, Table
from dbt_arctic.databases.mariadb import MariaTable
from dbt_arctic.databases.postgres import PostgresTable
from dbt_arctic.errors import ConfigError, MalformedFile, ProfileError
from dbt_arctic.sources.cursor import below, cursor_of, is_future, is_larger, overlap_of, parse_value
from dbt_arctic.sources.database_columns import read_columns
from dbt_arctic.sources.database_settings import DatabaseSource, parse_database

GOOD = {"from": "jdbc", "url": "postgresql://host/crm", "table": "public.accounts", "cursor": "updated_at"}


def declared(**settings: Any) -> dict[str, Any]:
    return {
        "name": "crm.accounts",
        "where": "models/crm.yml",
        "settings": {**GOOD, **settings},
        "columns": {},
    }


def test_what_may_be_left_out() -> None:
    source = parse_database("crm.accounts", {"from": "jdbc"})
    assert source == DatabaseSource("crm.accounts", "accounts")
    full = parse_database(
        "crm.accounts",
        {**GOOD, "columns": ["id", "name"], "overlap": "1 hour", "deletes": "compare", "partitions": 4},
    )
    assert full.columns == {"id": "", "name": ""}
    assert (full.overlap, full.compares_keys, full.partitions) == ("1 hour", True, 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cursr": "x"}, "use 'cursor'"),
        ({"overlap": [1]}, "has overlap"),
        ({"cursor": None, "overlap": 5}, "has overlap and no cursor"),
        ({"cursor": None, "null_cursor": "read"}, "has null_cursor and no cursor"),
        ({"null_cursor": "drop"}, "use one of fail, read, skip"),
        ({"deletes": "soft"}, "use one of ignore, compare"),
        ({"partitions": 0}, "a number from 1 to"),
        ({"partitions": True}, "a number from 1 to"),
        ({"columns": {"_ACTION": "string"}}, "has a column _ACTION"),
        ({"columns": "id"}, "is not a mapping"),
        ({"on_recreated": "ok"}, "use one of fail, continue"),
        ({"url": "postgresql://me:hunter2@host/crm"}, "contains a password"),
    ],
)
def test_a_wrong_setting_is_an_error_that_says_what_to_write(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        database_source(declared(**change))
    assert said in str(error.value)
    assert "hunter2" not in str(error.value)
    assert error.value.where == "models/crm.yml"


def test_the_profile_has_the_login() -> None:
    logins = read_databases({"crm": {"user": "me", "password": "hunter3"}, "erp": {"url": "mysql://h/erp"}})
    made = database_of(declared(), logins)
    assert isinstance(made, PostgresTable)
    assert (made.address.user, made.address.password) == ("me", "hunter3")
    assert isinstance(database_of(declared(url=None, connection="erp"), logins), MariaTable)
    assert kinds_of(logins) == ("mariadb",)
    with pytest.raises(ConfigError, match="has no url"):
        database_of(declared(url=None), logins)
    for wrong in ({"crm": "x"}, {"crm": {"pasword": "x"}}):
        with pytest.raises(ProfileError):
            read_databases(wrong)


def test_how_a_model_writes_follows_from_its_config() -> None:
    def writes(**config: Any) -> tuple[tuple[str, ...], bool, bool]:
        made = writes_of({"name": "m", "config": {"materialized": "incremental", **config}})
        return made.key, made.appends, made.is_keyed

    assert writes(unique_key="id") == (("id",), False, True)
    assert writes(unique_key=["a", "b"], incremental_strategy="merge") == (("a", "b"), False, False)
    assert writes() == ((), True, False)
    assert writes(unique_key="id", incremental_strategy="append") == (("id",), True, False)
    assert writes(materialized="table") == ((), False, False)

    def keeps(**config: Any) -> bool:
        config = {"materialized": "incremental", "unique_key": "id", **config}
        return writes_of({"name": "m", "config": config}).keeps_changes

    assert [keeps(incremental_strategy=one) for one in ("history", "append")] == [True, True]
    assert [keeps(incremental_strategy=one) for one in ("upsert", "merge")] == [False, False]


def column(family: Any, kind: str = "x", name: str = "at", spark: str = "") -> Column:
    return Column(name, kind, family, spark)


@pytest.mark.parametrize(
    ("family", "overlap", "value", "low"),
    [
        ("integer", None, "5000", "4000"),
        ("decimal", 1, "10.25", "9.25"),
        ("date", None, "2026-03-01", "2026-02-28"),
        ("date", "2 days", "2026-03-01", "2026-02-27"),
        ("timestamp", None, "2026-03-01 00:04:59.000001", "2026-02-28 23:59:59.000001"),
        ("timestamptz", 60, "2026-03-01 00:00:00", "2026-02-28 23:59:00.000000"),
        ("timestamp", "1 hour", "0001-01-01 00:00:00", "0001-01-01 00:00:00.000000"),
    ],
)
def test_a_run_begins_below_the_last_value(family: Any, overlap: Any, value: str, low: str) -> None:
    at = column(family)
    source = DatabaseSource("crm.t", "t", cursor="at", overlap=overlap)
    assert below(at, value, overlap_of(source, at)) == low
    assert not is_larger(at, low, value)


@pytest.mark.parametrize(
    ("family", "overlap"), [("integer", "5 minutes"), ("date", "1 hour"), ("timestamp", "x")]
)
def test_an_overlap_that_does_not_fit_the_cursor_is_an_error(family: Any, overlap: Any) -> None:
    with pytest.raises(ConfigError) as error:
        overlap_of(DatabaseSource("crm.t", "t", cursor="at", overlap=overlap), column(family))
    assert "overlap" in error.value.fix


@pytest.mark.parametrize(
    ("family", "value"),
    [
        ("timestamptz", "infinity"),
        ("decimal", "NaN"),
        ("date", "0000-00-00"),
        ("timestamp", "10000-01-01 00:00:00"),
    ],
)
def test_a_value_after_which_nothing_comes_is_an_error(family: Any, value: str) -> None:
    with pytest.raises(MalformedFile, match="largest value of the cursor at"):
        parse_value(column(family), value)
    assert is_future(column("date"), "9000-01-01")
    assert not is_future(column("integer"), "9" * 18)


def test_what_cannot_be_a_cursor_is_an_error() -> None:
    source = DatabaseSource("crm.t", "t", cursor="at")
    for family in ("text", "float", "boolean", "binary", "array"):
        with pytest.raises(ConfigError, match="cannot be a cursor"):
            cursor_of(source, column(family), "m")
    with pytest.raises(ConfigError, match="has no column at"):
        cursor_of(source, None, "m")


ALL = Table(
    "t",
    (
        Column("id", "bigint", "integer", "BIGINT"),
        Column("small", "tinyint(1)", "integer", "INT", holds_flags=True),
        Column("Price", "numeric", "decimal", "DECIMAL(38,18)"),
        Column("at", "date", "date", "DATE"),
        Column("raw", "bytea", "binary", "BINARY"),
        Column("rough", "real", "float", "FLOAT"),
        Column("shape", "geometry", "unreadable", ""),
    ),
)


@pytest.mark.parametrize(
    ("columns", "types"),
    [
        ({"price": "decimal(10, 2)", "id": ""}, ["DECIMAL(10,2)", "BIGINT"]),
        ({"id": "string", "small": "boolean"}, ["STRING", "BOOLEAN"]),
        ({"small": "bigint", "Price": "integer", "rough": "double"}, ["BIGINT", "INT", "DOUBLE"]),
        ({"id": "decimal(19,0)"}, ["DECIMAL(19,0)"]),
    ],
)
def test_a_declared_type_that_holds_all_values_is_taken(columns: dict[str, str], types: list[str]) -> None:
    found = read_columns(DatabaseSource("crm.t", "t", columns), ALL, "m")
    assert [one.type for one in found] == types


@pytest.mark.parametrize(
    "columns",
    [
        {},  # a geometry
        {"id": "int"},
        {"id": "decimal(18,0)"},
        {"id": "boolean"},
        {"price": "double"},
        {"price": "decimal(39,0)"},
        {"at": "timestamp"},
        {"raw": "string"},
        {"rough": "decimal(10,2)"},
        {"missing": ""},
    ],
)
def test_another_type_is_an_error(columns: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as error:
        read_columns(DatabaseSource("crm.t", "t", columns), ALL, "m")
    assert error.value.fix
