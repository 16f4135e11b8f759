{{ config(materialized='table') }}
SELECT order_id, customer, amount FROM {{ ref('orders_view') }}
