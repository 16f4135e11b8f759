{#- Joins strings in an order, which dbt-spark's macro ignores -#}
{% macro arctic__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set order -%}
    {%- if order_by_clause %} within group ({{ order_by_clause }}){% endif -%}
  {%- endset -%}
  {%- if limit_num -%}
    {#- joined by a character that strings do not contain (unit separator), then split and joined again -#}
    array_join(slice(split(listagg({{ measure }}, '\u001f'){{ order }}, '\u001f'), 1, {{ limit_num }}), {{ delimiter_text }})
  {%- else -%}
    listagg({{ measure }}, {{ delimiter_text }}){{ order }}
  {%- endif -%}
{%- endmacro %}
