{#
  Like dbt's macro, with one more condition: the existing relation must be of the kind that the model writes
  to. A plain table that becomes a keyed one (or vice versa) is rebuilt from all rows.
#}
{% macro is_incremental() %}
  {%- if not execute or model.config.materialized not in ('incremental', 'streaming_table', 'materialized_view')
      or should_full_refresh() or adapter.is_rebuilt(model) -%}
    {{ return(False) }}
  {%- endif -%}
  {%- if adapter.incremental_strategy(model) == 'auto' -%}
    {#- always the whole query: the adapter decides which part of it is computed -#}
    {{ return(False) }}
  {%- endif -%}
  {%- set wanted = 'keyed' if adapter.writes_keyed(model) else 'table' -%}
  {#- a clone is converted to the kind that the model writes to, with the rows that it shows -#}
  {{ return(adapter.standing_kind(this) in (wanted, 'clone')) }}
{% endmacro %}
