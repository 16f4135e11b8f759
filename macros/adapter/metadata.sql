{# Schemas, listings, columns, tests and unit tests: what dbt asks an adapter for. #}
{% macro arctic__generate_database_name(custom_database_name=none, node=none) -%}
  {{ return(custom_database_name | trim if custom_database_name is not none else target.database) }}
{%- endmacro %}

{% macro arctic__list_schemas(database) -%}
  {{ return(adapter.list_schemas(database)) }}
{%- endmacro %}

{% macro arctic__check_schema_exists(information_schema, schema) -%}
  {{ return(adapter.check_schema_exists(information_schema.database, schema)) }}
{%- endmacro %}

{% macro arctic__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{% macro arctic__create_schema(relation) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ relation.without_identifier() }}
  {%- endcall -%}
  {%- do adapter.require_visible_schema(relation) -%}
{%- endmacro %}

{#- Iceberg cannot drop a schema that is not empty -#}
{% macro arctic__drop_schema(relation) -%}
  {%- for entry in adapter.list_everything(relation) -%}
    {%- call statement('drop_entry') -%}
      {{ get_drop_sql(entry) }}
    {%- endcall -%}
  {%- endfor -%}
  {%- call statement('drop_schema') -%}
    drop schema if exists {{ relation.without_identifier() }}
  {%- endcall -%}
{%- endmacro %}

{% macro arctic__current_timestamp() -%}
  current_timestamp()
{%- endmacro %}

{% macro arctic__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
    {%- if select_sql_header is not none -%}
    {{ select_sql_header }}
    {%- endif -%}
    select * from (
        {{ adapter.without_end(select_sql) }}
    ) as __dbt_sbq
    where false
    limit 0
{% endmacro %}

{% macro arctic__get_unit_test_sql(main_sql, expected_fixture_sql, expected_column_names) -%}
  {{ return(default__get_unit_test_sql(adapter.without_end(main_sql), expected_fixture_sql, expected_column_names)) }}
{%- endmacro %}

{% macro arctic__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {{ return(default__get_test_sql(adapter.without_end(main_sql), fail_calc, warn_if, error_if, limit)) }}
{%- endmacro %}

{#- By analysis: dbt's macro runs the query without rows -#}
{% macro arctic__get_columns_in_query(select_sql) -%}
  {{ return(adapter.get_column_schema_from_query(adapter.without_end(select_sql)) | map(attribute='name') | list) }}
{%- endmacro %}
