{{ config(unique_key='c_custkey') }}

SELECT
    c_custkey,
    c_name,
    c_address,
    c_nationkey,
    c_phone,
    c_acctbal,
    c_mktsegment,
    c_comment,
    change_op,
    change_seq,
    change_round,
    changed_at
FROM {{ incremental_pull(source('raw', 'customer')) }} AS feed
