{# Every model has the rows that a query over the seed gives, or those that differ are returned. #}
{% set expected = {
    'orders_table': 'SELECT order_id, customer, amount FROM ' ~ ref('orders'),
    'orders_keyed': 'SELECT order_id, customer, amount FROM ' ~ ref('orders'),
    'copied': 'SELECT order_id, customer, amount FROM ' ~ ref('orders'),
    'pulled': 'SELECT order_id, amount * 2 AS doubled FROM ' ~ ref('orders'),
    'totals': 'SELECT customer, sum(amount) AS total, count(*) AS orders FROM ' ~ ref('orders') ~ ' GROUP BY customer',
} %}
{% set models = [ref('orders_table'), ref('orders_keyed'), ref('copied'), ref('pulled'), ref('totals')] %}
{% for model in models %}
{% set query = expected[model.identifier] %}
SELECT '{{ model.identifier }}' AS model, CAST(struct(*) AS STRING) AS row FROM ({{ query }} EXCEPT SELECT * FROM {{ model }})
UNION ALL
SELECT '{{ model.identifier }}' AS model, CAST(struct(*) AS STRING) AS row FROM (SELECT * FROM {{ model }} EXCEPT {{ query }})
{{ 'UNION ALL' if not loop.last }}
{% endfor %}
