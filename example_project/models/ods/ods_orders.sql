{{ config(unique_key='o_orderkey') }}

SELECT
    o_orderkey,
    o_custkey,
    o_orderstatus,
    o_totalprice,
    o_orderdate,
    o_orderpriority,
    o_clerk,
    o_shippriority,
    o_comment,
    change_op,
    change_seq,
    change_round,
    changed_at
FROM {{ incremental_pull(source('raw', 'orders')) }} AS feed
