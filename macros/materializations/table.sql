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
  {#- `create or replace` keeps the properties of the old table -#}
  {%- do adapter.apply_properties(this, model, kind, true) -%}
  {#- built first, so that the name is free only during two renames and not during the whole build -#}
  {%- set built = arctic__relation_to_build(target_relation, model_sql) -%}
  {%- call statement('main') -%}
    {{ get_create_table_as_sql(False, built, model_sql) }}
  {%- endcall -%}
  {%- do arctic__put_in_place(built, target_relation) -%}

  {%- do adapter.warn_of_many_files(target_relation, model) -%}
  {%- do apply_grants(target_relation, grant_config, should_revoke=True) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
