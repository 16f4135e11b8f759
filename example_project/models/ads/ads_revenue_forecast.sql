-- TPC-H Q6: the additional revenue if some discounts had not been given
SELECT COALESCE(SUM(gross_price * discount), 0) AS revenue
FROM {{ ref('dwd_order_lines') }}
WHERE ship_date >= DATE '{{ var("q6_first_day") }}'
    AND ship_date < DATE '{{ var("q6_first_day") }}' + INTERVAL '1' YEAR
    AND discount BETWEEN 0.05 AND 0.07
    AND quantity < 24
