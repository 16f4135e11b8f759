{#-
  Writes descriptions that have changed into the catalog, as comments: most runs change none and run no
  statement.
-#}
{% macro arctic__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- set for_relation = for_relation and config.persist_relation_docs() -%}
  {%- set for_columns = for_columns and config.persist_column_docs() -%}
  {%- set docs = adapter.changed_docs(relation, model, for_relation, for_columns) -%}
  {%- if docs.missing -%}
    {%- do exceptions.warn(
      "In relation " ~ relation.render() ~ ": The following columns are specified in the schema but are not present in the database: "
      ~ docs.missing | join(", ")) -%}
  {%- endif -%}
  {%- if (for_relation or for_columns) and not adapter.describe_keyed(relation, model, for_relation, for_columns) -%}
    {%- if docs.comment is not none -%}
      {%- call statement('comment_relation') -%}
        {{ alter_relation_comment(relation, docs.comment) }}
      {%- endcall -%}
    {%- endif -%}
    {#- the comments of a view are written with the view -#}
    {%- if docs.columns and not relation.is_view -%}
      {%- call statement('comment_columns') -%}
        {{ alter_column_comment(relation, docs.column_dict) }}
      {%- endcall -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{% macro arctic__alter_relation_comment(relation, relation_comment) -%}
  {%- if relation.is_view -%}
    alter view {{ relation.render() }} set tblproperties ('comment' = {{ adapter.string_literal(relation_comment) }})
  {%- else -%}
    comment on table {{ relation.render() }} is {{ adapter.string_literal(relation_comment) }}
  {%- endif -%}
{%- endmacro %}

{% macro arctic__alter_column_comment(relation, column_dict) -%}
  alter table {{ relation.render() }} alter column
  {%- for name in column_dict %}
    {{ adapter.quote(name) }} comment {{ adapter.string_literal(column_dict[name].description) }}{{ ',' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}
