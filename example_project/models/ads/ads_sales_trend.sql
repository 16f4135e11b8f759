{{ config(materialized='table') }}

SELECT
    order_date,
    order_count,
    net_amount,
    SUM(net_amount) OVER (ORDER BY order_date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS net_amount_of_7_days
FROM {{ ref('dws_sales_by_day') }}
