{{ config(incremental_strategy='auto', unique_key='order_key') }}

SELECT
    orders.o_orderkey AS order_key,
    orders.o_orderdate AS order_date,
    CAST(DATE_TRUNC('MONTH', orders.o_orderdate) AS DATE) AS order_month,
    orders.o_orderstatus AS order_status,
    orders.o_orderpriority AS order_priority,
    orders.o_clerk AS clerk,
    orders.o_totalprice AS total_price,
    orders.o_custkey AS customer_key,
    customer.c_name AS customer_name,
    customer.c_mktsegment AS market_segment,
    nations.nation_name AS customer_nation,
    nations.region_name AS customer_region
FROM {{ ref('ods_orders') }} AS orders
INNER JOIN {{ ref('ods_customer') }} AS customer
    ON orders.o_custkey = customer.c_custkey
INNER JOIN {{ ref('nations') }} AS nations
    ON customer.c_nationkey = nations.nation_key
