"""Corners of dbt where a slip once went unnoticed: hooks, seeds, names, artifacts, first schemas."""

from __future__ import annotations

import json
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from dbt.cli.main import dbtRunner

from dbt_arctic.adapter import relation
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.cli.main import main
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.warehouse import catalog_file, prepare_warehouse
from tests.dbt.keyed.conftest import Shop


def test_a_hook_may_hold_several_statements_and_one_that_says_nothing_is_none(shop: Shop) -> None:
    shop.model(
        "noted",
        """{{ config(materialized='table', pre_hook="set shop.region=EU; set shop.day=2024-01-01",
             post_hook=["delete from {{ this }} where id = 1; insert into {{ this }} values (9, 'a;b'); -- ;",
                        "  ", "-- nothing to do;", "delete from {{ this }} where note = ';';"]) }}
select 1 as id, 'x' as note union all select 2, 'y' union all select 3, ';'""",
    )
    shop.dbt("run")
    assert shop.rows("noted") == [(2, "y"), (9, "a;b")]
    assert not [sql for sql in shop.script.ran if sql.strip() in ("", "-- nothing to do;")]


def test_a_hook_that_fails_is_named_before_the_next_statement_runs(shop: Shop) -> None:
    shop.model(
        "noted",
        "{{ config(materialized='table', pre_hook='select nope; create table {{ this.schema }}.t (a int)') }}"
        "select 1 as id",
    )
    told = shop.fail("run")
    assert "nope" in told
    assert "hook:  pre-hook 1 of noted" in told
    assert shop.catalog.list_relations(shop.schema) == []


def test_hooks_of_a_run_are_like_those_of_a_model(shop: Shop) -> None:
    name = "{{ target.schema }}.t"
    create = f"create table {name} (a int) using iceberg; insert into {name} values (1);"
    project = shop.folder / "dbt_project.yml"
    written = project.read_text()
    hooks = {"on-run-start": ["-- nothing; at all", create], "on-run-end": ["select ';' -- the end;\n;"]}
    project.write_text(written + json.dumps(hooks)[1:-1].replace('], "on', ']\n"on') + "\n")
    table = "{{ config(materialized='table') }} "
    shop.model("lines", "{{ config(materialized='ephemeral') }} select 1 as id, ')' as t -- a;\n; -- b )")
    shop.model("seen", "select id, t from {{ ref('lines') }};")
    shop.model("stored", f"{table} select id, t from {{{{ ref('lines') }}}} join {shop.schema}.t on a = id")
    shop.model("two", f"{table} select 1 as id; select 2 as id")
    shop.dbt("run", "--exclude", "two")
    assert shop.rows("seen") == shop.rows("stored") == [(1, ")")]
    project.write_text(written + 'on-run-end: ["select 1; select nope"]\n')
    outcome = shop.try_dbt("run", "--select", "two")
    assert not outcome.success
    told = {result.node.name: str(result.message) for result in outcome.result.results}
    assert "PARSE_SYNTAX_ERROR" in told["two"], "a model is one statement"
    assert "nope" in told["shop-on-run-end-0"]
    assert "shop.on-run-end.0" in told["shop-on-run-end-0"]


def test_seeds_keep_every_value_as_it_stands(shop: Shop) -> None:
    shop.file("seeds/zips.csv", "id,Zip,When\n1,00501,2024-01-01\n2,01234,2024-02-30\n")
    shop.file("seeds/codes.csv", "id,code\n1,29051_00040\n2,29051_00041\n")
    shop.file("seeds/nan.csv", "id,n\n1,1\n2,NaN\n")
    shop.file("seeds/big.csv", "id,big,small\n1,12345678901234567890,0.1234567890123456789\n2,1,0.1\n")
    shop.file("seeds/seeds.yml", "seeds: [{name: zips, config: {column_types: {zip: VARCHAR}}}]")
    shop.dbt("seed")
    assert shop.rows("zips", "id, Zip, When") == [(1, "00501", "2024-01-01"), (2, "01234", "2024-02-30")]
    assert shop.rows("codes") == [(1, "29051_00040"), (2, "29051_00041")]
    assert shop.rows("nan", "id, CAST(n AS STRING)") == [(1, "1.0"), (2, "NaN")]
    assert shop.rows("big", "id, CAST(big AS STRING), CAST(small AS STRING)") == [
        (1, "12345678901234567890", "0.1234567890123456789"),
        (2, "1", "0.1000000000000000000"),
    ]


