{#- dbt's own compares by exact spelling, and its query would begin with the sql_header -#}
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
  The SQL of a model as its contract has it: columns in the contract's order, and each row checked by the
  statement that writes it. Without a contract, the SQL as it is.

  stored: the columns of the table that is written to, where it exists
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
  A sql_header ahead of the statement that it is for. Spark takes one statement at a time, so all that end in a
  semicolon are run here, once in a session. Returns what is left: text to begin the statement with.
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
