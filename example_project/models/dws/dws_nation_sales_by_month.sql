{{ config(incremental_strategy='auto', unique_key=['customer_nation', 'order_month'], bucket_by='customer_nation') }}

SELECT
    customer_nation,
    order_month,
    MAX(customer_region) AS customer_region,
    COUNT(DISTINCT customer_key) AS customer_count,
    COUNT(DISTINCT order_key) AS order_count,
    CAST(SUM(net_price) AS DECIMAL(28, 4)) AS net_amount
FROM {{ ref('dwd_order_lines') }}
GROUP BY customer_nation, order_month
