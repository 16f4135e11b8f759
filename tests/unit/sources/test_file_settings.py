"""The settings of a file source."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.file_settings import parse_source

GOOD = {"from": "files", "path": "/data/clicks/", "format": "csv", "columns": {"id": "bigint"}}


def test_a_source_is_strict_whatever_its_options_say() -> None:
    made = parse_source("landing.clicks", {**GOOD, "options": {"mode": "PERMISSIVE", "header": False}}, {})
    assert made.path == "/data/clicks"
    assert made.options["mode"] == "FAILFAST"
    assert made.options["header"] == "false"
    assert made.ddl == "`id` bigint"


def test_columns_of_the_source_itself_are_used_where_the_settings_have_none() -> None:
    settings = {key: value for key, value in GOOD.items() if key != "columns"}
    assert parse_source("a.b", settings, {"n": "int"}).columns == {"n": "int"}
    assert parse_source("a.b", GOOD, {"n": "int"}).columns == {"id": "bigint"}
    assert parse_source("a.b", {**settings, "format": "text"}, {}).columns == {"value": "string"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"path": ""}, "has no path"),
        ({"path": None}, "has no path"),
        ({"format": "xlsx"}, "use one of json, csv, parquet, orc, avro, text"),
        ({"changed_files": "skip"}, "use one of fail, reread, ignore"),
        ({"columns": "infer"}, "review them: dbt-arctic ingest init "),
        ({"columns": "infer", "format": "avro"}, "lists the types that Spark finds"),
        ({"on_bad_row": "skip"}, "use one of fail, quarantine, drop"),
        ({"on_bad_row": "drop", "format": "orc"}, "on_bad_row of the source landing.clicks has no effect"),
        ({"required": ["it"]}, "requires it, which is none of its columns"),
        ({"patern": "*.csv"}, "use 'pattern'"),
        ({"columns": ["id"]}, "columns of the source landing.clicks is not a mapping"),
        ({"columns": {"_SOURCE_FILE": "string"}}, "has a column _SOURCE_FILE"),
        (
            {"columns": {"id": "bigintt"}},
            "the column id of the source landing.clicks has the unknown type bigintt",
        ),
        ({"columns": {"id": "bigintt"}}, "did you mean bigint?"),
        ({"columns": {"id": "jsonb"}}, "use a type of Spark: string, boolean"),
        ({"columns": {"id": None}}, "has the unknown type None"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_the_right_one(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_source("landing.clicks", {**GOOD, **change}, {}, "models/landing.yml")
    assert told in str(error.value)
    assert error.value.where == "models/landing.yml"


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "BIGINT",
            "decimal(10, 2)",
            "Decimal",
            "varchar(3)",
            "interval day to second",
            "timestamp_ntz",
            "void",
        ),
        *(
            "array<int>",
            "MAP < string, int >",
            "struct<a: array<bigint>, b: string>",
            "string collate UTF8_LCASE",
        ),
    ],
)
def test_every_type_of_spark_is_accepted(kind: str) -> None:
    assert parse_source("a.b", {**GOOD, "columns": {"n": kind}}, {}).columns == {"n": kind}


@pytest.mark.parametrize(
    ("below", "accepted"),
    [
        ("a.csv", True),
        ("day=1/a.csv", True),
        ("_day=1/a.csv", True),
        ("_temporary/0/a.csv", False),
        (".a.csv", False),
        ("x/.a.csv.crc", False),
        ("_a.csv", False),
        ("a.csv.tmp", False),
    ],
)
def test_unfinished_and_other_files_do_not_belong_to_a_source(below: str, accepted: bool) -> None:
    made = parse_source("a.b", {**GOOD, "pattern": "*.csv"}, {})
    assert made.accepts(f"/data/clicks/{below}") is accepted
