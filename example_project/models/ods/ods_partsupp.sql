{{ config(unique_key=['ps_partkey', 'ps_suppkey'], bucket_by='ps_partkey') }}

SELECT
    ps_partkey,
    ps_suppkey,
    ps_availqty,
    ps_supplycost,
    ps_comment,
    change_op,
    change_seq,
    change_round,
    changed_at
FROM {{ incremental_pull(source('raw', 'partsupp')) }} AS feed
