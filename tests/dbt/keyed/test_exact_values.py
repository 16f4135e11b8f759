"""Plain tables and snapshots keep each value as it is and each field under its name, as keyed tables do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

import dbt_arctic
from dbt_arctic.errors import ArcticError
from tests.dbt.keyed.conftest import Shop, Terminal

ADDR = "struct<city:string,zip:string>"
PLACES = {
    "appended": "{{ config(materialized='incremental') }}",
    "merged": "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}",
    "replaced": "{{ config(materialized='incremental', incremental_strategy='delete+insert', "
    "unique_key='id') }}",
    "overwritten": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
    "partition_by='id') }}",
    "keyed": "{{ config(materialized='incremental', unique_key='id', buckets=1) }}",
    "widened": "{{ config(materialized='incremental', on_schema_change='append_new_columns') }}",
}
SNAPSHOT = """{% snapshot kept %}
{{ config(unique_key='id', strategy='timestamp', updated_at='at', schema=none, target_schema=target.schema) }}
select id, addr, at from {{ source('raw', 'raw_places') }}
{% endsnapshot %}"""


def place(key: int, city: str, zip_: str, *, swapped: bool = False) -> str:
    fields = [f"'city', '{city}'", f"'zip', '{zip_}'"]
    addr = f"named_struct({', '.join(fields[::-1] if swapped else fields)})"
    return (
        f"SELECT {key}L AS id, {addr} AS addr, array({addr}) AS many, map('home', {addr}) AS kinds, "
        f"timestamp'2024-01-0{key} 00:00:00' AS at"
    )


@pytest.fixture
def places(shop: Shop) -> Shop:
    shop.file(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {shop.schema}, "
        "tables: [{name: raw_places}, {name: raw_numbers}]}]",
    )
    return shop


def test_fields_in_another_order_keep_their_names_in_every_strategy(places: Shop) -> None:
    for name, config in PLACES.items():
        places.model(
            name, f"{config}\nselect id, addr, many, kinds from {{{{ source('raw', 'raw_places') }}}}"
        )
    places.file("snapshots/kept.sql", SNAPSHOT)
    places.source("raw_places", place(1, "Bern", "3000"))
    places.dbt("build")
    places.source("raw_places", place(2, "Rome", "0100", swapped=True))
    places.dbt("build")
    named = "id, addr.city, addr.zip, many[0].city, kinds['home'].zip"
    for name in PLACES:
        assert places.rows(name, named) == [
            (1, "Bern", "3000", "Bern", "3000"),
            (2, "Rome", "0100", "Rome", "0100"),
        ], name
    assert places.rows("kept", "id, addr.city, addr.zip") == [(1, "Bern", "3000"), (2, "Rome", "0100")]


def test_a_value_that_a_plain_column_would_change_fails_the_model_and_changes_nothing(places: Shop) -> None:
    for name, config in PLACES.items():
        places.model(name, f"{config}\nselect id, n from {{{{ source('raw', 'raw_numbers') }}}}")
    places.file(
        "snapshots/kept.sql",
        SNAPSHOT.replace("'timestamp', updated_at='at'", "'check', check_cols=['n']").replace(
            "select id, addr, at from {{ source('raw', 'raw_places') }}",
            "select id, n from {{ source('raw', 'raw_numbers') }}",
        ),
    )
    places.source("raw_numbers", "SELECT 1L AS id, 5 AS n")
    places.dbt("build")
    before = {name: places.rows(name) for name in (*PLACES, "kept")}
    places.source("raw_numbers", "SELECT 1L AS id, 10.7BD AS n")
    outcome = places.try_dbt("build")
    messages = [result.message for result in outcome.result]
    assert len(messages) == len(PLACES) + 1
    assert all(
        "AR-305" in one and "n is decimal(3,1) in the query and int in the table" in one for one in messages
    )
    assert {name: places.rows(name) for name in before} == before


def test_keys_are_compared_as_the_table_stores_them(places: Shop) -> None:
    names = ("merged", "replaced")
    for name in names:
        places.model(name, f"{PLACES[name]}\nselect id, n from {{{{ source('raw', 'raw_numbers') }}}}")
    places.source("raw_numbers", "SELECT * FROM VALUES ('007', 1), ('8', 1), ('abc', 1) AS t(id, n)")
    places.dbt("run")
    # As numbers, '007' is 7, and 'abc' is an error.
    places.source("raw_numbers", "SELECT * FROM VALUES (7, 2), (8, 2) AS t(id, n)")
    places.dbt("run")
    expected = [("007", 1), ("7", 2), ("8", 2), ("abc", 1)]
    assert {name: places.rows(name) for name in names} == dict.fromkeys(names, expected)


def test_a_number_that_does_not_fit_is_refused_without_ansi_mode_too(places: Shop) -> None:
    profile = places.folder / "profiles.yml"
    target = yaml.safe_load(profile.read_text(encoding="utf-8"))
    target["shop"]["outputs"]["dev"].setdefault("spark_conf", {})["spark.sql.ansi.enabled"] = "false"
    profile.write_text(yaml.safe_dump(target), encoding="utf-8")
    names = ("keyed", "merged", "replaced")
    for name in names:
        places.model(name, f"{PLACES[name]}\nselect id, n, s, m from {{{{ source('raw', 'raw_numbers') }}}}")
    row = {"id": "1", "n": "5", "s": "named_struct('d', 1.50BD)", "m": "map('a', array(5))"}

    def write(**values: str) -> None:
        columns = ", ".join(f"{value} AS {name}" for name, value in {**row, **values}.items())
        places.source("raw_numbers", f"SELECT {columns}")

    write()
    places.dbt("run")
    before = {name: places.rows(name) for name in names}
    large = {
        "id": "4294967297L",  # as an INT it would be the key 1
        "n": "3000000000L",
        "s": "named_struct('d', 12345.50BD)",
        "m": "map('a', array(3000000000L))",
    }
    for column, value in large.items():
        write(**{column: value})
        told = places.refusals("run")
        refused = names[1:] if column == "id" else names[:1]
        for name in refused:
            assert f"AR-305 the column {column} cannot store" in told[name]
        assert {name: places.rows(name) for name in names} == before
    write(id="1L", n="6L")
    places.dbt("run")
    assert [places.rows(name, "id, n") for name in names] == [[(1, 6)]] * 3


UNTYPED = {
    **{name: PLACES[name] for name in ("appended", "replaced", "keyed")},
    "partial": "{{ config(materialized='incremental', unique_key='id', buckets=1, "
    "merge_update_columns=['n', 's'], on_schema_change='sync_all_columns') }}",
    "strict": "{{ config(materialized='incremental', unique_key='id', buckets=1, on_schema_change='fail') }}",
    "sorted": "{{ config(materialized='incremental', unique_key='id', buckets=1, sort_by='n') }}",
}
VARIANT = "parse_json('[1]') as v"


def test_a_column_of_nothing_but_null_gets_the_type_of_its_first_value(places: Shop) -> None:
    for name, config in UNTYPED.items():
        places.model(
            name, f"{config}\nselect 1L as id, null as n, named_struct('a', 1, 'b', null) as s, {VARIANT}"
        )
    # What no table can store is refused, with the name and what to do.
    for name in ("lost", "lost_keyed"):
        config = PLACES["keyed"] if name == "lost_keyed" else PLACES["appended"]
        places.model(name, f"{config}\nselect 1L as id, named_struct('only', null) as nothing")
    places.model("lost_map", f"{PLACES['appended']}\nselect 1L as id, map() as m")
    places.dbt("run", "--select", *UNTYPED)
    told = places.refusals("run", "--select", "lost", "lost_keyed", "lost_map")
    for name in ("lost", "lost_keyed"):
        assert "cannot store nothing, because no field of this struct has a type" in told[name]
        assert "named_struct('a', cast(null as string))" in told[name]
    assert "cast(map() as map<string, string>)" in told["lost_map"]
    places.dbt("run", "--select", *UNTYPED)
    places.model("appended", f"{UNTYPED['appended']}\nselect 'x' as id, 'text' as n, null as s, {VARIANT}")
    assert "AR-305" in places.fail("run", "--select", "appended")
    for name, config in UNTYPED.items():
        places.model(
            name, f"{config}\nselect 2L as id, 1.5BD as n, named_struct('b', 'x', 'a', 2) as s, {VARIANT}"
        )
    told = places.refusals("run", "--select", "strict", "sorted")
    assert "n was void, is now decimal(2,1)" in told["strict"]
    assert "n had only NULL, and is now decimal(2,1)" in told["sorted"]
    assert "--full-refresh --select sorted" in told["sorted"]
    typed = [name for name in UNTYPED if name not in told]
    places.dbt("run", "--select", *typed)
    for name in typed:
        # Of a refused batch the column has nothing, not even its type.
        assert places.sql(f"SELECT DISTINCT typeof(n), typeof(s.b) FROM {{s}}.{name}") == [
            ("decimal(2,1)", "string")
        ], name
        first = [(1, None, 1, None)] * (2 if name == "appended" else 1)
        assert places.rows(name, "id, CAST(n AS STRING), s.a, s.b") == [*first, (2, "1.5", 2, "x")], name
    for name, config in UNTYPED.items():
        places.model(name, f"{config}\nselect 2L as id, null as n, null as s, {VARIANT}")
    places.dbt("run", "--select", *typed)
    assert places.rows("keyed", "id, n, s.a") == places.rows("partial", "id, n, s.a")
    assert places.rows("keyed", "id, n, s.a") == [(1, None, 1), (2, None, None)]


def test_the_remedy_for_a_value_of_a_column_without_a_type_can_be_followed(
    places: Shop, type_in: Terminal
) -> None:
    forms = {"keyed": "unique_key='id', buckets=1", "appended": "incremental_strategy='append'"}
    for name, config in forms.items():
        places.model(
            name, f"{{{{ config(materialized='incremental', {config}) }}}} select 1L as id, null as n"
        )
    places.dbt("run")
    folder = str(places.folder)
    batch = places.connection.session.sql("select 2L as id, 5 as n")

    def attempts() -> list[Callable[[], object]]:
        return [
            lambda: type_in("sql", "update keyed set n = 4 where id = 1", code=code),
            *(
                lambda name=name: dbt_arctic.append(name, batch, project_dir=folder, profiles_dir=folder)
                for name in forms
            ),
        ]

    code = 2
    says = [str(attempts()[0]())]
    for attempt in attempts()[1:]:
        with pytest.raises(ArcticError) as raised:
            attempt()
        says.append(str(raised.value))
    for said in says:
        words = " ".join(said.split())
        assert "AR-305" in words
        assert (
            "give n a type first: run the model of the table with on_schema_change='append_new_columns'"
            in words
        )
        assert "cast(null as int)" in words
    for name, config in forms.items():
        config += ", on_schema_change='append_new_columns'"
        places.model(
            name,
            f"{{{{ config(materialized='incremental', {config}) }}}} select 1L as id, cast(null as int) as n",
        )
    places.dbt("run")
    code = 0
    for attempt in attempts():
        attempt()
    assert places.rows("keyed") == [(1, 4), (2, 5)]
    assert places.rows("appended") == [(1, None), (1, None), (2, 5)]


@pytest.mark.parametrize("strategy", ["upsert", "merge"])
def test_a_type_that_does_not_fit_is_refused_before_other_columns_are_added(
    shop: Shop, strategy: str
) -> None:
    config = "materialized='incremental', unique_key='id', on_schema_change='append_new_columns'"
    if strategy == "merge":
        config += ", incremental_strategy='merge'"
    shop.model("numbers", f"{{{{ config({config}) }}}}\nselect 1 as id, 2 as n")
    shop.dbt("run")
    shop.model("numbers", f"{{{{ config({config}) }}}}\nselect 1 as id, 2.5BD as n, 'new' as more")
    assert "AR-305" in shop.fail("run")
    assert shop.rows("numbers") == [(1, 2)]


PREDICATES = ["DBT_INTERNAL_DEST.day >= date'2024-01-02' or DBT_INTERNAL_DEST.day is null -- or so"]


PARTIAL = {
    "excluded": ("incremental_strategy='merge', merge_exclude_columns=['qty']", ("2024-01-03", 20)),
    "excluded_text": ("incremental_strategy='merge', merge_exclude_columns='QTY'", ("2024-01-03", 20)),
    "updated": ("incremental_strategy='merge', merge_update_columns=['qty']", ("2024-01-02", 21)),
    "keyed": ("buckets=1, merge_exclude_columns=['qty']", ("2024-01-03", 20)),
}
"""Settings that keep some columns of a row, and what they leave of one that is replaced."""


def test_a_predicate_narrows_what_is_replaced_never_widens_it_and_columns_may_be_kept(places: Shop) -> None:
    """Predicates are given as a list or as a text."""
    places.source(
        "raw_numbers",
        "SELECT * FROM VALUES (1, 1, date'2024-01-01', 10), (2, 1, date'2024-01-02', 20), (3, 1, null, 30) "
        "AS t(shop, `the-line`, day, qty)",
    )
    models = {
        f"{strategy[:6]}_{form}": (strategy, given)
        for strategy in ("delete+insert", "merge")
        for form, given in (("list", PREDICATES), ("text", PREDICATES[0]))
    }
    # The table that a predicate reads does not exist when the first run checks it.
    models["of_itself"] = ("delete+insert", [f"qty in (select qty from {places.schema}.of_itself)"])
    for name, (strategy, given) in models.items():
        places.model(
            name,
            "{{ config(materialized='incremental', incremental_strategy='" + strategy + "', "
            f"unique_key=['shop', 'the-line'], incremental_predicates={given!r}) }}}}\n"
            "select * from {{ source('raw', 'raw_numbers') }}",
        )
    for name, (config, _) in PARTIAL.items():
        places.model(
            name,
            f"{{{{ config(materialized='incremental', unique_key=['shop', 'the-line'], {config}) }}}}\n"
            "select * from {{ source('raw', 'raw_numbers') }}",
        )
    places.dbt("run")
    places.source("raw_numbers", "SELECT 2 AS shop, 1 AS `the-line`, date'2024-01-03' AS day, 21 AS qty")
    places.dbt("run")
    for name in models:
        assert places.rows(name, "shop, qty") == [(1, 10), (2, 21), (3, 30)], name
    others = [(1, "2024-01-01", 10), (3, None, 30)]
    for name, (_, kept) in PARTIAL.items():
        rows = places.rows(name, "shop, cast(day as string), qty")
        assert rows == sorted([*others, (2, *kept)], key=repr), name


MISTAKES = {
    "unique_key": (
        "incremental_strategy='merge', unique_key='idd'",
        ["AR-302", "unique_key contains idd", "did you mean id"],
    ),
    "exclude": (
        "incremental_strategy='merge', unique_key='id', merge_exclude_columns=['m']",
        ["AR-301", "merge_exclude_columns contains m"],
    ),
    "keyed_update": (
        "unique_key='id', merge_update_columns=['nn']",
        ["AR-301", "merge_update_columns contains nn", "did you mean n?"],
    ),
    "update": (
        "incremental_strategy='delete+insert', unique_key='id', merge_update_columns=['n']",
        ["AR-301", "merge_update_columns has no effect on the strategy 'delete+insert'"],
    ),
    "exclude_and_update": (
        "incremental_strategy='merge', unique_key='id', merge_exclude_columns='n', merge_update_columns='n'",
        ["AR-301", "both merge_update_columns and merge_exclude_columns are set"],
    ),
    "exclude_all": (
        "incremental_strategy='merge', unique_key='id', merge_exclude_columns=['N', 'id']",
        ["AR-301", "merge_exclude_columns contains every column", "leave unique_key out"],
    ),
    "two_predicates": (
        "incremental_strategy='merge', unique_key='id', predicates='true', incremental_predicates='false'",
        ["AR-301", "both incremental_predicates and predicates are set"],
    ),
    "predicate_of_merge": (
        "incremental_strategy='merge', unique_key='id', predicates=['true', 'DBT_INTERNAL_DEST.m > 1']",
        [
            "AR-301",
            "predicates contains a condition",
            "rejects: DBT_INTERNAL_DEST.m > 1",
            "UNRESOLVED_COLUMN",
        ],
    ),
    "ambiguous_predicate": (
        "incremental_strategy='merge', unique_key='id', predicates=['n > 1 -- n']",
        ["AR-301", "predicates contains a condition", "AMBIGUOUS_REFERENCE", "DBT_INTERNAL_SOURCE. for"],
    ),
    "predicate_of_delete": (
        "incremental_strategy='delete+insert', unique_key='id', predicates='DBT_INTERNAL_SOURCE.n > 1'",
        ["AR-301", "predicates contains a condition", "only columns of the table"],
    ),
    "predicate_of_no_truth": (
        "incremental_strategy='delete+insert', unique_key='id', incremental_predicates=['n + 1']",
        ["AR-301", "incremental_predicates contains a condition", "n + 1", "BOOLEAN"],
    ),
    "schema_change": (
        "on_schema_change='sync'",
        ["AR-301", "on_schema_change is 'sync'", "sync_all_columns"],
    ),
    "schema_change_of_keyed": (
        "unique_key='id', on_schema_change='sync'",
        ["AR-301", "on_schema_change is 'sync'", "sync_all_columns"],
    ),
    "predicates": (
        "incremental_predicates=['n > 1']",
        ["AR-301", "incremental_predicates has no effect on the strategy 'append'"],
    ),
}


def test_a_mistake_in_a_setting_is_found_at_the_first_run(shop: Shop) -> None:
    for mistake, (config, _) in MISTAKES.items():
        shop.model(mistake, f"{{{{ config(materialized='incremental', {config}) }}}}\nselect 1 as id, 2 as n")
    told = shop.refusals("run")
    for mistake, (_, says) in MISTAKES.items():
        assert all(one in told[mistake] for one in says), told[mistake]
    assert shop.catalog.list_relations(shop.schema) == []


PARTITIONS = {"added": (None, "day"), "coarser": ("day", "month(day)"), "gone": ("day", None)}
"""What a model was partitioned by at first, and then."""


def test_an_overwrite_by_other_partitions_than_those_of_the_table_is_refused(places: Shop) -> None:
    def models(turn: int) -> None:
        for name, parts in PARTITIONS.items():
            places.model(
                name,
                "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
                f"partition_by={parts[turn]!r}) }}}}\n"
                "select day, n from {{ source('raw', 'raw_numbers') }}",
            )

    models(0)
    places.source(
        "raw_numbers", "SELECT * FROM VALUES (date'2024-01-01', 10), (date'2024-01-02', 20) AS t(day, n)"
    )
    places.dbt("run")
    before = {name: places.rows(name) for name in PARTITIONS}
    models(1)
    places.source("raw_numbers", "SELECT date'2024-01-02' AS day, 21 AS n")
    for name, told in places.refusals("run").items():
        assert "the table is partitioned by" in told, name
        assert "--full-refresh" in told, name
    assert {name: places.rows(name) for name in PARTITIONS} == before
    places.dbt("run", "--full-refresh")
    places.dbt("run")
    assert [[n for _, n in places.rows(name)] for name in PARTITIONS] == [[21]] * len(PARTITIONS)
