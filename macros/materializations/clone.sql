{#
  A clone is a view over its source, without files of its own. Iceberg on Spark cannot safely copy a table
  without its files: a second table over the same files breaks when the first one expires or drops them. A
  clone of a table is marked with a property, and dbt treats it as a table: its first write converts it to
  one, with the rows that it shows.
#}
{% materialization clone, adapter='arctic' -%}
  {%- if not defer_relation -%}
    {%- do log('No relation found in state manifest for ' ~ model.unique_id, info=true) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- do recover_swap(this) -%}
  {%- if adapter.relation_kind(this) is not none and not flags.FULL_REFRESH -%}
    {%- do log('Relation ' ~ this ~ ' already exists', info=true) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set property = adapter.clone_property(defer_relation, model) -%}
  {%- if this.render() == defer_relation.render() -%}
    {%- do log('Target relation and defer relation are the same, skipping clone for relation: ' ~ this.render()) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- do adapter.require_views(this, model, 'a clone') -%}
  {%- set target_relation = this.incorporate(type='table' if property and can_clone_table() else 'view') -%}
  {%- set replaced = adapter.keyed_table(this) -%}
  {%- set aside = make_way(this, 'view') -%}
  {%- call statement('main') -%}
    {{ arctic__create_clone(target_relation, defer_relation, '' if target_relation.is_view else property) }}
  {%- endcall -%}
  {%- do drop_aside(aside) -%}
  {%- if replaced is not none -%}
    {%- do adapter.drop_side_tables(replaced) -%}
  {%- endif -%}
  {%- do adapter.empty_file_lists(this) -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=True) -%}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}

{% macro arctic__can_clone_table() -%}
  {{ return(True) }}
{%- endmacro %}

{% macro arctic__create_clone(relation, source, property) -%}
  create or replace view {{ relation }}
  {{ arctic__comment_clause() }}
  {#- a replaced view keeps its other properties -#}
  tblproperties ('arctic.protocol' = '', 'arctic.materialized-view' = '', 'arctic.clone' = {{ adapter.string_literal(property) }})
  as
  {{ adapter.view_query('select * from ' ~ source) }}
{%- endmacro %}

{# Convert a clone to a separate table, keyed or plain, before its first write. #}
{% macro arctic__own_the_clone(target_relation, keyed) -%}
  {%- set rows = adapter.cloned_rows(this, model) -%}
  {%- if keyed -%}
    {%- do adapter.build_keyed_from_clone(this, model, rows) -%}
  {%- else -%}
    {%- set built = arctic__new_relation(target_relation) -%}
    {%- set columns = adapter.new_table_columns(built, rows.sql) -%}
    {#- not create_table_as, which is for the model's own rows: its contract may not hold for these rows -#}
    {%- set statement_sql -%}
      create table {{ built }}
      using iceberg
      {{ arctic__partition_clause(columns) }}
      {{ arctic__comment_clause() }}
      {{ arctic__table_properties_clause(dict(adapter.float_statistics(columns, config.get('tblproperties')), **{'arctic.clone': rows.clone_property})) }}
      as
      {{ rows.sql }}
    {%- endset -%}
    {%- do adapter.build_plain_from_clone(model, rows, statement_sql) -%}
    {%- do arctic__put_in_place(built, target_relation) -%}
  {%- endif -%}
{%- endmacro %}
