{{ config(materialized='incremental', incremental_strategy='auto', unique_key='region') }}
SELECT region, count(*) AS orders, sum(amount) AS amount FROM {{ ref('orders') }} GROUP BY region
