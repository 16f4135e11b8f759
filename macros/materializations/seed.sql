{#
  A seed is replaced in one atomic statement, even if its columns change: the rows are staged as strings in
  a temporary view, then cast. A reader sees either the old or the new rows, even if a value cannot be cast.
#}
{% materialization seed, adapter='arctic' -%}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set grant_config = config.get('grants') -%}
  {#- dbt's reader keeps a column as a string if its name is in column_types exactly as in the file -#}
  {%- set column_types = adapter.seed_column_types(model) -%}
  {%- do config.get('column_types').clear() -%}
  {%- do config.get('column_types').update(column_types) -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {%- do recover_swap(this) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set kind = adapter.relation_kind(this) -%}
  {%- do adapter.apply_properties(this, model, kind, true) -%}
  {%- set staged = make_temp_relation(this, '__dbt_seed') -%}
  {%- do adapter.stage_seed(staged, agate_table) -%}
  {%- set seed_sql = arctic__seed_select(staged, agate_table) -%}
  {%- set built = arctic__relation_to_build(target_relation, seed_sql) -%}
  {%- call statement('main') -%}
    {{ get_create_table_as_sql(False, built, seed_sql) }}
  {%- endcall -%}
  {%- do arctic__put_in_place(built, target_relation) -%}

  {%- do adapter.warn_of_many_files(target_relation, model) -%}
  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}

{# The staged strings as the columns of the seed: the types that agate inferred, or those of column_types. #}
{% macro arctic__seed_select(staged, agate_table) -%}
  {%- set column_types = config.get('column_types') or {} -%}
  {%- set quote_columns = config.get('quote_columns') -%}
  select
  {%- for name in agate_table.column_names %}
    {{ adapter.seed_value(model, name, column_types.get(name, adapter.convert_type(agate_table, loop.index0)), agate_table.columns[loop.index0].values()) }} as {{ adapter.quote_seed_column(name, quote_columns) }}{{ ',' if not loop.last }}
  {%- endfor %}
  from {{ staged }}
  {%- if flags.EMPTY %}
  where false
  {%- endif %}
{%- endmacro %}
