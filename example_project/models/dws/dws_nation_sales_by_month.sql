{{ config(unique_key=['customer_nation', 'order_month'], bucket_by='customer_nation') }}

WITH touched AS (
    {{ touched(ref('dwd_order_lines'), ['customer_nation', 'order_month']) }}
),
sales AS (
    SELECT
        customer_nation,
        order_month,
        MAX(customer_region) AS customer_region,
        COUNT(DISTINCT customer_key) AS customer_count,
        COUNT(DISTINCT order_key) AS order_count,
        CAST(SUM(net_price) AS DECIMAL(28, 4)) AS net_amount
    FROM {{ ref('dwd_order_lines') }}
    {{ where_touched(['customer_nation', 'order_month']) }}
    GROUP BY customer_nation, order_month
)
{{ upserts_and_deletes('sales', ['customer_nation', 'order_month']) }}
