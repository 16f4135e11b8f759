{# Fails for every key that is NULL in a column or that more than one row has: one scan for both. #}
{% test is_key(model, columns) %}
SELECT {{ columns | join(', ') }}, COUNT(*) AS row_count
FROM {{ model }}
GROUP BY {{ columns | join(', ') }}
HAVING COUNT(*) > 1
    {%- for column in columns %}
    OR {{ column }} IS NULL
    {%- endfor %}
{% endtest %}
