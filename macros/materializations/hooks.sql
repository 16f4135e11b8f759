{#- Iceberg commits each statement, so no hook is inside a transaction; dbt's own would send `commit` first -#}
{% macro run_hooks(hooks, inside_transaction=True) -%}
  {%- for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) -%}
    {%- for hook_sql in adapter.split_statements(render(hook.get('sql'))) -%}
      {%- call statement(auto_begin=False) -%}
        {{ hook_sql }}
      {%- endcall -%}
    {%- endfor -%}
  {%- endfor -%}
{%- endmacro %}
