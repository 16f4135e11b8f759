{#- dbt-arctic's materializations refuse grants in their first step; this is for those of a project or package -#}
{% macro arctic__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {%- do adapter.refuse_grants(model) -%}
  {%- endif -%}
{%- endmacro %}