def test_a_type_for_a_column_that_a_seed_does_not_have_is_an_error(shop: Shop) -> None:
    shop.file("seeds/zips.csv", "id,zip\n1,00501\n")
    shop.file("seeds/seeds.yml", "seeds: [{name: zips, config: {column_types: {zipcode: string}}}]")
    assert "column_types contains zipcode" in shop.fail("seed")


def test_a_value_that_a_seed_cannot_store_is_an_error_in_every_mode_of_spark(shop: Shop) -> None:
    """Without ANSI mode, Spark's CAST returns NULL, or a part of the value."""
    profile = shop.folder / "profiles.yml"
    given = yaml.safe_load(profile.read_text(encoding="utf-8"))
    conf = given["shop"]["outputs"]["dev"]["spark_conf"]
    given["shop"]["outputs"]["dev"]["spark_conf"] = {**conf, "spark.sql.ansi.enabled": "false"}
    profile.write_text(yaml.safe_dump(given), encoding="utf-8")
    values = {"large": "3000000000", "fraction": "1.7", "word": "x"}
    for name, value in values.items():
        shop.file(f"seeds/{name}.csv", f"id,n\n1,5\n2,\n3,{value}\n")
    shop.file("seeds/fits.csv", "id,n\n1,5\n2,\n")
    seeds = [{"name": name, "config": {"column_types": {"n": "int"}}} for name in (*values, "fits")]
    shop.file("seeds/seeds.yml", yaml.safe_dump({"seeds": seeds}))
    shop.dbt("seed", "--select", "fits")
    assert shop.rows("fits") == [(1, 5), (2, None)]
    told = shop.refusals("seed", "--exclude", "fits")
    assert told.keys() == values.keys()
    for name, value in values.items():
        assert f"the column n of the seed is INT, and a row has the value {value}" in told[name]


SEEDED = {
    "cut_day": ("date", "2024-01-01 23:59:00"),
    "cut_zone": ("timestamp_ntz", "2024-01-01T10:00:00+02:00"),
    "rounded": ("decimal(10,2)", "10.555"),
    "skipped_hour": ("timestamp", "2024-03-31 02:30:00"),
}
"""By seed: a type, and a text that Spark would store as another value of it."""


def test_a_value_that_the_type_of_a_seed_would_change_is_an_error(shop: Shop) -> None:
    in_zurich(shop)
    for name, (_, value) in SEEDED.items():
        shop.file(f"seeds/{name}.csv", f"id,v\n1,\n2,{value}\n")
    kept = {
        "at": ("timestamp", "2024-03-31 03:30:00.25", "2024-03-31 01:30:00.25"),
        "zoned": ("timestamp", "2024-03-31T02:30:00+05:00", "2024-03-30 21:30:00"),
        "local": ("timestamp_ntz", "2024-03-31 02:30:00.123456000", "2024-03-31 02:30:00.123456"),
        "price": ("decimal(10,2)", "1055.0e-2", "10.55"),
        "day": ("date", "2024-01-01T00:00:00", "2024-01-01"),
        "read_at": (None, "2024-01-01T10:00:00.123456789Z", "2024-01-01T10:00:00.123456789Z"),
        "code": (None, "12T10", "12T10"),
        "digits": (None, "0.12345678901234567890123456789", "0.12345678901234567890123456789"),
    }
    shop.file("seeds/kept.csv", f"{';'.join(kept)}\n{';'.join(value for _, value, _ in kept.values())}\n")
    shop.file("seeds/twice.csv", "id,code,code\n1,x,5_0\n")
    types = {name: type_ for name, (type_, _, _) in kept.items() if type_}
    seeds = [{"name": name, "config": {"column_types": {"v": type_}}} for name, (type_, _) in SEEDED.items()]
    seeds.append({"name": "kept", "config": {"column_types": types, "delimiter": ";"}})
    shop.file("seeds/seeds.yml", yaml.safe_dump({"seeds": seeds}))
    shop.dbt("seed", "--select", "kept")
    (row,) = shop.rows("kept", ", ".join(f"cast({name} as string)" for name in kept))
    assert dict(zip(kept, row, strict=True)) == {name: stored for name, (_, _, stored) in kept.items()}
    told = shop.refusals("seed", "--exclude", "kept")
    assert told.keys() == {*SEEDED, "twice"}
    assert "the header of the file names several columns code" in told.pop("twice")
    for name, says in told.items():
        type_, value = SEEDED[name]
        assert "AR-311" in says, name
        assert f"the column v of the seed is {type_.upper()}, and a row has the value {value}" in says, name


