{#- A materialization of other adapters: an error that names what to use. -#}

{% materialization dynamic_table, adapter='arctic' %}
  {%- do adapter.refuse_materialization(model, 'dynamic_table') -%}
  {{ return({'relations': []}) }}
{% endmaterialization %}
