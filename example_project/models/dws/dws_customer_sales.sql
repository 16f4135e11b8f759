{{ config(incremental_strategy='auto', unique_key='customer_key') }}

SELECT
    customer_key,
    COUNT(DISTINCT order_key) AS order_count,
    MIN(order_date) AS first_order_date,
    MAX(order_date) AS last_order_date,
    CAST(SUM(net_price) AS DECIMAL(28, 4)) AS net_amount,
    CAST(SUM(CASE WHEN return_flag = 'R' THEN net_price ELSE 0 END) AS DECIMAL(28, 4)) AS returned_amount
FROM {{ ref('dwd_order_lines') }}
GROUP BY customer_key
