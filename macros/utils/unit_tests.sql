{#
  dbt's macro, except that a value of a fixture that its column cannot hold is an error. dbt's own one casts with
  safe_cast, so 10.7 is 10 in a column of integers, and a misspelled date is NULL.
#}
{% macro format_row(row, column_name_to_data_types) -%}
  {%- set formatted = {} -%}
  {%- for name, value in row.items() -%}
    {%- set name = name | lower -%}
    {%- if name not in column_name_to_data_types -%}
      {%- set fixture = 'expected output' if model.resource_type == 'unit_test' else "'" ~ model.name ~ "'" -%}
      {%- do exceptions.raise_compiler_error(
          "Invalid column name: '" ~ name ~ "' in unit test fixture for " ~ fixture ~ ".\nAccepted columns for "
          ~ fixture ~ ' are: ' ~ (column_name_to_data_types.keys() | list)) -%}
    {%- endif -%}
    {%- set type = column_name_to_data_types[name] -%}
    {%- set field = dbt.string_literal(dbt.escape_single_quotes(value)) if value is string
        else 'null' if value is none else value -%}
    {%- do formatted.update({name: adapter.fixture_value(model, name, type, value, field | string)
        or safe_cast(field, type)}) -%}
  {%- endfor -%}
  {{ return(formatted) }}
{%- endmacro %}
