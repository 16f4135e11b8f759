{# Creates, drops, renames and truncates relations, and sets their properties. #}
{% macro arctic__get_drop_sql(relation) -%}
  {%- if relation.is_view or relation.is_materialized_view -%}
    drop view if exists {{ relation.render() }}
  {%- else -%}
    drop table if exists {{ relation.render() }} purge
  {%- endif -%}
{%- endmacro %}

{% macro get_drop_sql(relation) -%}
  {{ return(adapter.dispatch('get_drop_sql', 'dbt')(relation)) }}
{%- endmacro %}

{% macro arctic__drop_relation(relation) -%}
  {%- set kind = adapter.relation_kind(relation) -%}
  {%- if kind == 'keyed' -%}
    {%- do adapter.drop_keyed(relation) -%}
  {%- else -%}
    {%- call statement('drop_relation', auto_begin=False) -%}
      {{ arctic__get_drop_sql(relation.incorporate(type='view') if kind == 'clone' else relation) }}
    {%- endcall -%}
  {%- endif -%}
  {%- do adapter.drop_rejected(relation) -%}
{%- endmacro %}

{% macro arctic__rename_relation(from_relation, to_relation) -%}
  {%- set record = adapter.record(from_relation) -%}
  {%- if record is not none -%}
    {#- in a catalog without views, a keyed table is renamed by its record -#}
    {%- set from_relation = record -%}
    {%- set to_relation = adapter.record_of(to_relation) -%}
  {%- endif -%}
  {%- call statement('rename_relation') -%}
    {#- Iceberg expects the new name of a table without the catalog -#}
    alter {{ 'view' if from_relation.is_view or from_relation.is_materialized_view or from_relation.is_keyed or from_relation.is_clone else 'table' }} {{ from_relation.render() }} rename to {{ to_relation.include(database=false).render() }}
  {%- endcall -%}
{%- endmacro %}

{% macro arctic__truncate_relation(relation) -%}
  {%- set statement_sql = 'delete from ' ~ relation.render() ~ ' where true' -%}
  {%- if adapter.relation_kind(relation) != 'table' -%}
    {#- a keyed table is a view with its own DELETE, which refuses any other view -#}
    {%- do adapter.keyed_sql(statement_sql) -%}
    {{ return('') }}
  {%- endif -%}
  {%- call statement('truncate_relation') -%}
    {{ statement_sql }}
  {%- endcall -%}
{%- endmacro %}

{#- Spark has temporary views but no temporary tables -#}
{% macro arctic__make_temp_relation(base_relation, suffix) -%}
  {{ return(api.Relation.create(identifier=base_relation.identifier ~ suffix, type='view')
      .include(database=false, schema=false)) }}
{%- endmacro %}

{% macro arctic__create_temporary_view(relation, compiled_code) -%}
  create or replace temporary view {{ relation }} as
  {{ compiled_code }}
{%- endmacro %}

{% macro arctic__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ arctic__create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {%- set header = arctic__run_sql_header() -%}
    {%- set compiled_code = arctic__contracted(compiled_code) -%}
    {#- a header may define what the query needs, and has not been run -#}
    {%- set columns = none if header | trim else adapter.new_table_columns(relation, compiled_code) -%}
    {{ header }}
    create {{ 'or replace ' if not relation.is_new }}table {{ relation }}
    using iceberg
    {{ arctic__partition_clause(columns) }}
    {{ arctic__comment_clause() }}
    {#- Iceberg's bounds leave out NaN, so filters by them would lose rows -#}
    {{ arctic__table_properties_clause(adapter.float_statistics(columns, config.get('tblproperties'))) }}
    as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}

{% macro arctic__partition_clause(columns) -%}
  {%- set fields = adapter.partition_fields(config.get('partition_by'), columns, model.name) -%}
  {%- if fields %}partitioned by ({{ fields | join(', ') }}){% endif -%}
{%- endmacro %}

{% macro arctic__comment_clause() -%}
  {%- if config.persist_relation_docs() and model.description %}comment {{ adapter.string_literal(model.description) }}{% endif -%}
{%- endmacro %}

{% macro arctic__table_properties_clause(more={}) -%}
  tblproperties ({% for name, value in dict(adapter.table_properties(config.get('tblproperties'), config.get('dbt_valid_to_current')), **more).items() -%}
    {{ adapter.string_literal(name) }} = {{ adapter.string_literal(value) }}{{ ', ' if not loop.last }}
  {%- endfor %})
{%- endmacro %}

{% macro arctic__create_view_as(relation, sql) -%}
  {#- a view is read later, so it must not contain the pinned versions of this run -#}
  {%- set sql = adapter.unpinned(sql) -%}
  {%- set header = arctic__run_sql_header() -%}
  {%- set contract_config = config.get('contract') -%}
  {%- if contract_config.enforced -%}
    {%- do get_assert_columns_equivalent(sql) -%}
  {%- endif -%}
  {%- set sql = adapter.view_query(sql) -%}
  {{ header }}
  create or replace view {{ relation }}
  {%- if config.persist_column_docs() %} {{ arctic__view_columns(sql) }}{% endif %}
  {{ arctic__comment_clause() }}
  {#- a replaced view keeps the properties of the old one, including those of a keyed table or a clone #}
  tblproperties ('arctic.protocol' = '', 'arctic.clone' = '')
  as
  {{ sql }}
{%- endmacro %}

{% macro arctic__view_columns(sql) -%}
  (
  {%- set columns = adapter.get_column_schema_from_query(sql) -%}
  {%- set documented = adapter.documented_columns(model, columns | map(attribute='name') | list) -%}
  {%- for column in columns -%}
    {{ column.quoted }}{% if documented.get(column.name) %} comment {{ adapter.string_literal(documented[column.name]) }}{% endif %}{{ ', ' if not loop.last }}
  {%- endfor -%}
  )
{%- endmacro %}
