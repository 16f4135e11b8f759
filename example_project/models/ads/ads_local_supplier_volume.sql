{{ config(materialized='table') }}

-- TPC-H Q5
SELECT
    lines.customer_nation AS nation,
    SUM(lines.net_price) AS revenue
FROM {{ ref('dwd_order_lines') }} AS lines
INNER JOIN {{ ref('ods_supplier') }} AS supplier
    ON lines.supplier_key = supplier.s_suppkey
    AND lines.customer_nation_key = supplier.s_nationkey
WHERE lines.customer_region = '{{ var("q5_region") }}'
    AND lines.order_date >= DATE '{{ var("q5_first_day") }}'
    AND lines.order_date < DATE '{{ var("q5_first_day") }}' + INTERVAL '1' YEAR
GROUP BY lines.customer_nation