def test_a_model_does_not_take_the_name_of_a_part_of_a_keyed_table(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.model("side", "{{ config(materialized='incremental', unique_key='id', buckets=1) }} select 1 as id")
    shop.dbt("run")
    parts = ("side__change_1", "side__base_1")
    snapshot = "{{ config(unique_key='id', strategy='check', check_cols='all') }} select 1 as id"
    named = {
        "models/other.sql": f"{{{{ config(alias={parts[0]!r}) }}}} select 1 as id",
        f"seeds/{parts[0]}.csv": "id\n1\n",
        f"snapshots/{parts[0]}.sql": f"{{% snapshot {parts[0]} %}}{snapshot}{{% endsnapshot %}}",
    }
    for file, text in named.items():
        shop.file(file, text)
        for command in ("parse", "ls", "compile", "run") if file.startswith("models") else ("parse",):
            says = shop.fail(command)
            assert f"{parts[0]} is reserved for a side table of the keyed table side" in says, (file, command)
            assert "AR-301" in says, (file, command)
            assert file in says, (file, command)
        (shop.folder / file).unlink()
    # Its alias decides, wherever it is set, and a disabled model has no relation.
    shop.model(parts[0], "{{ config(materialized='view') }} select '{{ this }}' as x")
    shop.model(parts[1], "{{ config(alias='side_in_config', materialized='view') }} select '{{ this }}' as x")
    shop.model("side__base_2", "{{ config(enabled=false) }} select 1 as id")
    shop.file("models/aliases.yml", f"models: [{{name: {parts[0]}, config: {{alias: side_in_yaml}}}}]")
    shop.dbt("run", "--select", *parts)
    assert {"side_in_config", "side_in_yaml"} <= {one.name for one in shop.catalog.list_names(shop.schema)}
    (shop.folder / "models/aliases.yml").unlink()
    (shop.folder / "models/side__base_2.sql").unlink()
    # Each run looks as well: its manifest may come from elsewhere.
    monkeypatch.setattr(relation, "refuse_reserved_name", lambda model: None)
    for form in ("table", "view", "incremental"):
        for name in parts:
            shop.model(name, f"{{{{ config(materialized='{form}') }}}} select 2 as id")
        told = shop.refusals("run", "--select", *parts)
        for name in parts:
            assert f"{name} is reserved for a side table of the keyed table side" in told[name], form
        assert shop.rows("side") == [(1,)], form
    own = ("side__arctic_new_x", "side__arctic_old_2024", f"side__arctic_new_{1:019}")
    for name in own:
        shop.model(name, "{{ config(materialized='table') }} select 3 as id")
    shop.dbt("parse")
    (shop.folder / "state").mkdir()
    shutil.copy(shop.folder / "target" / "manifest.json", shop.folder / "state")
    cloned = shop.refusals("clone", "--state", "state", "--full-refresh", "--select", parts[0])
    assert f"{parts[0]} is reserved for" in cloned[parts[0]]
    told = shop.refusals("run", "--select", own[-1])
    assert f"{own[-1]} is reserved for what a run of side builds or renames" in told[own[-1]]
    shop.dbt("run", "--select", *own[:2])
    shop.dbt("run", "--select", "side")
    assert [shop.rows(name) for name in own[:2]] == [[(3,)], [(3,)]], "only its own leftovers are dropped"


def test_a_plan_leaves_what_dbt_wrote_of_its_last_run(shop: Shop) -> None:
    shop.model("broken", "select nope")
    shop.model(
        "counted",
        "{{ config(materialized='incremental', incremental_strategy='auto', unique_key='id', buckets=1) }}\n"
        "select 1 as id, count(*) as n from range(3)",
    )
    shop.fail("run")
    artifacts = [Path(shop.folder, "target", name) for name in ("run_results.json", "manifest.json")]
    before = [path.read_bytes() for path in artifacts]
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    done = CliRunner().invoke(main, ["plan", *folders])
    assert done.exit_code == 0, done.output
    assert [path.read_bytes() for path in artifacts] == before
    results = json.loads(before[0])["results"]
    assert {one["unique_id"]: one["status"] for one in results}["model.shop.broken"] == "error"
    assert not shop.try_dbt("retry").success, "it has something to do"


def test_sessions_that_use_a_new_catalog_at_once_find_its_tables(tmp_path: Path) -> None:
    from dbt_arctic.catalog.embedded import EmbeddedCatalog

    settings = SparkSettings("lake", str(tmp_path / "lake"))
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: prepare_warehouse(settings), range(16)):
            pass
    assert EmbeddedCatalog("lake", tmp_path / "lake").list_schemas() == []
    file = catalog_file(settings)
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")}
        others = list(connection.execute("PRAGMA table_info(iceberg_namespace_properties)"))
    # Iceberg creates or extends nothing at the first use, where two sessions would do it at once.
    assert "iceberg_type" in columns
    assert others


