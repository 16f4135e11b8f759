{#- dbt-spark's leaves backslashes as they are, which Spark reads as the beginning of something else -#}
{% macro arctic__escape_single_quotes(expression) -%}
  {{ return(expression | replace('\\', '\\\\') | replace("'", "\\'")) }}
{%- endmacro %}
