{#-
  Compares a model's columns with its contract. dbt's macro compares the exact spelling, and its query would
  begin with the sql_header.
-#}
{% macro arctic__get_assert_columns_equivalent(sql) -%}
  {%- if not model.columns -%}
    {{ exceptions.raise_contract_error([], []) }}
  {%- endif -%}
  {%- set mismatch = adapter.contract_mismatch(model, sql, get_empty_schema_sql(model.columns)) -%}
  {%- if mismatch -%}
    {{ exceptions.raise_contract_error(mismatch[0], mismatch[1]) }}
  {%- endif -%}
{%- endmacro %}

{#
  The SQL of a model under its contract: columns in the order of the contract, and checks of each row in the
  statement that writes it. Without a contract, the SQL is unchanged.
  stored: the columns of the target table, if it exists
#}
{% macro arctic__contracted(sql, stored=none) -%}
  {%- set contract_config = config.get('contract') -%}
  {%- if not (contract_config and contract_config.enforced) -%}
    {{ return(sql) }}
  {%- endif -%}
  {%- do get_assert_columns_equivalent(sql) -%}
  {{ return(adapter.contracted_sql(model, sql, stored)) }}
{%- endmacro %}

{#
  Run the sql_header of a statement. Spark accepts one statement at a time, so all statements that end with
  a semicolon are run here, once per session. Returns the rest, which must precede the statement.
#}
{% macro arctic__run_sql_header() -%}
  {%- set header = adapter.header_to_run(config.get('sql_header')) -%}
  {%- for header_sql in header[0] -%}
    {%- call statement('sql_header', auto_begin=False) -%}
      {{ header_sql }}
    {%- endcall -%}
  {%- endfor -%}
  {{ return(header[1]) }}
{%- endmacro %}
