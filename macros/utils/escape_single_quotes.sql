{#- Escapes quotes and backslashes: dbt-spark's macro leaves backslashes, which begin an escape sequence in Spark -#}
{% macro arctic__escape_single_quotes(expression) -%}
  {{ return(expression | replace('\\', '\\\\') | replace("'", "\\'")) }}
{%- endmacro %}
