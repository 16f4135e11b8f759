{% materialization view, adapter='arctic' -%}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set grant_config = config.get('grants') -%}
  {%- do recover_swap(this) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set replaced = adapter.keyed_table(this) -%}
  {%- set aside = make_way(this, 'view') -%}
  {%- call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, sql) }}
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
