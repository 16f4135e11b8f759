{#
  Whether the macros that write from hooks and operations may run. dbt also renders the hooks of a project for
  `dbt compile`, `dbt docs generate` and `dbt show`, which must not change a table.
#}
{% macro arctic__may_write() -%}
  {{ return(execute and flags.WHICH not in ('compile', 'generate', 'show', 'list', 'parse')) }}
{%- endmacro %}
