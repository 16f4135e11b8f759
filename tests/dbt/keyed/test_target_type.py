"""``target.type`` is ``spark`` in packages and ``arctic`` in the project, in whatever text dbt renders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.dbt.keyed.conftest import Shop

SEEN = (
    "{{ target.type }} {{ target['type'] }} {{ target.get('type') }} {{ dict(target).type }} {{ env.type }}"
)
LISTED = "{% for key, value in target.items() if key == 'type' %}{{ value }}{% endfor %}"
JSON = "{{ fromjson(tojson(target)).type }}"
BRANCHES = """
{% if target.type == 'arctic' %}arctic{% elif target.type == 'spark' %}spark{% endif %}
{% if target.type == 'spark' %}spark{% elif target.type == 'arctic' %}arctic{% endif %}
{% if target.type in ('bigquery', 'spark') %}spark{% elif target.type in ['arctic'] %}arctic{% endif %}
{% if target.type != 'spark' %}arctic{% else %}spark{% endif %}
{{ {'arctic': 'arctic', 'spark': 'spark'}[target.type] }}
"""
QUOTED = """
{% macro quoted(name) -%}
{% if target.type in ('bigquery', 'spark') %}`{{ name }}`{% else %}"{{ name }}"{% endif %}
{%- endmacro %}
"""
DISPATCHED = """
{% macro part() %}{{ return(adapter.dispatch('part', 'shared')()) }}{% endmacro %}
{% macro default__part() %}{{ target.type }}{% endmacro %}
{% macro other() %}{{ return(adapter.dispatch('other', 'shared')()) }}{% endmacro %}
{% macro default__other() %}not asked{% endmacro %}
"""
CITIES = (
    """
select id, {{ shared.quoted('city') }} as city, {{ quote_here('id') }} as same, '{{ named() }}' as by_project,
  '{{ var('kind') }}' as kind, '"""
    + f"{SEEN}{BRANCHES} {LISTED} {JSON}' as seen from {{{{ target.schema }}}}.raw_orders"
)
MINE = (
    """
{{ config(materialized='table') }}
select id, {{ shared.quoted('city') }} as city, '{{ shared.part() }}' as part,
  '{{ shared.other() }}' as other, '"""
    + f"{SEEN}{BRANCHES} {LISTED} {JSON}' as seen from {{{{ target.schema }}}}.raw_orders"
)
STARTED = "create or replace table {{ target.schema }}.by_NAME as select '{{ target.type }}' as t"
TEST = """{% test seen(model, expected, given) %}
select 1 as a where '{{ target.type }}' <> '{{ expected }}' or '{{ given }}' <> '{{ expected }}'
{% endtest %}"""
ENGINES = ("spark", "arctic")


def package(shop: Shop, name: str, files: dict[str, str], **project: Any) -> None:
    said = {"name": name, "version": "1.0", "config-version": 2, **project}
    shop.file(f"dbt_packages/{name}/dbt_project.yml", yaml.safe_dump(said))
    for path, text in files.items():
        shop.file(f"dbt_packages/{name}/{path}", text)


