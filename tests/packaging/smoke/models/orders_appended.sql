{{ config(materialized='incremental') }}
SELECT order_id, amount FROM {{ ref('orders_view') }}
{% if is_incremental() %}
WHERE order_id > (SELECT max(order_id) FROM {{ this }})
{% endif %}
