{{ config(materialized='table') }}

-- TPC-H Q1. Each average is one division of exact sums, so that every engine computes the same number.
SELECT
    return_flag,
    line_status,
    SUM(quantity) AS quantity,
    SUM(gross_price) AS gross_amount,
    SUM(net_price) AS net_amount,
    SUM(charge) AS charge,
    CAST(SUM(quantity) AS DOUBLE) / COUNT(*) AS average_quantity,
    CAST(SUM(gross_price) AS DOUBLE) / COUNT(*) AS average_price,
    CAST(SUM(discount) AS DOUBLE) / COUNT(*) AS average_discount,
    COUNT(*) AS line_count
FROM {{ ref('dwd_order_lines') }}
WHERE ship_date <= DATE '{{ var("q1_last_ship_date") }}'
GROUP BY return_flag, line_status
