{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=1, full_refresh_above=1.0) }}
SELECT customer, sum(amount) AS total, count(*) AS orders FROM {{ ref('orders_keyed') }} GROUP BY customer
