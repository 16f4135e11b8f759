{{ config(incremental_strategy='auto', unique_key=['order_month', 'order_status'], bucket_by='order_month') }}

SELECT
    order_month,
    order_status,
    COUNT(*) AS order_count,
    SUM(CASE WHEN order_priority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_priority_count,
    CAST(SUM(total_price) AS DECIMAL(28, 2)) AS total_price
FROM {{ ref('dwd_orders') }}
GROUP BY order_month, order_status
