{#-
  Runs hooks, each statement as a commit of its own: Iceberg has no transactions around several statements, and
  dbt's macro would send `commit` first.
-#}
{% macro run_hooks(hooks, inside_transaction=True) -%}
  {%- set kind = 'pre-hook' if hooks is sameas pre_hooks else ('post-hook' if hooks is sameas post_hooks else 'hook') -%}
  {%- for hook in hooks -%}
    {%- if hook.transaction == inside_transaction -%}
      {%- do adapter.run_hook(render(hook.get('sql')), kind ~ ' ' ~ loop.index ~ ' of ' ~ model.name) -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}
