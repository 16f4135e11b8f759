{#- An incremental model that pulls. -#}
{% materialization streaming_table, adapter='arctic' -%}
  {{ return(materialization_incremental_arctic()) }}
{%- endmaterialization %}
