"""Which settings of a profile are a part of what a model means: all that are not known to be of speed."""

from __future__ import annotations

import pytest

from dbt_arctic.adapter.auto_api import settings_of_meaning
from dbt_arctic.adapter.credentials import ArcticCredentials


def told(**conf: str) -> str:
    names = {name.replace("__", "."): value for name, value in conf.items()}
    return settings_of_meaning(ArcticCredentials(schema="shop", database="lake", spark_conf=names))


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
    assert told(**{name: value}) != told()
    assert f"{name}={value}" in told(**{name: value}).split(";")


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
    assert told(**{name: value}) == told()
