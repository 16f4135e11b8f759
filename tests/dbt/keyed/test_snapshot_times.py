"""A snapshot whose ``updated_at`` has another type than before is refused, or stores its times exactly."""

from __future__ import annotations

import re
from typing import Any

from tests.dbt.keyed.conftest import Shop

QUERY = (
    "select id, cast(at as date) as on_day, cast(at as timestamp) as at, cast(at as timestamp_ntz) as local, "
    "day(at) as number, cast(day(at) as bigint) as large, string(day(at)) as text "
    "from {{ source('raw', 'raw_rows') }}"
)
CHECK = "strategy='check', check_cols=['number']"
FOR_EVER = "dbt_valid_to_current=\"timestamp'9999-12-31 00:00:00'\""
NAMES = "snapshot_meta_column_names={'dbt_valid_from': 'Begins', 'dbt_updated_at': 'As_Of'}"


def timed(column: str) -> str:
    return f"strategy='timestamp', updated_at='{column}'"


REFUSED = {
    "finer": (timed("on_day"), timed("at"), "dbt_valid_from is timestamp in the query and date in the table"),
    "zoned": (timed("local"), timed("at"), "dbt_valid_to is timestamp in the query and timestamp_ntz in the"),
    "local": (timed("at"), timed("local"), "dbt_valid_from is timestamp_ntz in the query and timestamp in"),
    "checked": (timed("on_day"), CHECK, "dbt_updated_at is timestamp in the query and date in the table"),
    "by_sql": (timed("on_day"), timed("coalesce(at, local)"), "dbt_valid_from is timestamp in the query"),
    "named": (f"{timed('on_day')}, {NAMES}", f"{timed('at')}, {NAMES}", "Begins is timestamp in the query"),
    "texts": (timed("text"), timed("number"), "dbt_valid_from is int in the query and string in the table"),
    "fractions": (timed("number"), timed("number / 2"), "dbt_valid_from is double in the query and int in"),
    "marked": (
        CHECK,
        f"{CHECK}, hard_deletes='new_record'",
        "dbt_is_deleted is string in the query and bool",
    ),
    "with_ids": (CHECK, f"{CHECK}, unique_key='number'", "dbt_scd_id is int in the query and string in the"),
}
"""Settings of a first and of a second run, and what the second says."""
ACCEPTED = {
    "coarser": (CHECK, timed("on_day")),
    "returning": (CHECK, timed("at")),
    "wider": (timed("number"), timed("large")),
    "local_until": (f"{timed('local')}, {FOR_EVER}", f"{timed('local')}, {FOR_EVER}"),
}


def write(shop: Shop, name: str, settings: str) -> None:
    shop.file(
        f"snapshots/{name}.sql",
        f"{{% snapshot {name} %}}{{{{ config({settings}) }}}} {QUERY}{{% endsnapshot %}}",
    )


def keyed_by_id(settings: str) -> str:
    return settings if "unique_key" in settings else f"unique_key='id', {settings}"


def test_a_time_of_another_type_is_refused_or_stored_exactly(shop: Shop) -> None:
    shop.file(
        "models/sources.yml", f"sources: [{{name: raw, schema: {shop.schema}, tables: [{{name: raw_rows}}]}}]"
    )
    shop.file(
        "macros/ids.sql",
        "{% macro snapshot_check_strategy(node) %}"
        "{% set found = dbt.snapshot_check_strategy(node, *varargs) %}"
        "{{ return(dict(found, scd_id='number') if found.unique_key == 'number' else found) }}{% endmacro %}",
    )
    rows = "SELECT id, timestamp'2024-03-01 10:00:00' AS at FROM VALUES 1, 2 AS t(id)"
    shop.source("raw_rows", rows)
    cases: dict[str, Any] = {**REFUSED, **ACCEPTED}
    for name, (settings, *_) in cases.items():
        write(shop, name, keyed_by_id(settings))
    shop.dbt("snapshot")
    shop.sql("ALTER TABLE {s}.marked ADD COLUMN dbt_is_deleted BOOLEAN")
    before = {name: shop.rows(name) for name in cases}
    for name, (_, settings, *_) in cases.items():
        write(shop, name, keyed_by_id(settings))
    told = shop.refusals("snapshot", "--select", *REFUSED)
    for name, (_, _, says) in REFUSED.items():
        assert "AR-305" in told[name], told[name]
        assert says in told[name], told[name]
    assert {name: shop.rows(name) for name in REFUSED} == {name: before[name] for name in REFUSED}
    # What is exact is no change of any row, however often it runs.
    for _ in range(2):
        shop.dbt("snapshot", "--select", *ACCEPTED)
        for name in ACCEPTED:
            assert len(shop.rows(name)) == 2, name
    assert shop.rows("wider", "typeof(dbt_valid_from)")[0] == ("bigint",)
    _follow_each_fix(shop, told)
    write(shop, "coarser", f"unique_key='id', {timed('on_day')}, partition_by='day(at)'")
    assert "the table is partitioned by nothing, but partition_by is days(at)" in shop.fail(
        "snapshot", "--select", "coarser", "--warn-error"
    )
    # A local time is stored with an end that is a TIMESTAMP, in a column of that type.
    shop.source("raw_rows", rows.replace("10:00:00", "10:30:00"))
    shop.dbt("snapshot", "--select", "local_until")
    ends = "id, typeof(dbt_valid_to), string(dbt_valid_to)"
    expected = [
        (key, "timestamp", end) for key in (1, 2) for end in ("2024-03-01 10:30:00", "9999-12-31 00:00:00")
    ]
    assert shop.rows("local_until", ends) == expected
    # A record that ends by a deletion does not end before it began.
    write(shop, "coarser", f"unique_key='id', {timed('on_day')}, hard_deletes='invalidate'")
    shop.source("raw_rows", f"{rows} WHERE id = 1")
    shop.dbt("snapshot", "--select", "coarser")
    assert shop.rows("coarser", "id, dbt_valid_to > dbt_valid_from") == [(1, None), (2, True)]


def _follow_each_fix(shop: Shop, told: dict[str, str]) -> None:
    """The casts that the errors suggest add no record, and the converted times one of each key, once."""
    for name in ("zoned", "checked", "named"):
        found = re.search(r"set updated_at to '(.*?)', or", told[name])
        assert found is not None, told[name]
        settings = REFUSED[name][1]
        cast = re.sub(r"updated_at='\w+'", f"updated_at='{found[1]}'", settings)
        write(shop, name, keyed_by_id(cast if cast != settings else f"{settings}, updated_at='{found[1]}'"))
    shop.dbt("snapshot", "--select", "zoned", "checked", "named")
    for name in ("zoned", "checked", "named"):
        assert len(shop.rows(name)) == 2, name
    hook = re.search(r'pre_hook="(.*)"', told["named"])
    assert hook is not None, told["named"]
    write(shop, "named", f'{keyed_by_id(REFUSED["named"][1])}, pre_hook="{hook[1]}"')
    for _ in range(2):
        shop.dbt("snapshot", "--select", "named")
        ends = [row for (row,) in shop.rows("named", "dbt_valid_to IS NULL")]
        assert ends == [False, False, True, True]
