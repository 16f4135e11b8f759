{% macro arctic__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}

{% macro arctic__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- if add_columns -%}
    {%- call statement('add_columns') -%}
      alter table {{ relation.render() }} add columns (
      {%- for column in add_columns -%}{{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}{%- endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement('drop_columns') -%}
      alter table {{ relation.render() }} drop columns (
      {%- for column in remove_columns -%}{{ column.quoted }}{{ ', ' if not loop.last }}{%- endfor -%}
      )
    {%- endcall -%}
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
  {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
  {%- for name in column_dict if name in existing and column_dict[name].description -%}
    {%- call statement('comment_column') -%}
      alter table {{ relation.render() }} alter column {{ adapter.quote(name) }} comment {{ adapter.string_literal(column_dict[name].description) }}
    {%- endcall -%}
  {%- endfor -%}
{%- endmacro %}

{#- Comments of views are written when the view is; those of a keyed table when its view is published -#}
{% macro arctic__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if for_columns and config.persist_column_docs() and model.columns and not relation.is_view and not relation.is_keyed -%}
    {%- do arctic__alter_column_comment(relation, model.columns) -%}
  {%- endif -%}
{%- endmacro %}
