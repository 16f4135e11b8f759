{#
  Macros for a model that computes the keys that upstream changes affect, and recomputes these keys: see
  dws_part_supply. Models with the strategy `auto` do not need them.

  The first run and full refreshes compute everything.
#}

{# The upstream changes since this model's last commit. In a rebuild: the whole upstream. #}
{% macro changed(relation, images='after') %}
    {%- if var('rebuild') -%}
        {{ relation }}
    {%- else -%}
        {{ incremental_pull(relation, images=images) }}
    {%- endif -%}
{% endmacro %}

{# Upserts the rows of `current` and deletes the other keys of `affected`. `key` comes first in `current`. #}
{% macro upserts_and_deletes(current, key) -%}
    {%- if is_incremental() -%}
SELECT
    {%- for column in key %}
    affected.{{ column }},
    {%- endfor %}
    {{ current }}.* EXCEPT ({{ key | join(', ') }}),
    CASE WHEN {{ current }}.{{ key[0] }} IS NULL THEN 'D' ELSE 'U' END AS _action
FROM affected
LEFT JOIN {{ current }}
    ON {% for column in key -%}
        affected.{{ column }} = {{ current }}.{{ column }}{{ " AND " if not loop.last }}
    {%- endfor %}
    {%- else -%}
SELECT *, 'U' AS _action
FROM {{ current }}
    {%- endif -%}
{%- endmacro %}
