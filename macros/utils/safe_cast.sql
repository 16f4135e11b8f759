{#
  NULL if the value is not of that type, for which a cast is an error in ANSI mode. Spark cannot cast a
  string to an array, a map or a struct. So if a unit test specifies a string for one, as in {tags:
  "array('a', 'b')"}, the string is the expression itself.
#}
{% macro arctic__safe_cast(field, type) -%}
  {%- if cast_from_string_unsupported_for(type) and field is string and field.startswith("'") -%}
    {%- set field = field[1:-1] | replace("\\'", "'") | replace('\\\\', '\\') -%}
  {%- endif -%}
  try_cast({{ field }} as {{ type }})
{%- endmacro %}
