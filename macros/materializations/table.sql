{# A table: replaced by each run, in one statement. #}
{% materialization table, adapter='arctic', supported_languages=['sql', 'python'] -%}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set grant_config = config.get('grants') -%}
  {%- do recover_swap(this) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- if model.language == 'python' -%}
    {%- call statement('python_model', language='python') -%}{{ compiled_code }}{%- endcall -%}
  {%- endif -%}
  {%- set model_sql = adapter.python_model_sql(model) if model.language == 'python' else compiled_code -%}

  {%- set kind = adapter.relation_kind(this) -%}
  {%- set in_the_way = kind not in ('table', none) -%}
  {#- `create or replace` keeps the properties of the old table -#}
  {%- do adapter.apply_properties(this, model, kind) -%}
  {%- if in_the_way -%}
    {#- built first, so that the name is free only during two renames and not during the whole build -#}
    {%- set new_relation = target_relation.incorporate(path={'identifier': this.identifier ~ '__arctic_new_' ~ adapter.swap_suffix()}) -%}
    {%- call statement('main') -%}
      {{ get_create_table_as_sql(False, new_relation, model_sql) }}
    {%- endcall -%}
    {%- set aside = make_way(this, 'table') -%}
    {%- do arctic__rename_relation(new_relation, target_relation) -%}
    {%- do drop_aside(aside) -%}
  {%- else -%}
    {%- call statement('main') -%}
      {{ get_create_table_as_sql(False, target_relation, model_sql) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do adapter.warn_of_many_files(target_relation, model) -%}
  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
