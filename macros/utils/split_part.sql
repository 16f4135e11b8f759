{#- Splits a string by another one: dbt-spark's macro splits by a pattern, and fails if the part does not exist -#}
{% macro arctic__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}
