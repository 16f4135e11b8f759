{# Adds, drops and changes columns of a table. #}
{% macro arctic__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}

{% macro arctic__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- if add_columns -%}
    {%- call statement('add_columns') -%}
      alter table {{ relation.render() }} add columns (
      {%- for column in add_columns -%}{{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}{%- endfor -%}
      )
    {%- endcall -%}
    {%- set statistics = adapter.leave_float_statistics_out(relation, add_columns) -%}
    {%- if statistics -%}
      {%- call statement('set_properties') -%}{{ statistics }}{%- endcall -%}
    {%- endif -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement('drop_columns') -%}
      alter table {{ relation.render() }} drop columns (
      {%- for column in remove_columns -%}{{ column.quoted }}{{ ', ' if not loop.last }}{%- endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
{%- endmacro %}

{# dbt's macro compares names case-sensitively, and types as in the query. #}
{% macro arctic__check_for_schema_changes(source_relation, target_relation) -%}
  {%- set changes = adapter.schema_changes(
      adapter.get_columns_in_relation(source_relation), adapter.get_columns_in_relation(target_relation)) -%}
  {%- do log('In ' ~ target_relation ~ ': new columns ' ~ changes.source_not_in_target ~ ', columns that are gone '
      ~ changes.target_not_in_source ~ ', other types ' ~ changes.new_target_types) -%}
  {{ return(changes) }}
{%- endmacro %}
