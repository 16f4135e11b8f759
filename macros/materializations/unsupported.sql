{#- Materializations of other adapters: an error that names what to use. -#}

{% materialization materialized_view, adapter='arctic' %}
  {%- do adapter.refuse_materialization(model, 'materialized_view') -%}
  {{ return({'relations': []}) }}
{% endmaterialization %}

{% materialization dynamic_table, adapter='arctic' %}
  {%- do adapter.refuse_materialization(model, 'dynamic_table') -%}
  {{ return({'relations': []}) }}
{% endmaterialization %}

{% materialization streaming_table, adapter='arctic' %}
  {%- do adapter.refuse_materialization(model, 'streaming_table') -%}
  {{ return({'relations': []}) }}
{% endmaterialization %}
