{# A view: replaced by each run, in one statement. #}
{% materialization view, adapter='arctic' -%}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set grant_config = config.get('grants') -%}
  {%- do recover_swap(this) -%}
  {%- do adapter.require_views(this, model, 'a view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set replaced = adapter.keyed_table(this) -%}
  {%- set create_sql = get_create_view_as_sql(target_relation, sql) -%}
  {%- if adapter.relation_kind(this) not in ('view', none) -%}
    {#- errors in the query are found while the old relation still exists -#}
    {%- do adapter.get_column_schema_from_query(adapter.unpinned(sql)) -%}
  {%- endif -%}
  {%- set aside = make_way(this, 'view') -%}
  {%- call statement('main') -%}
    {{ create_sql }}
  {%- endcall -%}
  {%- do drop_aside(aside) -%}
  {%- if replaced is not none -%}
    {%- do adapter.drop_side_tables(replaced) -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
