{#
  The pieces of a model that recomputes only what its upstreams' changes can have touched. Such a
  model reads like this, and says which groups a change touches and nothing more about increments:

    WITH touched AS (
        {{ touched(ref('orders'), ['customer_key']) }}
    ),
    current AS (
        SELECT customer_key, SUM(amount) AS amount
        FROM {{ ref('orders') }}
        {{ where_touched(['customer_key']) }}
        GROUP BY customer_key
    )
    {{ upserts_and_deletes('current', ['customer_key']) }}

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

{#
  The keys of the groups that changed rows belong to, or belonged to before they changed: a row that
  moves from one group to another touches both. The after-image of a delete has no group: it is left out.
#}
{% macro touched(relation, columns) -%}
    SELECT DISTINCT {{ columns | join(', ') }}
        FROM {{ changed(relation, images='both') }} AS changed_rows
        WHERE {{ columns[0] }} IS NOT NULL
{%- endmacro %}

{% macro where_touched(columns) -%}
    {%- if is_incremental() -%}
        WHERE ({{ columns | join(', ') }}) IN (SELECT {{ columns | join(', ') }} FROM touched)
    {%- endif -%}
{%- endmacro %}

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
