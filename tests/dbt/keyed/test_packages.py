"""What dbt-utils finds in this adapter, by a package of its name that dispatches as it does."""

from __future__ import annotations

import yaml

from tests.dbt.keyed.conftest import Shop

MACRO = """
{{% macro {name}({parameters}) %}}
  {{{{ return(adapter.dispatch('{name}', 'dbt_utils')({arguments})) }}}}
{{% endmacro %}}
{{% macro default__{name}({arguments}) %}}{default}{{% endmacro %}}
"""
RECOMPUTED = "{{ exceptions.raise_compiler_error('the default was asked') }}"
# As Elementary makes a temporary relation for dbt-spark.
SCRATCH = """
{% macro rows_by_scratch(relation) %}
  {% if not execute %}{{ return(0) }}{% endif %}
  {% set scratch = relation.incorporate(path={"schema": none, "identifier": relation.identifier ~ "__tmp"}) %}
  {% do run_query(dbt.create_table_as(true, scratch, "select count(*) as n from " ~ relation)) %}
  {{ return(run_query("select n from " ~ scratch).columns[0].values()[0]) }}
{% endmacro %}
"""
PATTERN = "table_pattern, exclude='', database=target.database"
MACROS = {
    "get_relations_by_pattern": (f"schema_pattern, {PATTERN}", RECOMPUTED),
    "get_relations_by_prefix": (f"schema_pattern, {PATTERN}", RECOMPUTED),
    "get_tables_by_pattern_sql": (f"schema_pattern, {PATTERN}", RECOMPUTED),
    "deduplicate": ("relation, partition_by, order_by", RECOMPUTED),
    "unpivot": (
        "relation=none, cast_to='varchar', exclude=none, remove=none, field_name='field_name', "
        "value_name='value', quote_identifiers=False",
        "select cast(id as {{ cast_to }}) as {{ value_name }} from {{ relation }}",
    ),
    "star": ("relation", "select * from {{ relation }}"),
}


def package(shop: Shop) -> None:
    text = ""
    for name, (parameters, default) in MACROS.items():
        arguments = ", ".join(part.split("=")[0] for part in parameters.split(", "))
        text += MACRO.format(name=name, parameters=parameters, arguments=arguments, default=default)
    shop.file("dbt_packages/dbt_utils/macros/all.sql", text + SCRATCH)
    project = {"name": "dbt_utils", "version": "1.0", "macro-paths": ["macros"]}
    shop.file("dbt_packages/dbt_utils/dbt_project.yml", yaml.safe_dump(project))


def test_macros_that_fail_or_lose_rows_on_spark_are_answered_here(shop: Shop) -> None:
    package(shop)
    columns = "id, cast(amount as int) amount, note"
    rows = "values (1L, 10, null), (1L, 20, 'b'), (2L, null, null) as t(id, amount, note)"
    shop.source("raw_orders", f"select {columns} from {rows}")
    shop.model("orders_view", "{{ dbt_utils.star(source('raw', 'raw_orders')) }}")
    shop.model(
        "orders_keyed",
        "{{ config(materialized='incremental', unique_key='id') }} "
        "{{ dbt_utils.deduplicate(source('raw', 'raw_orders'), 'id', 'amount') }}",
    )
    shop.model("counted", "select {{ dbt_utils.rows_by_scratch(source('raw', 'raw_orders')) }} as n")
    shop.model("texts", "{{ dbt_utils.unpivot(source('raw', 'raw_orders')) }}")
    after = "-- depends_on: {{ ref('orders_view') }}, {{ ref('orders_keyed') }}\n"
    table = "{{ config(materialized='table') }}"
    query = "{{ dbt_utils.get_tables_by_pattern_sql(SCHEMA, '%ORDERS%', 'raw%') }}"
    shop.model("queried", after + table + query.replace("SCHEMA", "target.schema ~ '%'"))
    shop.model("nothing", table + query.replace("SCHEMA", "'nowhere'"))
    shop.model(
        "listed",
        f"{after}{table}select '' as name, true as keyed where false"
        "{% for found in dbt_utils.get_relations_by_prefix(target.schema, 'orders') "
        "+ dbt_utils.get_relations_by_pattern(target.schema, 'raw%') %}"
        " union all select '{{ found.identifier }}', {{ found.is_keyed }}{% endfor %}",
    )
    shop.dbt("run")

    assert shop.rows("orders_view") == [(1, 10, None), (1, 20, "b"), (2, None, None)]
    assert shop.rows("orders_keyed") == [(1, 10, None), (2, None, None)]
    assert shop.rows("counted") == [(3,)]
    assert shop.rows("texts") == [("1",), ("1",), ("2",)]
    # The side tables of a keyed table are not listed, and it is a table.
    assert shop.rows("queried") == [
        (shop.schema, "orders_keyed", "table"),
        (shop.schema, "orders_view", "view"),
    ]
    assert shop.rows("listed") == [("orders_keyed", True), ("orders_view", False), ("raw_orders", False)]
    assert shop.rows("nothing") == []


def test_another_catalog_is_not_listed_as_if_it_were_empty(shop: Shop) -> None:
    package(shop)
    shop.model(
        "listed", "{% do dbt_utils.get_relations_by_pattern('x', '%', database='other') %} select 1 as a"
    )
    assert "AR-301" in shop.fail("run")