ENDED = "select id, name, at from {{ source('raw', 'raw_rows') }} -- all; of it\n;\n-- the end;"


def test_a_query_may_end_in_a_semicolon_wherever_dbt_puts_it(shop: Shop) -> None:
    shop.source("raw_rows", "SELECT 1 AS id, 'a' AS name, timestamp'2024-01-01 10:00:00' AS at")
    forms = {
        "a_table": "materialized='table'",
        "a_view": "materialized='view'",
        "appended": "materialized='incremental'",
        "merged": "materialized='incremental', incremental_strategy='merge', unique_key='id'",
        "keyed": "materialized='incremental', unique_key='id', delete_when=\"name = 'z' -- gone\"",
        "batched": "materialized='incremental', incremental_strategy='microbatch', event_time='at', "
        "batch_size='day', begin='2024-01-01'",
        "agreed": "materialized='table', contract={'enforced': true}",
    }
    for name, config in forms.items():
        shop.model(name, f"{{{{ config({config}) }}}}\n{ENDED}")
    shop.file(
        "models/all.yml",
        "sources: [{name: raw, schema: "
        + shop.schema
        + ", tables: [{name: raw_rows}]}]\n"
        + "models: [{name: agreed, columns: [{name: id, data_type: int}, {name: name, data_type: string}, "
        "{name: at, data_type: timestamp}]}]\n"
        "unit_tests: [{name: one_row, model: a_table, given: [{input: \"source('raw', 'raw_rows')\", "
        "rows: [{id: 5}]}], expect: {rows: [{id: 5}]}}]\n",
    )
    (shop.folder / "models" / "sources.yml").unlink()
    shop.file(
        "snapshots/kept.sql",
        "{% snapshot kept %}{{ config(unique_key='id', strategy='timestamp', updated_at='at', "
        "hard_deletes='new_record', target_schema=target.schema) }}\n" + ENDED + "\n{% endsnapshot %}",
    )
    shop.file("tests/none.sql", "select * from {{ ref('a_table') }} where id > 1;")
    days = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02")
    for _ in range(2):
        shop.dbt("build", *days)
    for name in (*forms, "kept"):
        expected = 2 if name == "appended" else 1
        assert len(shop.rows(name, "id")) == expected, name
    shop.dbt("show", "--select", "a_table", "--limit", "1")


FIRST = {
    "write.parquet.compression-codec": "zstd",
    "shop.owner": "anna",
    "write.delete.mode": "copy-on-write",
}
THEN = {"write.parquet.compression-codec": "snappy", "shop.note": "it's new"}


