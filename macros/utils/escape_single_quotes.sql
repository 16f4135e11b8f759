{#- dbt-spark's macro does not escape backslashes, which begin an escape sequence in Spark -#}
{% macro arctic__escape_single_quotes(expression) -%}
  {{ return(expression | replace('\\', '\\\\') | replace("'", "\\'")) }}
{%- endmacro %}
