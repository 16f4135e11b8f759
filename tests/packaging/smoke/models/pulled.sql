{{ config(materialized='incremental', unique_key='order_id', buckets=1) }}
SELECT order_id, amount * 2 AS doubled FROM {{ incremental_pull(ref('orders_keyed')) }}
