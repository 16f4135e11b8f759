{{ config(unique_key='s_suppkey') }}

SELECT
    s_suppkey,
    s_name,
    s_address,
    s_nationkey,
    s_phone,
    s_acctbal,
    s_comment,
    change_op,
    change_seq,
    change_round,
    changed_at
FROM {{ incremental_pull(source('raw', 'supplier')) }} AS feed
