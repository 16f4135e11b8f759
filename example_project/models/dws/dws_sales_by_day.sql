{{ config(incremental_strategy='auto', unique_key='order_date') }}

SELECT
    order_date,
    COUNT(DISTINCT order_key) AS order_count,
    COUNT(*) AS line_count,
    CAST(SUM(quantity) AS DECIMAL(28, 2)) AS quantity,
    CAST(SUM(gross_price) AS DECIMAL(28, 2)) AS gross_amount,
    CAST(SUM(net_price) AS DECIMAL(28, 4)) AS net_amount
FROM {{ ref('dwd_order_lines') }}
GROUP BY order_date
