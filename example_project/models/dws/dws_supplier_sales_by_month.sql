{{ config(incremental_strategy='auto', unique_key=['supplier_key', 'order_month'], bucket_by='supplier_key') }}

SELECT
    supplier_key,
    order_month,
    COUNT(*) AS line_count,
    CAST(SUM(quantity) AS DECIMAL(28, 2)) AS quantity,
    CAST(SUM(net_price) AS DECIMAL(28, 4)) AS net_amount,
    SUM(CASE WHEN receipt_date > commit_date THEN 1 ELSE 0 END) AS late_line_count
FROM {{ ref('dwd_order_lines') }}
GROUP BY supplier_key, order_month
