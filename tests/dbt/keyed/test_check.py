"""``dbt-arctic check``: a project on changing copies of its sources, automatic models compared with their
SQL.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dbt_arctic.adapter import checking
from dbt_arctic.adapter.check_report import CheckReport
from dbt_arctic.adapter.comparing import Compared, compare
from dbt_arctic.adapter.project import load_target
from dbt_arctic.adapter.target_session import target_session
from dbt_arctic.cli.main import main
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import load_keyed
from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.test_auto import layered
from tests.extent import extent

AUTO = "{{{{ config(materialized='incremental', incremental_strategy='auto', buckets=1, unique_key={}) }}}}\n"
ROUNDS = extent(1, 2)


def checked(shop: Shop, *arguments: str) -> Result:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    return CliRunner().invoke(main, ["check", *arguments, *folders])


def test_check_compares_every_model_with_its_whole_query_on_a_copy(shop: Shop) -> None:
    layered(shop)
    before = shop.rows("raw_orders"), shop.rows("by_customer")
    done = checked(shop, "--rounds", str(ROUNDS), "--seed", "1")
    assert done.exit_code == 0, done.output
    last = f"check: 2 models, 2 incremental, {counted(ROUNDS, 'round')}, 0 differences"
    assert done.output.splitlines()[-1] == last
    assert (shop.rows("raw_orders"), shop.rows("by_customer")) == before
    assert not [name for name in shop.catalog.list_schemas() if name.startswith(f"{shop.schema}_check")]
    dropped = [sql for sql in shop.script.ran if "DROP TABLE `lake`" in sql]
    assert dropped
    assert all(sql.endswith(" PURGE") for sql in dropped), dropped
    # What commands of ours know of the project is what dbt last did with it, not with its copy.
    assert f"{shop.schema}_check" not in (shop.folder / "target" / "manifest.json").read_text("utf-8")


def test_a_check_refuses_a_project_that_would_write_outside_of_the_copy(shop: Shop) -> None:
    layered(shop)
    before = shop.catalog.list_schemas()
    named = "{{ '" + shop.schema + "' if node.name == 'orders' else target.schema }}"
    shop.file("macros/schemas.sql", f"{{% macro generate_schema_name(name, node) %}}{named}{{% endmacro %}}")
    done = checked(shop)
    assert done.exit_code == 2, done.output
    assert f"model.shop.orders would be written to lake.{shop.schema}.orders" in done.output
    assert shop.catalog.list_schemas() == before


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ((), "no model is automatic"),
        (("rows",), "no automatic model is selected by rows"),
        (("typo",), "by typo"),
    ],
)
def test_a_check_that_would_compare_nothing_says_so_and_fails(
    shop: Shop, select: tuple[str, ...], words: str
) -> None:
    shop.model("rows", "select 1 as id")
    before = shop.catalog.list_schemas()
    done = checked(shop, *select)
    assert done.exit_code == 2, done.output
    assert words in done.output
    assert "dbt ls --select config.incremental_strategy:auto" in done.output
    assert shop.catalog.list_schemas() == before


def test_a_check_that_has_compared_nothing_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CheckReport(not_compared={"scores": "its rows come from Python"}, rounds=3)
    monkeypatch.setattr(checking, "check_project", lambda *_: done)
    told = checked(shop)
    assert told.exit_code == 2
    assert told.output.splitlines()[-2:] == [
        "scores was not compared: its rows come from Python",
        "check: 0 models, 0 incremental, 3 rounds, 0 differences",
    ]


LINES = """SELECT id div 4 AS order_id, id % 4 AS line, id div 2 % 16 AS event, id / 7D AS price,
    date_add(current_date(), CAST(id % 24 AS INT) - 10) AS due,
    TIMESTAMP'2026-01-01' + make_interval(0, 0, 0, 0, id % 5) AS at,
    CASE WHEN id % 6 > 0 THEN concat('note ', id % 6) END AS note FROM range(48)"""
SNAPSHOT = """{% snapshot events_kept %}
{{ config(unique_key='id', strategy='check', check_cols=['name'], target_schema=target.schema) }}
select id, name from {{ source('raw', 'raw_events') }}
{% endsnapshot %}"""
PROJECT = {
    "totals": AUTO.format("'order_id', auto={'accept': ['float_sum']}")
    + "select order_id, sum(price) as total, count(*) as lines "
    "from {{ source('raw', 'raw_orders') }} group by order_id",
    "overdue": AUTO.format("['order_id', 'line']")
    + "select order_id, line, note, at from {{ source('raw', 'raw_orders') }} where due <= current_date()",
    "named": AUTO.format("['order_id', 'line']")
    + """select l.order_id, l.line, e.name, p.name as place
    from {{ source('raw', 'raw_orders') }} l join {{ source('raw', 'raw_events') }} e on e.id = l.event
    left join {{ ref('places') }} p on p.id = l.event""",
    "kept": AUTO.format("'dbt_scd_id'")
    + "select dbt_scd_id, id, name, dbt_valid_to is null as now from {{ ref('events_kept') }}",
}


CHANGED = [
    ("raw_orders", ["order_id", "line"], ["event", "price", "due", "at", "note"]),
    ("raw_events", ["id", "code"], ["name"]),
]
"""What identifies a row of a source, or is unique as a test says, and what is to change."""


def project(shop: Shop) -> None:
    """A keyed source, one whose key is two columns, a seed, a snapshot; floats and the time."""
    keyed = "{{ config(materialized='incremental', unique_key='id', buckets=1) }} "
    shop.model(
        "raw_events", keyed + "select id, concat('event ', id % 3) as name, id * 1.5D as code from range(40)"
    )
    shop.dbt("run")
    (shop.folder / "models" / "raw_events.sql").unlink()
    shop.source("raw_orders", LINES)
    unique = {"name": "raw_events", "columns": [{"name": "code", "data_tests": ["unique"]}]}
    raw = {"name": "raw", "schema": shop.schema, "tables": [{"name": "raw_orders"}, unique]}
    shop.file("models/sources.yml", yaml.safe_dump({"version": 2, "sources": [raw]}))
    shop.file("seeds/places.csv", "id,name\n0,Ulm\n1,Bonn\n2,Kiel\n3,Jena\n")
    shop.file("snapshots/events_kept.sql", SNAPSHOT)
    for name, text in PROJECT.items():
        shop.model(name, text)


@pytest.mark.long
def test_a_check_follows_every_kind_of_source_and_finds_no_difference(shop: Shop) -> None:
    project(shop)
    done = checked(shop, "--rounds", "2", "--seed", "7", "--keep")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "check: 4 models, 4 incremental, 2 rounds, 0 differences", (
        done.output
    )
    # Rows came, went and changed everywhere, but for what identifies them.
    copy, aside = sorted(
        name for name in shop.catalog.list_schemas() if name.startswith(f"{shop.schema}_check")
    )
    assert aside == f"{copy}__aside"
    tables = [entry.name for entry in shop.catalog.list_names(copy)]
    for source, key, others in CHANGED:
        (table,) = [f"lake.{copy}.{name}" for name in tables if name == source]
        counted = ", ".join(f"count_if(NOT t.{name} <=> s.{name})" for name in others)
        rows, *changed = shop.sql(
            f"SELECT count(1), {counted} FROM {table} t JOIN {{s}}.{source} s USING ({', '.join(key)})"
        )[0]
        distinct = shop.sql(f"SELECT DISTINCT {', '.join(key)} FROM {table}")
        assert 0 < rows == len(distinct) == shop.sql(f"SELECT count(1) FROM {table}")[0][0]
        assert min(changed) > 0, changed
    assert shop.sql(f"SELECT count(1) FROM lake.{copy}.events_kept WHERE dbt_valid_to IS NOT NULL")[0][0] > 0
    seeded = set(shop.sql(f"SELECT id, name FROM lake.{copy}.places"))
    assert seeded != {(0, "Ulm"), (1, "Bonn"), (2, "Kiel"), (3, "Jena")}


WRONG = {
    "totals": "total = total * 1.0001",
    "overdue": "note = 'wrong'",
    "named": "place = 'wrong'",
    "kept": "now = NOT now",
}


def test_a_wrong_row_is_a_difference_also_where_floats_are_added_up_or_the_time_is_asked_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def falsified(session: Any, credentials: Any, node: Any) -> Compared:
        falsify(shop, node, WRONG[node.name])
        return compare(session, credentials, node)

    monkeypatch.setattr(checking, "compare", falsified)
    project(shop)
    done = checked(shop, "--rounds", "0")
    assert done.exit_code == 1, done.output
    told = [line.partition(" differs ")[0] for line in done.output.splitlines() if " differs " in line]
    assert sorted(told) == [f"round 0: {name}" for name in sorted(WRONG)]
    assert " 4 models, 0 incremental, 0 rounds, " in done.output.splitlines()[-1]


def falsify(shop: Shop, node: Any, values: str) -> None:
    """Change one stored row behind the model's back."""
    table = load_keyed(shop.catalog, Name("lake", node.schema, node.alias))
    base, key = table.base.sql, f"struct({', '.join(table.key)})"
    shop.sql(f"UPDATE {base} SET {values} WHERE {key} = (SELECT min({key}) FROM {base})")


