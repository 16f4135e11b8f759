-- TPC-H Q3, with the order key as the last sort column, so that the ten rows are always the same
SELECT
    order_key,
    SUM(net_price) AS revenue,
    order_date,
    ship_priority
FROM {{ ref('dwd_order_lines') }}
WHERE market_segment = '{{ var("q3_segment") }}'
    AND order_date < DATE '{{ var("q3_date") }}'
    AND ship_date > DATE '{{ var("q3_date") }}'
GROUP BY order_key, order_date, ship_priority
ORDER BY revenue DESC, order_date, order_key
LIMIT 10
