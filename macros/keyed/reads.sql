{#
  The merged rows of a keyed table: the query of its view, as a subquery. Automatic models recognise it. In a
  catalog without views, ref() is the same.

    select * from {{ merged(ref('orders')) }}
#}
{% macro merged(relation) -%}
  {{ return(adapter.merged(relation) if execute else relation) }}
{%- endmacro %}

{#
  The merged rows of a keyed table, as a subquery: now, or at a version that table_version() gave.

    select * from {{ merge_on_read(ref('orders'), version='1.7012851337734626201.3644935425924968914') }}
#}
{% macro merge_on_read(relation, version=none) -%}
  {%- if not execute -%}
    {{ return(relation) }}
  {%- endif -%}
  {{ return('(\n' ~ adapter.merge_on_read_sql(relation, version, model.name) ~ '\n)') }}
{%- endmacro %}

{# The base table only: the rows as of the last compaction, read as fast as any Iceberg table. #}
{% macro read_optimized(relation) -%}
  {%- if not execute -%}
    {{ return(relation) }}
  {%- endif -%}
  {{ return('(\n' ~ adapter.read_optimized_sql(relation) ~ '\n)') }}
{%- endmacro %}

{#
  The changes of a keyed table between two versions (`to` defaults to now), as a subquery with the columns
  of the table and `_action`: 'U' for a new or changed row, 'D' for a deleted row with its old values and,
  with images='both', '-U' for the old row of each changed or deleted key.
#}
{% macro changes(relation, from, to=none, images='after') -%}
  {%- if not execute -%}
    {{ return(relation) }}
  {%- endif -%}
  {{ return('(\n' ~ adapter.changes_sql(relation, from, to, images, model.name) ~ '\n)') }}
{%- endmacro %}

{# The current version of a keyed table, as a string for the macros above. #}
{% macro table_version(relation) -%}
  {{ return(adapter.table_version(relation) if execute else '') }}
{%- endmacro %}

{#
  The rows of a keyed table at a version: a result of table_version() or `dbt-arctic history`, the name of a
  savepoint, or a time (UTC by default). A column that was added later is NULL.

      select * from {{ at_version(ref('orders'), 'before-migration') }}
#}
{% macro at_version(relation, version) -%}
  {%- if not execute -%}
    {{ return(relation) }}
  {%- endif -%}
  {{ return('(\n' ~ adapter.at_version_sql(relation, version, model.name) ~ '\n)') }}
{%- endmacro %}

{# Like at_version, only for a time: '2026-01-31 12:00:00', UTC by default. #}
{% macro at_time(relation, time) -%}
  {%- if not execute -%}
    {{ return(relation) }}
  {%- endif -%}
  {{ return('(\n' ~ adapter.at_time_sql(relation, time | string, model.name) ~ '\n)') }}
{%- endmacro %}
