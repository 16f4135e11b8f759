"""Incremental models without a key: what a run replaces, and of what moment its rows are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop, Terminal


def test_an_overwrite_replaces_the_partitions_of_the_batch_or_the_table(shop: Shop) -> None:
    for name, config in {"days": ", partition_by='day'", "last": ""}.items():
        shop.model(
            name,
            f"""{{{{ config(materialized='incremental', incremental_strategy='insert_overwrite'{config}) }}}}
            select day, amount from {{{{ source('raw', 'raw_orders') }}}}""",
        )
    shop.source("raw_orders", "SELECT col1 AS day, col2 AS amount FROM VALUES (1, 10), (1, 11), (2, 20)")
    shop.dbt("run")
    shop.source("raw_orders", "SELECT col1 AS day, col2 AS amount FROM VALUES (2, 21), (3, 30)")
    shop.dbt("run")
    assert shop.rows("days") == [(1, 10), (1, 11), (2, 21), (3, 30)]
    assert shop.rows("last") == [(2, 21), (3, 30)]
    shop.source("raw_orders", "SELECT 1 AS day, 10 AS amount WHERE false")
    shop.dbt("run", "--select", "days")
    assert len(shop.rows("days")) == 4, "a batch without rows has no partition"


def test_delete_and_insert_are_of_one_batch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.model(
        "orders",
        """{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id') }}
        select id, amount, null as note from {{ source('raw', 'raw_orders') }}""",
    )
    shop.source("raw_orders", "SELECT id, id AS amount FROM range(3)")
    shop.sql("CREATE TABLE {s}.orders (id BIGINT, amount BIGINT, note INT) USING iceberg")
    shop.sql("INSERT INTO {s}.orders SELECT id, 10 + id, 5 FROM range(6)")
    run = shop.script.run

    def beside(sql: str, execute: object) -> None:
        run(sql, execute)  # type: ignore[arg-type]
        if "delete from" in sql.lower():
            shop.sql("INSERT OVERWRITE {s}.raw_orders VALUES (2, 2), (4, 4)")

    monkeypatch.setattr(shop.script, "run", beside)
    shop.dbt("run")
    expected = [(0, 0, None), (1, 1, None), (2, 2, None), (3, 13, 5), (4, 14, 5), (5, 15, 5)]
    assert shop.rows("orders") == expected
    left = [name for _, name, *_ in shop.sql("SHOW TABLES IN {s}")]
    assert not [name for name in left if "__pull_" in name]


def test_a_header_is_run_each_time_and_once(shop: Shop) -> None:
    """Each with a time zone of its own: that of another model would be seen."""
    zones = {
        "merge": ("Asia/Tokyo", "2026-01-01 09:00:00"),
        "delete+insert": ("Asia/Kolkata", "2026-01-01 05:30:00"),
        "append": ("America/Lima", "2025-12-31 19:00:00"),
    }
    for strategy, (zone, _) in zones.items():
        key = "" if strategy == "append" else ", unique_key='id'"
        shop.model(
            f"by_{strategy[:6]}",
            f"""{{{{ config(materialized='incremental', incremental_strategy='{strategy}'{key}) }}}}
            {{% call set_sql_header(config) %}} set spark.sql.session.timeZone={zone}; {{% endcall %}}
            select id, cast(timestamp'2026-01-01 00:00:00Z' as string) as at
            from {{{{ source('raw', 'raw_orders') }}}}""",
        )
    shop.source("raw_orders", "SELECT 1 AS id")
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 2 AS id")
    shop.dbt("run")
    for strategy, (_, at) in zones.items():
        assert shop.rows(f"by_{strategy[:6]}") == [(1, at), (2, at)], strategy


def test_the_case_of_a_column_is_nothing_to_a_snapshot_and_its_header_runs_each_time(shop: Shop) -> None:
    """A column in another case is no new one, and the record of a deletion has its value."""
    checked = {"all_columns": "'all'", "listed": "['id', 'amount']"}
    zone = "{% call set_sql_header(config) %} set spark.sql.session.timeZone=Asia/Tokyo; {% endcall %}"

    def snapshot(columns: str, *others: str) -> list[list[tuple[object, ...]]]:
        for name, which in {**checked, "deleted": "'all', hard_deletes='new_record'"}.items():
            shop.file(
                f"snapshots/{name}.sql",
                f"""{{% snapshot {name} %}}
                {{{{ config(unique_key='id', strategy='check', check_cols={which}) }}}}
                select {columns} from {{{{ source('raw', 'raw_orders') }}}}
                {{% endsnapshot %}}""",
            )
        shop.dbt("snapshot", "--select", *checked, *others)
        return [shop.rows(name, "id, amount, dbt_valid_to is null") for name in checked]

    shop.file(
        "snapshots/seen.sql",
        f"""{{% snapshot seen %}}
        {{{{ config(unique_key='id', strategy='check', check_cols=['at']) }}}}
        {zone}
        select id, cast(timestamp'2026-01-01 00:00:00Z' as string) as at
        from {{{{ source('raw', 'raw_orders') }}}}
        {{% endsnapshot %}}""",
    )
    shop.source("raw_orders", "SELECT id, 10 AS amount FROM range(2)")
    runs = {"id, amount": ("deleted", "seen"), "id, amount as Amount": ("seen",), "ID, AMOUNT": ()}
    for columns, others in runs.items():
        assert snapshot(columns, *others) == [[(0, 10, True), (1, 10, True)]] * 2
        assert shop.rows("seen", "id, at") == [(id_, "2026-01-01 09:00:00") for id_ in (0, 1)]
    shop.source("raw_orders", "SELECT 0L AS id, 11 AS amount")
    assert snapshot("ID, AMOUNT", "deleted") == [[(0, 10, False), (0, 11, True), (1, 10, True)]] * 2
    assert shop.rows("deleted", "id, amount, dbt_is_deleted, dbt_valid_to is null") == [
        *((0, 10, "False", False), (0, 11, "False", True)),
        *((1, 10, "False", False), (1, 10, "True", True)),
    ]


def test_columns_are_compared_as_they_are_stored(shop: Shop) -> None:
    """Neither another case nor a shorter integer is a change. What is added has a type of Iceberg's."""

    def run(columns: str, on_change: str) -> None:
        shop.model(
            "orders",
            f"""{{{{ config(materialized='incremental', incremental_strategy='append',
                          on_schema_change='{on_change}') }}}}
            select {columns} from {{{{ source('raw', 'raw_orders') }}}}""",
        )
        shop.dbt("run")

    shop.source("raw_orders", "SELECT 1 AS id")
    run("id, 7S as small, 1L as big", "fail")
    run("ID, 8S as Small, 2 as big", "fail")
    run("id, null as small, 3L as big", "fail")
    assert shop.rows("orders") == [(1, 7, 1), (1, 8, 2), (1, None, 3)]
    run("id, 9L as SMALL, 4L as big, 5S as tiny", "sync_all_columns")
    assert shop.rows("orders", "small, big, tiny")[:2] == [(7, 1, None), (8, 2, None)]
    assert shop.rows("orders", "small, big, tiny")[2:] == [(9, 4, 5), (None, 3, None)]
    run("id, 10L as small", "append_new_columns")
    assert (10, None, None) in shop.rows("orders", "small, big, tiny")


def test_what_is_in_another_catalog_is_not_looked_up_here(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT 1 AS id")
    # dbt creates missing schemas before the first model.
    config = "config(materialized='table', database='other', schema='missing')"
    shop.model("orders", f"{{{{ {config} }}}} select 1 as id")
    assert "orders has the catalog other" in shop.fail("run")
    assert [sql for sql in shop.script.ran if "missing" in sql] == []
    shop.model(
        "orders",
        "select * from {{ changes(api.Relation.create(database='other', schema=target.schema, "
        "identifier='raw_orders'), '1.1.1') }}",
    )
    assert "is in another catalog than the profile's, lake" in shop.fail("run")


def test_a_view_is_not_of_the_versions_of_its_run(shop: Shop) -> None:
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    profile["shop"]["outputs"]["dev"]["consistent_reads"] = True
    shop.file("profiles.yml", yaml.safe_dump(profile))
    shop.source("raw_orders", "SELECT 1 AS id")
    shop.model(
        "shown", "{{ config(materialized='view') }} select o.id from {{ source('raw', 'raw_orders') }} as o"
    )
    shop.dbt("run")
    shop.sql("INSERT INTO {s}.raw_orders VALUES (2)")
    assert shop.rows("shown") == [(1,), (2,)]


def test_a_table_that_is_never_rebuilt_does_not_change_its_form(shop: Shop) -> None:
    forms = {"keyed": "unique_key='id', buckets=2", "plain": "incremental_strategy='append'"}

    def models(keyed: str, plain: str) -> None:
        for name, form in (("first_keyed", keyed), ("first_plain", plain)):
            shop.model(
                name,
                f"""{{{{ config(materialized='incremental', full_refresh=false, {forms[form]}) }}}}
                select id from {{{{ source('raw', 'raw_orders') }}}}""",
            )

    def rows() -> list[list[tuple[object, ...]]]:
        return [shop.rows("first_keyed"), shop.rows("first_plain")]

    shop.source("raw_orders", "SELECT 1 AS id")
    models("keyed", "plain")
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 2 AS id")
    models("plain", "keyed")
    assert all("full_refresh is false" in said for said in shop.refusals("run").values())
    assert rows() == [[(1,)]] * 2
    models("keyed", "plain")
    shop.dbt("run")
    assert rows() == [[(1,), (2,)]] * 2


REPARTITIONED = {
    "other_case": ("id, part", "part", "id, part as PART", "part"),
    "other_width": ("id, part", "bucket(2, part)", "id, part", "bucket(4, part)"),
    "shorter": ("id, name", "truncate(2, name)", "id, name", "truncate(1, name)"),
    "named_as_a_field": ("id, at", "day(at)", "id, part as at_day", "at_day"),
    "same": ("id, part", "bucket(2, part)", "id, part", "bucket(2, part)"),
    "not_the_same_name": ("id, part", "bucket(2, part)", "id, part", "part"),
    "day_of_a_date": ("id, at", "day(at)", "id, date(at) as at", "day(at)"),
    "no_hour_of_a_date": ("id, at", "hour(at)", "id, date(at) as at", None),
    "no_day_of_a_text": ("id, at", "day(at)", "id, name as at", "id"),
    "number_for_text": ("id, string(part) as part", "part", "id, part", "part"),
    "local": ("id, at", "day(at)", "id, cast(at as timestamp_ntz) as at", "day(at)"),
    "wider": ("id, part", "part", "id, bigint(part) as part", "part"),
}
"""By model: its columns and ``partition_by`` at first, and those with which it is rebuilt."""
REPLACED_IN_PLACE = {"same", "not_the_same_name", "local", "wider"}


def test_a_table_with_another_partitioning_can_be_written_after_it_is_rebuilt(shop: Shop) -> None:
    def run(version: int, *arguments: str) -> None:
        for name, settings in REPARTITIONED.items():
            columns, partition_by = settings[version : version + 2]
            shop.model(
                name,
                f"""{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id',
                              partition_by={partition_by!r}) }}}}
                select {columns} from {{{{ source('raw', 'raw_orders') }}}}""",
            )
        _, partition_by, _, then = REPARTITIONED["other_width"]
        shop.model(
            "replaced",
            f"""{{{{ config(materialized='table', partition_by='{then if version else partition_by}') }}}}
            select id, part from {{{{ source('raw', 'raw_orders') }}}}""",
        )
        shop.dbt("run", *arguments)

    columns = "col1 AS id, col2 AS part, col3 AS name, timestamp'2026-01-01 00:00:00' AS at"
    shop.source("raw_orders", f"SELECT {columns} FROM VALUES (1, 10, 'abc'), (2, 20, 'abd')")
    run(0)
    first = {name: snapshot_ids(shop, name) for name in REPARTITIONED}
    run(2, "--full-refresh")
    shop.source("raw_orders", f"SELECT {columns} FROM VALUES (2, 21, 'b'), (3, 30, 'c')")
    run(2)
    expected: dict[str, list[tuple[object, ...]]] = {"shorter": [(1, "abc"), (2, "b"), (3, "c")]}
    day, at = dt.date(2026, 1, 1), dt.datetime(2026, 1, 1)
    for name, value in {"day_of_a_date": day, "no_hour_of_a_date": day, "local": at}.items():
        expected[name] = [(id_, value) for id_ in (1, 2, 3)]
    expected["no_day_of_a_text"] = expected["shorter"]
    for name in REPARTITIONED:
        assert shop.rows(name) == expected.get(name, [(1, 10), (2, 21), (3, 30)]), name
    assert shop.rows("replaced") == [(2, 21), (3, 30)]
    for name in (*REPARTITIONED, "replaced"):
        assert shop.sql(f"SELECT * FROM {{s}}.{name}.files"), "its metadata tables can be read"
    kept = {name for name in REPARTITIONED if first[name] <= snapshot_ids(shop, name)}
    assert kept == REPLACED_IN_PLACE, "the history is lost only where it must be"
    table = f"table => '{shop.schema}.number_for_text'"
    shop.sql(
        f"CALL lake.system.expire_snapshots({table}, older_than => current_timestamp(), retain_last => 1)"
    )
    assert not [name for _, name, *_ in shop.sql("SHOW TABLES IN {s}") if "__arctic_" in name]


def test_a_partition_column_that_was_gone_for_one_build_is_another_one(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT 1 AS id, 10 AS part")

    def run(columns: str, partition_by: str, *arguments: str) -> None:
        shop.model(
            "orders",
            f"""{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id',
                          partition_by={partition_by}) }}}}
            select {columns} from {{{{ source('raw', 'raw_orders') }}}}""",
        )
        shop.dbt("run", *arguments)

    run("id, part", "'part'")
    run("id", "none", "--full-refresh")
    run("id, part", "'part'", "--full-refresh")
    run("id, part + 1 as part", "'part'")
    assert shop.rows("orders") == [(1, 11)]


EVOLVED = {
    "parts": "incremental_strategy='insert_overwrite', partition_by='day'",
    "refreshed": "incremental_strategy='insert_overwrite', partition_by='day'",
    "whole": "incremental_strategy='insert_overwrite'",
    "batches": "incremental_strategy='microbatch', event_time='day', batch_size='day', begin='2024-01-01', "
    "partition_by='day'",
    "merged": "incremental_strategy='merge', unique_key='n', partition_by='day'",
}
"""Models on tables whose partitioning another program changes."""


def test_an_overwrite_of_partitions_refuses_files_of_an_older_partitioning(
    shop: Shop, type_in: Terminal
) -> None:
    """Iceberg would leave their rows, next to the new rows of the same partition."""
    both = "SELECT * FROM VALUES (date'2024-01-01', 1), (date'2024-01-02', 2) AS t(day, n)"
    for name, config in EVOLVED.items():
        shop.model(
            name,
            f"{{{{ config(materialized='incremental', {config}) }}}}\n"
            "select day, n from {{ source('raw', 'raw_orders') }}",
        )
        clause, change = ("PARTITIONED BY (day)", "DROP") if name == "whole" else ("", "ADD")
        shop.sql(f"CREATE TABLE {{s}}.{name} USING iceberg {clause} AS {both}")
        shop.sql(f"ALTER TABLE {{s}}.{name} {change} PARTITION FIELD day")
    shop.source("raw_orders", "SELECT date'2024-01-01' AS day, 1 AS n")
    days = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02")
    refused = ("parts", "refreshed")
    before = [snapshot_ids(shop, name) for name in refused]
    for name, says in shop.refusals("run", "--select", *refused).items():
        assert "AR-301" in says, name
        assert "older partitioning" in says, name
        assert f"dbt-arctic compact {shop.schema}.{name} --kind merge" in says
    assert [snapshot_ids(shop, name) for name in refused] == before, "nothing was written"
    shop.dbt("run", *days, "--exclude", *refused)
    a, b = (dt.date(2024, 1, 1), 1), (dt.date(2024, 1, 2), 2)
    expected = {"parts": [a, b], "refreshed": [a], "whole": [a], "batches": [a, b], "merged": [a, b]}
    assert "rewritten (1 file into 2)" in type_in("compact", f"{shop.schema}.parts", "--kind", "merge")
    shop.dbt("run", "--full-refresh", "--select", "refreshed")
    for _ in range(2):
        shop.dbt("run", *days)
        assert {name: shop.rows(name) for name in EVOLVED} == expected


def snapshot_ids(shop: Shop, name: str) -> set[int]:
    """The ids of the snapshots of a plain table."""
    state = shop.catalog.load_table(shop.schema, name)
    assert state is not None, name
    return {snapshot.snapshot_id for snapshot in state.snapshots}


def test_a_statement_that_is_executed_twice_is_not_published(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a gateway had got no answer to a commit, and had sent it again."""
    shop.source("raw_rows", "SELECT 1 AS id, 10 AS n")
    shop.file(
        "models/sources.yml", f"sources: [{{name: raw, schema: {shop.schema}, tables: [{{name: raw_rows}}]}}]"
    )
    config = "materialized='incremental', incremental_strategy='delete+insert', unique_key='id'"
    shop.model(
        "replaced", f"{{{{ config({config}) }}}} select id, n from {{{{ source('raw', 'raw_rows') }}}}"
    )
    shop.dbt("run")
    shop.source("raw_rows", "SELECT 1 AS id, 11 AS n")
    run = shop.script.run

    def twice(sql: str, execute: Callable[[], None]) -> None:
        run(sql, execute)
        if "insert into" in sql:
            execute()

    with monkeypatch.context() as patch:
        patch.setattr(shop.script, "run", twice)
        assert "AR-203 the rows of a run were committed twice" in shop.fail("run")
    assert shop.rows("replaced") == [(1, 10)]
    shop.dbt("run")
    assert shop.rows("replaced") == [(1, 11)]


NOT_A_NUMBER = "cast('NaN' as double)"


def test_a_filter_finds_rows_with_nan(shop: Shop) -> None:
    """Iceberg's bounds leave out NaN, which Spark considers greater than any number."""
    rows = f"select 1 as id, 1.0D as x, 1.0F as y union all select 2, {NOT_A_NUMBER}, cast('NaN' as float)"
    append = "{{ config(materialized='incremental', on_schema_change='append_new_columns') }} "

    def more(number: int) -> str:
        return f"select {number} as id, {NOT_A_NUMBER} as x, 2.0F as y, {NOT_A_NUMBER} as `Z.z`"

    def where(name: str, condition: str) -> list[int]:
        return sorted(row[0] for row in shop.sql(f"SELECT id FROM {{s}}.{name} WHERE {condition}"))

    shop.model("built", "{{ config(materialized='table') }} " + rows)
    shop.model("grown", append + rows)
    shop.file("seeds/sown.csv", "id,x\n1,1.0\n2,NaN\n")
    shop.file("seeds/sown.yml", "seeds: [{name: sown, config: {column_types: {x: double}}}]")
    shop.file(
        "snapshots/kept.sql",
        "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all') }}"
        + rows
        + "{% endsnapshot %}",
    )
    shop.dbt("build")
    for name in ("built", "grown", "sown", "kept"):
        assert where(name, "x > 5") == [2], name
        assert where(name, "NOT x <= 5") == [2], name
    assert where("grown", "y > 5") == [2]
    # Rows that are appended, and a column that is added.
    shop.model("grown", append + more(3))
    shop.dbt("run", "--select", "grown")
    shop.dbt("run", "--select", "grown")
    assert where("grown", "x > 5") == [2, 3, 3]
    assert where("grown", "`Z.z` > 5") == [3, 3]
    # The column is gone: another setting can be changed, as the next run does.
    table = "{{ config(materialized='table', tblproperties={'write.metadata.metrics.column.id': 'none'}) }} "
    shop.model("built", table + "select 1 as id, 'a' as z")
    shop.dbt("run", "--select", "built")
    shop.model("built", table.replace("none", "full") + "select 1 as id, cast('NaN' as double) as z")
    shop.dbt("run", "--select", "built")
    assert where("built", "z > 5") == [1]
    state = shop.catalog.load_table(shop.schema, "built")
    assert state is not None
    metrics = {name: mode for name, mode in state.properties.items() if "metrics.column" in name}
    assert metrics == {"write.metadata.metrics.column.id": "full", "write.metadata.metrics.column.z": "none"}