MODELS = {
    "totals": PROJECT["totals"],
    "firsts": AUTO.format("'order_id', auto={'accept': ['order_dependent']}")
    + "select order_id, first(note) as note, count(*) as lines "
    "from {{ source('raw', 'raw_orders') }} group by order_id",
    "diced": AUTO.format("['order_id', 'line']")
    + "select order_id, line, rand() as dice, note from {{ source('raw', 'raw_orders') }}",
    "some": AUTO.format("['order_id', 'line']")
    + "select order_id, line, price from {{ source('raw', 'raw_orders') }} order by at limit 20",
    "headed": AUTO.format("['order_id', 'line']")
    + "{% call set_sql_header(config) %} set spark.sql.session.timeZone=Asia/Tokyo; "
    "declare variable factor int default 2; {% endcall %}"
    "select order_id, line, event * factor as event, cast(at as string) as at "
    "from {{ source('raw', 'raw_orders') }}",
    "hooked": AUTO.format(
        "['order_id', 'line'], pre_hook='create or replace temporary view three as select 3 as x'"
    )
    + "select order_id, line, x from {{ source('raw', 'raw_orders') }} join three",
}
CASES = [
    ("totals", "total = total * (1 + 1e-13)", "the last digits of total: sum() of floats"),
    ("totals", "lines = lines + 1", 1),
    ("firsts", "note = 'wrong'", "note: first() depends on the order"),
    ("firsts", "lines = lines + 1", 2),
    ("diced", "dice = 2", "dice: rand() gives"),
    ("diced", "note = 'wrong'", 2),
    ("some", "price = -1", "which rows there are: a LIMIT"),
    ("headed", "event = event", 0),
    ("headed", "at = 'wrong'", 2),
    ("hooked", "x = x", 0),
]


