{#
  The statements of one incremental run on a plain table, in order. They come from dbt's usual macros
  (get_incremental_append_sql and so on), so a project can override each, or add a strategy as
  get_incremental_<name>_sql.
#}
{% macro arctic__incremental_statements(strategy, arguments) -%}
  {%- if strategy == 'delete+insert' -%}
    {{ return([arctic__delete_sql(arguments), arctic__insert_sql(arguments)]) }}
  {%- endif -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {{ return([strategy_macro(arguments) | trim]) }}
{%- endmacro %}

{% macro arctic__get_incremental_append_sql(arguments) -%}
  {{ return(arctic__insert_sql(arguments)) }}
{%- endmacro %}

{#- The columns of the batch as the table stores them: Spark matches struct fields by position -#}
{% macro arctic__stored_columns(arguments) -%}
  {%- for column in arguments['dest_columns'] -%}
    {%- set value = (arguments.get('values') or {}).get(column.name | lower, column.quoted) -%}
    {{ value if value == column.quoted else value ~ ' as ' ~ column.quoted }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}

{#- The batch, or a query with its columns in the shape of the table: MERGE does not add missing struct fields -#}
{% macro arctic__batch_as_stored(arguments) -%}
  {%- set values = arguments.get('values') or {} -%}
  {%- set selected = [] -%}
  {%- set reshaped = [] -%}
  {%- for column in arguments['batch_columns'] -%}
    {%- set value = values.get(column.name | lower, column.quoted) -%}
    {%- if value != column.quoted -%}
      {%- do reshaped.append(column) -%}
    {%- endif -%}
    {%- do selected.append(value if value == column.quoted else value ~ ' as ' ~ column.quoted) -%}
  {%- endfor -%}
  {{ return('(select ' ~ selected | join(', ') ~ ' from ' ~ arguments['temp_relation'] ~ ')' if reshaped
      else arguments['temp_relation']) }}
{%- endmacro %}

{#- Not get_insert_into_sql: dbt-spark has a different macro of that name, with other arguments -#}
{% macro arctic__insert_sql(arguments) -%}
  {%- set columns = arguments['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  insert into {{ arguments['target_relation'] }} ({{ columns }})
  select {{ arctic__stored_columns(arguments) }}
  from {{ arguments['temp_relation'] }}
{%- endmacro %}

{% macro arctic__get_incremental_insert_overwrite_sql(arguments) -%}
  {%- set columns = arguments['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  {#- overwrites the partitions that the batch has rows for; Spark's default is the whole table -#}
  {%- set only_these = "with (`overwrite-mode` = 'dynamic') " if config.get('partition_by') else '' -%}
  insert overwrite {{ arguments['target_relation'] }} {{ only_these }}({{ columns }})
  select {{ arctic__stored_columns(arguments) }}
  from {{ arguments['temp_relation'] }}
{%- endmacro %}

{% macro arctic__get_incremental_merge_sql(arguments) -%}
  {{ return(get_merge_sql(arguments['target_relation'], arctic__batch_as_stored(arguments), arguments['unique_key'],
      arguments['dest_columns'], arguments['incremental_predicates'])) }}
{%- endmacro %}

{#- dbt's macro instead of dbt-spark's, which names no columns and needs the same ones on both sides -#}
{% macro arctic__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {#- it begins with the sql_header, which was already run -#}
  {%- set keys = [] -%}
  {%- for key in ([unique_key] if unique_key is string else unique_key or []) -%}
    {%- do keys.append(adapter.quote(key)) -%}
  {%- endfor -%}
  {%- set predicates = [] -%}
  {#- each on separate lines: it may end with a comment -#}
  {%- for predicate in incremental_predicates or [] -%}
    {%- do predicates.append('\n' ~ predicate ~ '\n') -%}
  {%- endfor -%}
  {%- set merge_sql = default__get_merge_sql(
      target, source, keys[0] if keys | length == 1 else keys, dest_columns, predicates) -%}
  {{ return(merge_sql.replace(config.get('sql_header') or '', '', 1)) }}
{%- endmacro %}

{% macro arctic__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns) -%}
  {%- set quoted = [] -%}
  {%- for column in ([merge_update_columns] if merge_update_columns is string else merge_update_columns or []) -%}
    {%- do quoted.append(adapter.quote(column)) -%}
  {%- endfor -%}
  {%- set excluded = [merge_exclude_columns] if merge_exclude_columns is string else merge_exclude_columns -%}
  {{ return(default__get_merge_update_columns(quoted or none, excluded, dest_columns)) }}
{%- endmacro %}

{% macro arctic__delete_sql(arguments) -%}
  {%- set keys = [arguments['unique_key']] if arguments['unique_key'] is string else arguments['unique_key'] -%}
  delete from {{ arguments['target_relation'] }} as DBT_INTERNAL_DEST
  where exists (
    select 1
    from {{ arctic__batch_as_stored(arguments) }} as DBT_INTERNAL_SOURCE
    where {% for key in keys -%}
      DBT_INTERNAL_DEST.{{ adapter.quote(key) }} = DBT_INTERNAL_SOURCE.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}
    {%- endfor %}
  )
  {%- for predicate in arguments['incremental_predicates'] or [] %}
    and (
    {{ predicate }}
    )
  {%- endfor -%}
{%- endmacro %}

{#- REPLACE WHERE accepts no list of columns: the query has those of the table, in the order of the table -#}
{% macro arctic__get_incremental_microbatch_sql(arguments) -%}
  {%- set produced = arguments['dest_columns'] | map(attribute='name') | map('lower') | list -%}
  insert into {{ arguments['target_relation'] }}
  replace where {{ arguments['condition'] }}
  select {% for column in arguments['target_columns'] -%}
    {{ (arguments.get('values') or {}).get(column.name | lower, column.quoted) if column.name | lower in produced else 'cast(null as ' ~ column.data_type ~ ') as ' ~ column.quoted }}{{ ', ' if not loop.last }}
  {%- endfor %}
  from {{ arguments['temp_relation'] }}
{%- endmacro %}

{% macro arctic__delete_interval_sql(arguments) -%}
  delete from {{ arguments['target_relation'] }}
  where {{ arguments['condition'] }}
{%- endmacro %}
