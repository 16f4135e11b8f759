"""A column that a plain model no longer returns is dropped after its rows are written."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.adapter import plain_api
from tests.dbt.keyed.conftest import Shop

STRATEGIES = {
    "appended": "incremental_strategy='append'",
    "required": "incremental_strategy='append'",
    "merged": "incremental_strategy='merge', unique_key='id'",
    "replaced": "incremental_strategy='delete+insert', unique_key='id'",
    "overwritten": "incremental_strategy='insert_overwrite', partition_by='id'",
    "daily": "incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2024-01-01', "
    "lookback=0",
}
OWN = "incremental_strategy='own'"
"""A strategy of the project that writes the columns of the batch by their position."""
PERIOD = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-03")
NESTED = "named_struct('a', id, 'b', id) as box, array(named_struct('c', id, 'd', id)) as l"
V1 = f"id, at, id * 10 as gone, {NESTED}"
V2 = "id, at, named_struct('b', id) as box, array(named_struct('d', id)) as l, 'x' as new"
QUERY = (
    (
        "select {% if var('v', 1) == 1 %}V1{% else %}V2{% endif %} from {{ source('raw', 'raw_orders') }} "
        "where id is not null {% if var('bad', false) %}and isnull(raise_error('a bad row')){% endif %}"
    )
    .replace("V1", V1)
    .replace("V2", V2)
)


@pytest.fixture
def built(shop: Shop) -> Shop:
    """Each table with a row, of the columns ``V1``."""
    for name, config in {**STRATEGIES, "own": OWN}.items():
        settings = f"materialized='incremental', on_schema_change='sync_all_columns', {config}"
        shop.model(name, f"{{{{ config({settings}) }}}}\n{QUERY}")
    shop.file(
        "macros/own.sql",
        "{% macro get_incremental_own_sql(arguments) %}insert into {{ arguments.target_relation }} "
        "select * from {{ arguments.temp_relation }}{% endmacro %}",
    )
    shop.sql(
        "CREATE TABLE {s}.required (id INT, at TIMESTAMP, gone INT NOT NULL, "
        "box STRUCT<a: INT NOT NULL, b: INT>, l ARRAY<STRUCT<c: INT NOT NULL, d: INT>>) USING iceberg"
    )
    orders(shop, 1)
    shop.dbt("run", *PERIOD)
    return shop


def orders(shop: Shop, *ids: int) -> None:
    rows = ", ".join(f"({number}, timestamp'2024-01-0{number} 00:00:00')" for number in ids)
    shop.source("raw_orders", f"SELECT * FROM VALUES {rows} AS t(id, at)")


def rows(shop: Shop, name: str, *columns: str) -> list[Any]:
    return shop.rows(name, f"to_json(struct({', '.join(columns)}), map('ignoreNullFields', 'false'))")


OLD = '{"id":1,"gone":10,"box":{"a":1,"b":1},"l":[{"c":1,"d":1}]}'


def test_a_run_that_fails_or_ends_in_between_loses_no_value(
    built: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, day = built, ("--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03")
    orders(shop, 2)
    told = shop.refusals("run", *day, "--vars", "{v: 2, bad: true}", "--select", *STRATEGIES)
    assert told.keys() == STRATEGIES.keys()
    for name in STRATEGIES:
        assert rows(shop, name, "id", "gone", "box", "l") == [(OLD,)], name

    def ends(*given: Any) -> None:
        raise KeyError("the run ends here")

    with monkeypatch.context() as patch:
        patch.setattr(plain_api, "drop_last", ends)
        assert not shop.try_dbt("run", *day, "--vars", "{v: 2}", "--select", "merged", "daily").success
    for name in ("merged", "daily"):
        written = '{"id":2,"gone":null,"box":{"a":null,"b":2},"l":[{"c":null,"d":2}]}'
        assert rows(shop, name, "id", "gone", "box", "l") == [(OLD,), (written,)], name
    shop.dbt("run", *day, "--vars", "{v: 2}")
    new = '{"id":2,"box":{"b":2},"l":[{"d":2}],"new":"x"}'
    old = '{"id":1,"box":{"b":1},"l":[{"d":1}],"new":null}'
    for name in (*STRATEGIES, "own"):
        columns = [column for column, *_ in shop.sql(f"DESCRIBE TABLE {{s}}.{name}")]
        assert "gone" not in columns, name
        assert rows(shop, name, "id", "box", "l", "new") == [(old,), (new,)], name
