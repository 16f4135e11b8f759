{{ config(incremental_strategy='auto', unique_key=['order_key', 'line_number'], bucket_by='order_key') }}

SELECT
    lines.l_orderkey AS order_key,
    lines.l_linenumber AS line_number,
    orders.o_orderdate AS order_date,
    CAST(DATE_TRUNC('MONTH', orders.o_orderdate) AS DATE) AS order_month,
    orders.o_orderstatus AS order_status,
    orders.o_orderpriority AS order_priority,
    orders.o_shippriority AS ship_priority,
    orders.o_custkey AS customer_key,
    customer.c_mktsegment AS market_segment,
    nations.nation_key AS customer_nation_key,
    nations.nation_name AS customer_nation,
    nations.region_name AS customer_region,
    lines.l_partkey AS part_key,
    lines.l_suppkey AS supplier_key,
    lines.l_quantity AS quantity,
    lines.l_extendedprice AS gross_price,
    lines.l_discount AS discount,
    lines.l_tax AS tax,
    CAST(lines.l_extendedprice * (1 - lines.l_discount) AS DECIMAL(18, 4)) AS net_price,
    CAST(lines.l_extendedprice * (1 - lines.l_discount) * (1 + lines.l_tax) AS DECIMAL(18, 6)) AS charge,
    lines.l_returnflag AS return_flag,
    lines.l_linestatus AS line_status,
    lines.l_shipdate AS ship_date,
    lines.l_commitdate AS commit_date,
    lines.l_receiptdate AS receipt_date,
    lines.l_shipmode AS ship_mode
FROM {{ ref('ods_lineitem') }} AS lines
INNER JOIN {{ ref('ods_orders') }} AS orders
    ON lines.l_orderkey = orders.o_orderkey
INNER JOIN {{ ref('ods_customer') }} AS customer
    ON orders.o_custkey = customer.c_custkey
INNER JOIN {{ ref('nations') }} AS nations
    ON customer.c_nationkey = nations.nation_key