@pytest.mark.long
def test_what_is_not_determined_excuses_nothing_else(shop: Shop) -> None:
    shop.source("raw_orders", LINES)
    for name, text in MODELS.items():
        shop.model(name, text)
    shop.file(
        "models/made.py",
        "def model(dbt, session):\n"
        "    dbt.config(materialized='incremental', incremental_strategy='auto', unique_key='id')\n"
        "    return session.range(3)\n",
    )
    nodes = {entry.node.name: entry.node for entry in shop.dbt("run").results}
    target = load_target(shop.folder, shop.folder)
    with target_session(target, "check") as session:
        for name, values, expected in CASES:
            falsify(shop, nodes[name], values)
            found = compare(session, target.credentials, nodes[name])
            if isinstance(expected, int):
                assert (found.differing, found.open, found.not_compared) == (expected, 0, ""), (name, found)
            else:
                assert (found.differing, found.not_compared) == (0, ""), (name, found)
                assert found.open > 0
                assert found.why.startswith(expected), found.why
        made = compare(session, target.credentials, nodes["made"])
        assert made.not_compared == "its rows come from Python, and not from a query"


LOOKED_UP = """
{% macro looked_up(schema) %}{% set found = adapter.get_relation(target.database, schema, 'items') %}
{{ return(found if found else '(select 0 as id, 0 as n where false)') }}{% endmacro %}
"""
SWITCHED = {
    # By its name in the target's schema, and in another one.
    "by_name": "select id, n from {{ looked_up(target.schema) }}",
    "by_other": "select id, n from {{ looked_up('OTHER') }}",
    "by_file": "{{ config(materialized='table') }} "
    "select kind, count(*) as n from {{ source('raw', 'items') }} group by kind",
    "keyed": "{{ config(materialized='incremental', unique_key='id', delete_when='n < 3') }} "
    "select id, n from {{ source('raw', 'items') }} {% if is_incremental() %} where n > 100 {% endif %}",
    "unknown": "{{ config(materialized='view') }} select n from {{ source('raw', 'items') }}",
    "nothing": "select id, n from {{ source('raw', 'items') }} where id < 0",
    "breaks": "select id, cast(kind as int) as kind from {{ source('other', 'items') }} {{ broken() }}",
    "after": "select id, kind from {{ ref('breaks') }}",
}


