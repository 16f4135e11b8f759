{#
  Every statement that dbt-arctic runs for a keyed table, for an incremental write on a branch or for a
  compaction passes through here. Override `keyed_statement` in a project to look at a step, or to change it.

  step:  its name, for instance 'upsert', 'fill_base', 'merge', 'trim' (docs/reference/models.md has all)
  sql:   the statement
  table: the keyed table (name, key, base, change, layout, columns), or none
#}
{% macro keyed_statement(step, sql, table=none) -%}
  {{ return(adapter.dispatch('keyed_statement', 'dbt')(step, sql, table)) }}
{%- endmacro %}

{% macro arctic__keyed_statement(step, sql, table) -%}
  {{ return(sql) }}
{%- endmacro %}
