{#
  NULL where the value is none of that type; in ANSI mode a cast is an error then.
  Spark casts no text to an array, a map or a struct. So where a unit test gives text for one, as in
  {tags: "array('a', 'b')"}, the text is the expression itself.
#}
{% macro arctic__safe_cast(field, type) -%}
  {%- if cast_from_string_unsupported_for(type) and field is string and field.startswith("'") -%}
    {%- set field = field[1:-1] | replace("\\'", "'") | replace('\\\\', '\\') -%}
  {%- endif -%}
  try_cast({{ field }} as {{ type }})
{%- endmacro %}