def test_a_check_switches_models_goes_on_after_failures_and_tells_what_is_empty(shop: Shop) -> None:
    """Two sources of one name, one of them in a schema of its own."""
    other = f"{shop.schema}other"
    shop.sql(f"CREATE SCHEMA lake.{other}")
    shop.source("items", "SELECT id, id % 4 AS kind, id * 2 AS n FROM range(40)")
    shop.sql(
        f"CREATE TABLE lake.{other}.items USING iceberg AS SELECT id, id % 2 AS kind, id AS n FROM range(30)"
    )
    shop.file("macros/looked_up.sql", LOOKED_UP)
    # From the second build on, one model fails.
    shop.file(
        "macros/broken.sql",
        "{% macro broken() %}{% if adapter.get_relation(target.database, target.schema, 'breaks') %}"
        "where nowhere = 1{% endif %}{% endmacro %}",
    )
    named = {"columns": [{"name": "kind", "data_tests": ["unique"]}]}
    tables = [{"name": "items", "columns": [{"name": "id", "data_tests": ["unique"]}]}]
    sources = [
        {"name": "raw", "schema": shop.schema, "tables": tables},
        {"name": "other", "schema": other, "tables": tables},
    ]
    shop.file(
        "models/sources.yml",
        yaml.safe_dump({"version": 2, "sources": sources, "models": [{"name": "by_file", **named}]}),
    )
    for name, text in SWITCHED.items():
        automatic = AUTO.format("'id'") if "config" not in text else ""
        depends = "-- depends_on: {{ source('raw', 'items') }} {{ source('other', 'items') }}\n"
        shop.model(name, depends + automatic + text.replace("OTHER", other))
    before = shop.rows("items")

    done = checked(
        shop, "--rounds", str(ROUNDS), "--seed", "3", "--automatic", "by_file", "--automatic", "keyed unknown"
    )
    lines = done.output.splitlines()
    assert done.exit_code == 2, done.output
    last = f"check: 6 models, 4 incremental, {counted(ROUNDS, 'round')}, 0 differences, 2 failed"
    assert lines[-1] == last, done.output
    # Those that look their source up by its name have its rows.
    assert [line for line in lines if "empty" in line] == [
        "nothing was empty in every round and was not compared"
    ]
    assert {f"{name}: {ROUNDS} incremental" for name in ("by_file", "by_name", "by_other", "keyed")} < set(
        lines
    )
    assert any(line.startswith("round 1: breaks failed: Database Error in model breaks") for line in lines)
    assert any(line.startswith("round 1: after failed: skipped") for line in lines)
    assert (
        "unknown was not compared: it has no unique_key, and no test says which of its columns are unique"
        in lines
    )
    assert not [name for name in shop.catalog.list_schemas() if name.startswith(f"{shop.schema}_check")]
    assert shop.rows("items") == before
    shop.sql(f"DROP TABLE lake.{other}.items")
    shop.sql(f"DROP SCHEMA lake.{other}")
