{#
  The changes of an upstream since this model's last commit, as a subquery with the columns of the upstream
  and `_action`: 'U' (the current row) or 'D' (the key was deleted). On the first run and on a full refresh:
  every row, as 'U'. The rows are those of one pinned version, and the model's commit records that version,
  so that no change is skipped or read twice.

      select order_id, amount, _action from {{ incremental_pull(ref('orders')) }}

      images:     'both' adds, as '-U', the row of each changed or deleted key when this model last read it.
                  An aggregate needs it to recompute the group that a row has left.
      unique_key: only for an upstream that is a plain Iceberg table with updates or deletes.
#}
{% macro incremental_pull(relation, unique_key=none, images='after') -%}
  {{ return(adapter.dispatch('incremental_pull', 'dbt')(relation, unique_key, images)) }}
{%- endmacro %}

{% macro arctic__incremental_pull(relation, unique_key, images) -%}
  {%- set materialized = model.config.materialized -%}
  {%- if execute and model.resource_type == 'model' and materialized in ('view', 'ephemeral') -%}
    {%- do exceptions.raise_compiler_error(
      "incremental_pull() in the " ~ materialized ~ " model " ~ model.name ~ ": only a table can remember what it has read."
      ~ " Use materialized='incremental' with a unique_key, or ref() for all rows.") -%}
  {%- endif -%}
  {%- if not execute or relation.is_cte -%}
    {#- during parsing, and for the fixtures of a unit test -#}
    {{ return("(select *, 'U' as `_action` from " ~ relation ~ ")") }}
  {%- endif -%}
  {%- set partial = relation.limit is not none or relation.event_time_filter is not none -%}
  {%- if partial or invocation_args_dict.get('sample') -%}
    {%- do adapter.read_part(model, relation.external is not none) -%}
  {%- endif -%}
  {%- if partial and not relation.external -%}
    {#- --empty and --sample read only a part, so they consume nothing -#}
    {{ return("(select *, 'U' as `_action` from " ~ relation ~ ")") }}
  {%- endif -%}
  {#- in a run with --sample, other relations are sampled, and joins with them may lack rows -#}
  {%- set running = model.resource_type == 'model' and flags.WHICH in ('run', 'build', 'retry') and not invocation_args_dict.get('sample') -%}
  {%- if relation.external -%}
    {{ return('(\n' ~ arctic__pull_external(relation, running) ~ '\n)') }}
  {%- endif -%}
  {%- set sql = adapter.incremental_pull(relation, this, model, not is_incremental(), unique_key, images, running) -%}
  {#- readers of the compiled SQL see the upstream, and so does column lineage -#}
  {%- set text = relation | string -%}
  {#- comments of Spark nest -#}
  {%- set pulled = '' if '*/' in text or '/*' in text else ' /* incremental_pull(' ~ text ~ ') */' -%}
  {{ return('(' ~ pulled ~ '\n' ~ sql ~ '\n)') }}
{%- endmacro %}


{#-
  The rows of a source outside the catalog. Only a run consumes them. What needs no rows (`dbt compile`, `--empty`) starts no Spark.
-#}
{% macro arctic__pull_external(relation, running) -%}
  {%- set has_rows = relation.limit is none and flags.WHICH in ('run', 'build', 'retry', 'show', 'test') -%}
  {%- set filter = relation.event_time_filter -%}
  {%- set purpose = 'describe' if not has_rows else 'consume' if running and filter is none else 'read' -%}
  {%- set sql = adapter.pull_external(relation, this, model, not is_incremental(), purpose) -%}
  {%- if filter is not none -%}
    {%- set sql = 'SELECT *\nFROM (\n' ~ sql ~ '\n)\nWHERE ' ~ relation._render_event_time_filtered(filter) -%}
  {%- endif -%}
  {{ return(sql) }}
{%- endmacro %}
