{#
  An automatic model. A changed setting of its key or layout rebuilds the table, a changed table property is
  written into it; on_configuration_change: continue and fail do neither. A changed query is no changed
  setting: the refresh applies it.
#}
{% materialization materialized_view, adapter='arctic' -%}
  {%- do adapter.check_config(model) -%}
  {%- do recover_swap(this) -%}
  {%- set target_relation = this.incorporate(type='materialized_view') -%}
  {%- set action = adapter.materialized_view_action(this, model, should_full_refresh()) -%}
  {%- set found = 'Configuration changes were identified and `on_configuration_change` was set to `' ~ action ~ '` for `' ~ this ~ '`' -%}
  {%- if action == 'fail' -%}
    {%- do exceptions.raise_fail_fast_error(found) -%}
  {%- elif action == 'continue' -%}
    {%- do exceptions.warn(found) -%}
    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {%- call noop_statement('main', 'SKIP (configuration changed)', 'SKIP', 0) -%}
      -- nothing to do: on_configuration_change is continue, and settings of {{ this }} have changed
    {%- endcall -%}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {{ return({'relations': [target_relation]}) }}
  {%- elif action in ('replace', 'alter') -%}
    {%- do log('Applying ' ~ action | upper ~ ' to: ' ~ this) -%}
  {%- endif -%}
  {{ return(materialization_incremental_arctic()) }}
{%- endmaterialization %}
