{#
  The pieces of a model that says itself which of its keys a change upstream touches, and recomputes
  these: see dws_part_supply. Where the strategy `auto` can work that out, nothing of it is needed.

  The first run, and a full refresh, compute everything.
#}

{# The rows that changed upstream since this model's last commit; the whole upstream in a rebuild. #}
{% macro changed(relation, images='after') %}
    {%- if var('rebuild') -%}
        {{ relation }}
    {%- else -%}
        {{ incremental_pull(relation, images=images) }}
    {%- endif -%}
{% endmacro %}

{# What was computed is upserted; what was touched and is no more is deleted. `key` comes first in `current`. #}
{% macro upserts_and_deletes(current, key) -%}
    {%- if is_incremental() -%}
SELECT
    {%- for column in key %}
    touched.{{ column }},
    {%- endfor %}
    {{ current }}.* EXCEPT ({{ key | join(', ') }}),
    CASE WHEN {{ current }}.{{ key[0] }} IS NULL THEN 'D' ELSE 'U' END AS _action
FROM touched
LEFT JOIN {{ current }}
    ON {% for column in key -%}
        touched.{{ column }} = {{ current }}.{{ column }}{{ " AND " if not loop.last }}
    {%- endfor %}
    {%- else -%}
SELECT *, 'U' AS _action
FROM {{ current }}
    {%- endif -%}
{%- endmacro %}
