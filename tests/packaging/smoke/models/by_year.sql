{{ config(materialized='incremental', incremental_strategy='microbatch', unique_key='order_id', buckets=1,
          event_time='ordered_at', batch_size='year', begin='2026-01-01') }}
SELECT order_id, ordered_at FROM {{ ref('orders_view') }}
