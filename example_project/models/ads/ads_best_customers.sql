-- the hundred customers with the highest amount of goods that they bought and did not return
SELECT
    sales.customer_key,
    customer.c_name AS customer_name,
    customer.c_mktsegment AS market_segment,
    sales.order_count,
    sales.last_order_date,
    sales.net_amount - sales.returned_amount AS kept_amount
FROM {{ ref('dws_customer_sales') }} AS sales
INNER JOIN {{ ref('ods_customer') }} AS customer
    ON sales.customer_key = customer.c_custkey
ORDER BY kept_amount DESC, sales.customer_key
LIMIT 100
