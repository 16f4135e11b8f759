{#- dbt-spark's splits by a pattern, and fails where there is no such part -#}
{% macro arctic__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}
