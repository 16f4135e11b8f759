{{ config(unique_key=['l_orderkey', 'l_linenumber'], bucket_by='l_orderkey') }}

SELECT
    l_orderkey,
    l_linenumber,
    l_partkey,
    l_suppkey,
    l_quantity,
    l_extendedprice,
    l_discount,
    l_tax,
    l_returnflag,
    l_linestatus,
    l_shipdate,
    l_commitdate,
    l_receiptdate,
    l_shipinstruct,
    l_shipmode,
    l_comment,
    change_op,
    change_seq,
    change_round,
    changed_at
FROM {{ incremental_pull(source('raw', 'lineitem')) }} AS feed
