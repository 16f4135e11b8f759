-- TPC-H Q12: do cheaper shipping modes delay urgent orders?
SELECT
    ship_mode,
    SUM(CASE WHEN order_priority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
    SUM(CASE WHEN order_priority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low_line_count
FROM {{ ref('dwd_order_lines') }}
WHERE ship_mode IN ('MAIL', 'SHIP')
    AND commit_date < receipt_date
    AND ship_date < commit_date
    AND receipt_date >= DATE '{{ var("q12_first_day") }}'
    AND receipt_date < DATE '{{ var("q12_first_day") }}' + INTERVAL '1' YEAR
GROUP BY ship_mode
