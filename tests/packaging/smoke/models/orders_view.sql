{{ config(materialized='view') }}
SELECT order_id, customer, amount, ordered_at FROM {{ ref('orders') }}