def test_properties_that_are_changed_or_removed_are_so_on_the_table(shop: Shop) -> None:
    forms = {
        "a_table": "materialized='table'",
        "appended": "materialized='incremental'",
        "keyed": "materialized='incremental', unique_key='id', buckets=1",
    }

    def run(properties: dict[str, str]) -> None:
        for name, config in forms.items():
            shop.model(name, f"{{{{ config({config}, tblproperties={properties!r}) }}}} select 1 as id")
        shop.dbt("run")

    def properties_of(name: str) -> dict[str, str]:
        table = f"{name}__base_1" if name == "keyed" else name
        return dict(shop.sql(f"SHOW TBLPROPERTIES {{s}}.{table}"))  # type: ignore[arg-type]

    run(FIRST)
    shop.sql("ALTER TABLE {s}.appended SET TBLPROPERTIES ('by.hand' = 'kept')")
    run(THEN)
    for name in forms:
        found = properties_of(name)
        assert {key: found.get(key) for key in THEN} == THEN, name
        assert "shop.owner" not in found, name
        assert found.get("write.delete.mode") != "copy-on-write", name
    assert properties_of("appended")["by.hand"] == "kept"
    shop.dbt("run", "--select", "appended", "keyed")
    assert not [sql for sql in shop.script.ran if "TBLPROPERTIES" in sql and "ALTER" in sql], (
        "nothing to change"
    )
    # Iceberg upgrades a table in place, and downgrades none.
    run({"format-version": "3"})
    older = {"format-version": "2"}
    for name, config in forms.items():
        shop.model(name, f"{{{{ config({config}, tblproperties={older!r}) }}}} select 1 as id")
    told = shop.refusals("run", "--select", "appended", "keyed")
    assert "tblproperties sets format-version to 2, and the table has 3" in told["appended"]
    assert "--full-refresh --select appended" in told["appended"]
    assert "a keyed table has format version 3" in told["keyed"]
    shop.dbt("run", "--select", "a_table")
    shop.dbt("run", "--full-refresh", "--select", "appended")
    assert [properties_of(name)["format-version"] for name in ("a_table", "appended")] == ["2", "2"]
    assert shop.rows("appended") == [(1,)]
    shop.model("appended", f"{{{{ config({forms['appended']}) }}}} select 2 as id")
    shop.dbt("run", "--select", "appended")
    assert properties_of("appended")["format-version"] == "3", "the default"
    assert shop.rows("appended") == [(1,), (2,)]
    run({})
    assert not [sql for sql in shop.script.ran if "UNSET" in sql and "format-version" in sql]
    for name in forms:
        assert not {"shop.note", "arctic.given-properties"} & set(properties_of(name)), name


AT = "timestamp'2024-01-01 10:00:00.123456'"
NESTED = {
    f"map(date'2024-01-01', named_struct('n', null, 't', {AT}, 'd', 1.5bd))": '{"2024-01-01": {"n": null, '
    '"t": "2024-01-01T10:00:00.123456+01:00", "d": 1.5}}',
    "map(1.50bd, X'00ff')": '{"1.50": "AP8="}',
    "map(X'6162', true)": '{"YWI=": true}',
    "array(named_struct('b', X'00ff', 'n', cast(null as int)), null)": '[{"b": "AP8=", "n": null}, null]',
    f"map(named_struct('n', null, 't', {AT}), X'00ff')": r'{"{\"n\":null,\"t\":'
    r'\"2024-01-01 10:00:00.123456+01:00\"}":"AP8="}',
    "map(array(date'2024-01-01', null), named_struct('n', null))": r'{"[\"2024-01-01\",null]":{"n":null}}',
    f"named_struct('a', null, 'a', map(named_struct('k', 1), {AT}))": r'{"a":null,"a":{"{\"k\":1}":'
    '"2024-01-01 10:00:00.123456+01:00"}}',
    "map(timestamp'2024-10-27 00:30:00Z', 1, timestamp'2024-10-27 01:30:00Z', 2)": "{"
    '"2024-10-27 02:30:00.000000+02:00":1,"2024-10-27 02:30:00.000000+01:00":2}',
    "array(make_interval(1, 2), null)": '["1 years 2 months",null]',
    "map('k', named_struct('i', make_ym_interval(1, 2), 'n', null))": (
        """{"k":{"i":"INTERVAL '1-2' YEAR TO MONTH","n":null}}"""
    ),
}
"""Nested values, and the JSON of each in a session in Zurich: no part is left out or cut."""


def in_zurich(shop: Shop) -> None:
    """The time zone of the session is not that of this process, and has summer time."""
    profile = shop.folder / "profiles.yml"
    given = yaml.safe_load(profile.read_text(encoding="utf-8"))
    given["shop"]["outputs"]["dev"]["spark_conf"]["spark.sql.session.timeZone"] = "Europe/Zurich"
    profile.write_text(yaml.safe_dump(given), encoding="utf-8")


VALUES = {
    **NESTED,
    "parse_json('{\"a\": [1, 2]}')": '{"a":[1,2]}',
    "make_ym_interval(1, 2)": None,
    "interval '1 02:03:04' day to second": None,
    "array(cast('NaN' as double), cast('Infinity' as double))": '["NaN", "Infinity"]',
    "cast('NaN' as double)": "NaN",
    "named_struct('a', 1, 'a', 2)": '{"a":1,"a":2}',
    "date'+10000-01-01'": "+10000-01-01",
    "date'0001-01-01'": "0001-01-01",
    "12345678901234567890123456789012345678bd": "12345678901234567890123456789012345678",
    "cast(0.1 as float)": "0.1",
    "X'00FF'": "00FF",
    "array()": "[]",
    "null": None,
}