def project_with_packages(shop: Shop) -> None:
    """A root project ``shop``, a package ``feed`` with models, a package ``shared`` that both call."""
    shop.source("raw_orders", "select * from values (1, 'Bern'), (2, 'Rome') as t(id, city)")
    package(
        shop, "shared", {"macros/quoted.sql": QUOTED, "macros/part.sql": DISPATCHED, "macros/test.sql": TEST}
    )
    enabled = {name: {"+enabled": f"{{{{ target.type == '{name}' }}}}"} for name in ENGINES}
    models = {f"models/{name}/only_{name}.sql": "select 1 as a" for name in ENGINES}
    hook = {"+post-hook": "alter table {{ this }} set tblproperties ('hook' = '{{ target.type }}')"}
    file = {
        "version": 2,
        "models": [
            {
                "name": "cities",
                "description": "{{ target.type }}",
                "data_tests": [
                    {"shared.seen": {"arguments": {"expected": "spark", "given": "{{ target.type }}"}}}
                ],
            }
        ],
    }
    package(
        shop,
        "feed",
        {
            **models,
            "models/cities.sql": CITIES,
            "macros/here.sql": "{% macro quote_here(name) %}{{ return(shared.quoted(name)) }}{% endmacro %}"
            "{% macro named() %}{{ return(adapter.dispatch('named', 'feed')()) }}{% endmacro %}"
            "{% macro default__named() %}not asked{% endmacro %}",
            "models/schema.yml": yaml.safe_dump(file),
        },
        models={"feed": {**enabled, **hook, "+materialized": "table"}},
        vars={"kind": "{{ target.type }}"},
        **{"on-run-start": STARTED.replace("NAME", "feed")},
    )
    ours = {
        "name": "shop",
        "version": "1.0",
        "profile": "shop",
        "models": {"shop": {**hook, "+tags": ["{{ target.type }}"]}},
        "dispatch": [
            {"macro_namespace": name, "search_order": ["shop", name]} for name in ("shared", "feed")
        ],
        "on-run-start": STARTED.replace("NAME", "shop"),
    }
    shop.file("dbt_project.yml", yaml.safe_dump(ours))
    shop.file(
        "macros/ours.sql",
        "{% macro default__other() %}{{ target.type }}{% endmacro %}"
        "{% macro default__named() %}{{ target.type }}{% endmacro %}"
        "{% macro told() %}{{ log(target.type ~ ' ' ~ shared.part(), info=true) }}{% endmacro %}",
    )
    shop.model("mine", MINE)
    given = {"expected": "arctic", "given": "{{ target.type }}"}
    tests = [
        {"seen_here": {"arguments": given}},
        {"shared.seen": {"arguments": {"expected": "spark", "given": "spark"}}},
    ]
    mine = {"name": "mine", "description": "{{ target.type }}", "data_tests": tests}
    shop.file("models/mine.yml", yaml.safe_dump({"version": 2, "models": [mine]}))
    shop.file("macros/test.sql", TEST.replace("test seen", "test seen_here"))
    shop.file("tests/singular.sql", "select 1 as a where '{{ target.type }}' <> 'arctic'")


def test_packages_see_spark_and_the_project_sees_arctic(shop: Shop) -> None:
    project_with_packages(shop)
    built = {entry.node.name: entry for entry in shop.dbt("build").results}

    def seen(name: str, columns: str) -> list[tuple[Any, ...]]:
        return [(*row[:-1], *row[-1].split()) for row in shop.rows(name, columns)]

    # The package's model took Spark's branch in a macro of its own and in one of another package.
    assert seen("cities", "id, city, same, by_project, kind, seen") == [
        (number, city, number, "arctic", "spark", *["spark"] * 12)
        for number, city in ((1, "Bern"), (2, "Rome"))
    ]
    # A macro of the project that stands for one of a package is the project's code, and writes what it likes.
    assert seen("mine", "id, city, part, other, seen") == [
        (number, city, "spark", "arctic", *["arctic"] * 12) for number, city in ((1, "Bern"), (2, "Rome"))
    ]
    assert "only_spark" in built
    assert "only_arctic" not in built
    for name, type_ in (("cities", "spark"), ("mine", "arctic")):
        node = built[name].node
        assert node.description == type_
        assert shop.sql(f"SHOW TBLPROPERTIES {{s}}.{name} ('hook')") == [("hook", type_)]
    assert built["mine"].node.tags == ["arctic"]
    assert [shop.rows(name) for name in ("by_feed", "by_shop")] == [[("spark",)], [("arctic",)]]
    assert shop.dbt("run-operation", "told").results[0].status == "success"


def test_a_profile_may_show_packages_what_the_project_sees(shop: Shop) -> None:
    project_with_packages(shop)
    compile_ = ("compile", "--select", "package:feed", "mine")
    names = {entry.node.name for entry in shop.dbt(*compile_).results}
    assert "only_spark" in names

    profile = Path(shop.folder / "profiles.yml")
    said = yaml.safe_load(profile.read_text(encoding="utf-8"))
    said["shop"]["outputs"]["dev"]["packages_see_spark"] = False
    profile.write_text(yaml.safe_dump(said), encoding="utf-8")
    # What was parsed before is not kept.
    compiled = {entry.node.name: entry.node.compiled_code for entry in shop.dbt(*compile_).results}
    assert "only_arctic" in compiled
    assert '"city" as city' in compiled["cities"]
    assert '"city" as city' in compiled["mine"]
