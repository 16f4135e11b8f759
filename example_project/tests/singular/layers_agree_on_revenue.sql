-- Every way of adding up the lines gives the same revenue; a row is returned for each layer that differs.
WITH lines AS (
    SELECT SUM(net_price) AS revenue FROM {{ ref('dwd_order_lines') }}
),
sums AS (
    SELECT 'by day' AS layer, SUM(net_amount) AS revenue FROM {{ ref('dws_sales_by_day') }}
    UNION ALL
    SELECT 'by customer', SUM(net_amount) FROM {{ ref('dws_customer_sales') }}
    UNION ALL
    SELECT 'by supplier and month', SUM(net_amount) FROM {{ ref('dws_supplier_sales_by_month') }}
    UNION ALL
    SELECT 'by nation and month', SUM(net_amount) FROM {{ ref('dws_nation_sales_by_month') }}
)
SELECT sums.layer, sums.revenue, lines.revenue AS revenue_of_lines
FROM sums
CROSS JOIN lines
WHERE sums.revenue <> lines.revenue
