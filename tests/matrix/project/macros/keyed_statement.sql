{#- The fault of the matrix: a step of a keyed table fails. -#}
{% macro arctic__keyed_statement(step, sql, table=none) -%}
  {%- if step == env_var('MATRIX_FAILS_AT', '') -%}
    {{ exceptions.raise_compiler_error('the matrix lets this step fail: ' ~ step) }}
  {%- endif -%}
  {{ return(sql) }}
{%- endmacro %}
