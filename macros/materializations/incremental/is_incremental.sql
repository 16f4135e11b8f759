{#
  As dbt's own, and one thing more: what stands under the model's name must be of the kind that the model
  writes to. A plain table that is to become a keyed one (or the other way round) is built anew, from all rows.
#}
{% macro is_incremental() %}
  {%- if not execute or model.config.materialized != 'incremental' or should_full_refresh() -%}
    {{ return(False) }}
  {%- endif -%}
  {%- if adapter.incremental_strategy(model) == 'auto' -%}
    {#- always the whole query: what of it has to be computed is the adapter's business -#}
    {{ return(False) }}
  {%- endif -%}
  {%- set wanted = 'keyed' if adapter.writes_keyed(model) else 'table' -%}
  {#- a clone becomes what the model writes to, with the rows that it shows -#}
  {{ return(adapter.standing_kind(this) in (wanted, 'clone')) }}
{% endmacro %}
