{{ config(materialized='incremental', unique_key='order_id', buckets=1) }}
SELECT order_id FROM {{ ref('orders_view') }}