def test_values_of_every_type_are_shown_in_text_and_in_json(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    in_zurich(shop)
    listed = ", ".join(f"{sql} as v{number}" for number, sql in enumerate(VALUES))
    query = f"select {listed}".replace("{", "{{ '{' }}")
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    for form in ("text", "json"):
        outcome = dbtRunner().invoke(["--quiet", "show", "--inline", query, "--output", form, *folders])
        assert outcome.success, outcome.exception
    (shown,) = outcome.result.results[0].agate_table.rows
    for number, (sql, expected) in enumerate(VALUES.items()):
        if expected is not None:
            assert str(shown[f"v{number}"]) == expected, sql
    printed = capsys.readouterr().out
    start = printed.rindex('"show": [') + len('"show": ')
    decoded, _ = json.JSONDecoder(parse_constant=pytest.fail).raw_decode(printed[start:])
    assert len(decoded[0]) == len(VALUES)


CELLS = {
    **NESTED,
    "make_ym_interval(1, 2)": "INTERVAL '1-2' YEAR TO MONTH",
    "12345678901234567890123456789012345678bd": "12345678901234567890123456789012345678",
    "array(12345678901234567890.5bd)": "[12345678901234567890.5]",
    "named_struct('a', 1, 'a', 2)": '{"a":1,"a":2}',
    "cast(0.1 as float)": "0.1",
    "array(cast(0.1 as float), cast('NaN' as float))": '[0.1, "NaN"]',
    "X'00FF'": "00FF",
    "parse_json('[1, {\"a\": null}]')": '[1,{"a":null}]',
    "timestamp'2024-01-01 10:00:00'": "2024-01-01 10:00:00+01:00",
}
LATE = {
    "date'+10000-01-01'": "+10000-01-01",
    "array(timestamp_ntz'+10000-01-01 10:00:00')": '["+10000-01-01 10:00:00.000000"]',
    "named_struct('at', date'+10000-01-01')": '{"at":"+10000-01-01"}',
}


def test_values_of_every_type_reach_macros_and_the_command_line(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.file(
        "macros/look.sql",
        "{% macro look(sql) %}{% for value in run_query(sql).rows[0].values() %}"
        "{{ print('<' ~ value ~ '>') }}{% endfor %}{% endmacro %}",
    )
    in_zurich(shop)
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    for cells in (LATE, CELLS):
        query = "select " + ", ".join(f"{sql} as v{number}" for number, sql in enumerate(cells))
        shop.dbt("run-operation", "look", "--args", json.dumps({"sql": query}))
        printed = [line[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("<")]
        assert printed == list(cells.values())
        done = CliRunner().invoke(main, ["sql", query, *folders])
        assert done.exit_code == 0, done.output
        assert not [value for value in cells.values() if value not in done.output]
    done = CliRunner().invoke(main, ["sql", "--json", query, *folders])
    (row,) = json.JSONDecoder(parse_constant=pytest.fail).decode(done.output)
    assert row["v0"] == {"2024-01-01": {"n": None, "t": "2024-01-01 10:00:00.123456+01:00", "d": "1.5"}}
    assert '{"a":1,"a":2}' in row.values()


CONTRACTS = {
    "cased": ("struct<City: TEXT, Zip: integer>", "named_struct('city', 'x', 'zip', 1)"),
    "spaced": (
        "array< struct< text : varchar , b : numeric( 3 , 2 ) > >",
        "array(named_struct('text', 'x', 'b', 1.50bd))",
    ),
    "listed": ("map<text, array<varchar(3)>>", "map('a', array('x'))"),
    "quoted": ("struct<`a-b`: integer, `x y`: text>", "named_struct('A-b', 1, 'x y', 'z')"),
    "simple": (
        "struct<b: boolean, t: timestamp, n: timestamp_ntz, d: date, f: double>",
        "named_struct('b', true, 't', timestamp'2024-01-01 00:00:00', "
        "'n', timestamp_ntz'2024-01-01 00:00:00', 'd', date'2024-01-01', 'f', 1.5D)",
    ),
    "wrong": ("struct<city: text, zip: int>", "named_struct('city', 'x', 'zip', '1')"),
    "moved": ("struct<city: text, zip: text>", "named_struct('zip', '1', 'city', 'x')"),
    "bare": ("struct", "named_struct('city', 'x')"),
    "keyed": ("text", "'x'"),
    "keyed_wrong": ("text", "1"),
}
KEYED_BY_IT = "materialized='incremental', unique_key='a', buckets=1, on_schema_change='fail'"


def test_contracts_compare_types_by_what_they_mean_at_every_depth(shop: Shop) -> None:
    described = []
    for name, (declared, value) in CONTRACTS.items():
        config = KEYED_BY_IT if name.startswith("keyed") else "materialized='table'"
        shop.model(name, f"{{{{ config({config}) }}}} select {value} as a")
        columns = [{"name": "a", "data_type": declared}]
        described.append({"name": name, "columns": columns})
    # Columns are stored in the order of the contract, and have its names.
    for name, columns in {"turned": ["b", "a"], "named": ["a"]}.items():
        config = "{{ config(materialized='table') }}"
        shop.model(name, f"{config} select " + ", ".join(f"'of {column}' as {column}" for column in columns))
    for name in ("turned", "named"):
        described.append({"name": name, "columns": [{"name": one, "data_type": "text"} for one in "ab"]})
    enforced = [{**one, "config": {"contract": {"enforced": True}}} for one in described]
    shop.file("models/contracts.yml", json.dumps({"models": enforced}))
    outcome = shop.try_dbt("run")
    told = {result.node.name: str(result.message) for result in outcome.result.results}
    failed = {result.node.name for result in outcome.result.results if str(result.status) != "success"}
    assert failed == {"wrong", "moved", "bare", "keyed_wrong", "named"}, told
    assert shop.sql("SELECT * FROM {s}.turned") == [("of a", "of b")]
    assert "missing in definition" in told["named"] or "missing in contract" in told["named"], told["named"]
    assert "This model has an enforced contract that failed" in told["keyed_wrong"]
    assert "the contract's type of the column a is not a Spark type: struct" in told["bare"]
    assert "struct<city:string,zip:int>" in told["wrong"]


def test_a_name_in_double_quotes_is_told_once_unless_it_is_one(shop: Shop) -> None:
    shop.model("people", "{{ config(materialized='table') }} select 1 as id, 'x' as name")
    shop.model("between", "{{ config(materialized='ephemeral') }} select * from {{ ref('people') }}")
    shop.model(
        "read", "select \"NAME\", id, 'a' as b from {{ ref('between') }} where id < 5 and 'b' <> \"name\""
    )
    shop.model("right", 'select id, "x" as kind from {{ ref(\'people\') }} where name = "name"')
    told = shop.fail("run", "--warn-error")
    assert told.count("AR-208") == 1
    assert "Spark reads NAME in double quotes as a string" in told
    assert "models/read.sql" in told
    shop.dbt("run")
    profile = shop.folder / "profiles.yml"
    target = yaml.safe_load(profile.read_text(encoding="utf-8"))
    conf = target["shop"]["outputs"]["dev"]["spark_conf"]
    conf["spark.sql.ansi.doubleQuotedIdentifiers"] = "true"
    profile.write_text(yaml.safe_dump(target), encoding="utf-8")
    shop.model("read", "select \"NAME\" from {{ ref('between') }}")
    shop.dbt("run", "--warn-error", "--select", "people", "read")
    assert shop.rows("people", "name") == [("x",)]


def test_a_catalog_that_only_spark_sees_is_refused_before_a_table_is_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a server, or the environment, defined the catalog in another way than the profile."""
    profile = (shop.folder / "profiles.yml").read_text(encoding="utf-8")
    shop.file("profiles.yml", profile.replace(f"{shop.schema}", f"{shop.schema}_unseen"))
    shop.model("kept", "{{ config(materialized='incremental') }} select 1 as id")
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedCatalog, "list_schemas", lambda self: [])
        told = shop.fail("run")
    assert (
        f"AR-101 Spark has created the schema lake.{shop.schema}_unseen, and dbt-arctic does not find it"
        in told
    )
    assert shop.catalog.list_relations(f"{shop.schema}_unseen") == []
    shop.dbt("run")
    shop.sql(f"DROP TABLE lake.{shop.schema}_unseen.kept PURGE")
    shop.sql(f"DROP SCHEMA lake.{shop.schema}_unseen")
