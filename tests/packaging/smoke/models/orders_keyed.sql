{{ config(materialized='incremental', unique_key='order_id', buckets=2) }}
SELECT order_id, customer, amount FROM {{ ref('orders_view') }}
