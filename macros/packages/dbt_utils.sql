{#
  Macros of dbt-utils whose default implementation fails on Spark or returns wrong results. They are found
  because the adapter adds itself to the package's dispatch: docs/how-to/use-dbt-utils.md.
#}

{#- Spark has no information_schema. The catalog is read instead, without a statement -#}
{% macro arctic__get_relations_by_pattern(schema_pattern, table_pattern, exclude, database) -%}
  {{ return(adapter.relations_by_pattern(schema_pattern, table_pattern, exclude, database)) }}
{%- endmacro %}

{% macro arctic__get_relations_by_prefix(schema, prefix, exclude, database) -%}
  {{ return(adapter.relations_by_pattern(schema, prefix ~ '%', exclude, database)) }}
{%- endmacro %}

{#- For projects that use the query itself; the empty row defines the types if there are no relations -#}
{% macro arctic__get_tables_by_pattern_sql(schema_pattern, table_pattern, exclude, database) %}
  select table_schema, table_name, table_type
  from values
    ('', '', '')
    {%- for relation in adapter.relations_by_pattern(schema_pattern, table_pattern, exclude, database) %},
    ({{ adapter.string_literal(relation.schema) }}, {{ adapter.string_literal(relation.identifier) }}, {{ adapter.string_literal(relation.type) }})
    {%- endfor %}
    as found(table_schema, table_name, table_type)
  where table_name <> ''
{% endmacro %}

{#- The default is a natural join, which loses each row with NULL in any column -#}
{% macro arctic__deduplicate(relation, partition_by, order_by) %}
  select * except (__dbt_row_number)
  from (
    select
      *,
      row_number() over (partition by {{ partition_by }} order by {{ order_by }}) as __dbt_row_number
    from {{ relation }}
  )
  where __dbt_row_number = 1
{% endmacro %}

{#- The default type is a VARCHAR, which requires a length in Spark -#}
{% macro arctic__unpivot(relation, cast_to, exclude, remove, field_name, value_name, quote_identifiers) -%}
  {%- set cast_to = type_string() if cast_to == 'varchar' else cast_to -%}
  {{ return(dbt_utils.default__unpivot(relation, cast_to, exclude, remove, field_name, value_name, quote_identifiers)) }}
{%- endmacro %}
