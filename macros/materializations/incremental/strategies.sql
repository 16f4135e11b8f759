{#
  The statements of one incremental run on a plain table, in order. dbt's usual macros
  (get_incremental_append_sql and so on) make them, so a project can override each, or add
  a strategy of its own as get_incremental_<name>_sql.
#}
{% macro arctic__incremental_statements(strategy, arguments) -%}
  {%- if strategy == 'delete+insert' -%}
    {{ return([arctic__delete_sql(arguments), get_insert_into_sql(arguments['target_relation'], arguments['temp_relation'], arguments['dest_columns'])]) }}
  {%- endif -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {{ return([strategy_macro(arguments) | trim]) }}
{%- endmacro %}

{% macro arctic__get_incremental_append_sql(arguments) -%}
  {{ return(get_insert_into_sql(arguments['target_relation'], arguments['temp_relation'], arguments['dest_columns'])) }}
{%- endmacro %}

{% macro arctic__get_incremental_insert_overwrite_sql(arguments) -%}
  {%- set columns = arguments['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  insert overwrite {{ arguments['target_relation'] }} ({{ columns }})
  select {{ columns }}
  from {{ arguments['temp_relation'] }}
{%- endmacro %}

{% macro arctic__get_incremental_merge_sql(arguments) -%}
  {{ return(get_merge_sql(arguments['target_relation'], arguments['temp_relation'], arguments['unique_key'],
      arguments['dest_columns'], arguments['incremental_predicates'])) }}
{%- endmacro %}

{% macro arctic__delete_sql(arguments) -%}
  {%- set keys = [arguments['unique_key']] if arguments['unique_key'] is string else arguments['unique_key'] -%}
  delete from {{ arguments['target_relation'] }} as DBT_INTERNAL_DEST
  where exists (
    select 1
    from {{ arguments['temp_relation'] }} as DBT_INTERNAL_SOURCE
    where {% for key in keys -%}
      DBT_INTERNAL_DEST.{{ adapter.quote(key) }} = DBT_INTERNAL_SOURCE.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}
    {%- endfor %}
  )
  {%- for predicate in arguments['incremental_predicates'] or [] %}
    and {{ predicate }}
  {%- endfor -%}
{%- endmacro %}
