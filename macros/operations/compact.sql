{#
  Major compaction: merge pending changes into the base table.

      dbt run-operation compact                              every keyed table of the project
      dbt run-operation compact --args '{table: orders}'     one model

  trim_grace: seconds for which merged changes stay readable in the change table (default 600).
#}
{% macro compact(table=none, trim_grace=none) -%}
  {%- if arctic__may_write() -%}
    {%- set found = [] -%}
    {%- for node in graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') -%}
      {%- if table is none or node.name == table or node.alias == table -%}
        {%- set relation = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias) -%}
        {%- do found.extend(adapter.keyed_tables_of(relation)) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if table is not none and found | length == 0 -%}
      {%- do exceptions.raise_compiler_error(
        "compact: no model '" ~ table ~ "' of this project is a keyed table."
        ~ " Build it first (dbt run --select " ~ table ~ "), with materialized='incremental' and a unique_key.") -%}
    {%- endif -%}
    {%- for relation in found -%}
      {%- set result = adapter.compact_table(relation, trim_grace) -%}
      {%- do log(
        result.table ~ ': ' ~ result.outcome ~ ' (' ~ result.merged ~ (' commit' if result.merged == 1 else ' commits') ~ ' merged, '
        ~ (result.merged_rows ~ ' rows; ' if result.merged_rows is not none else '')
        ~ result.trimmed ~ ' trimmed, ' ~ result.pending ~ ' still in the change table)', info=true) -%}
    {%- endfor -%}
    {%- if found | length == 0 -%}
      {%- do log('compact: the project has no keyed table yet', info=true) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}
