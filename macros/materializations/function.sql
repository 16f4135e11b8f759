{#- Refuses a function, because Spark's error is less clear: docs/reference/compatibility.md -#}
{% macro arctic__scalar_function_sql(target_relation) -%}
  {%- do adapter.refuse_function(model) -%}
{%- endmacro %}
