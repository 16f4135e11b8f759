{{ config(unique_key='part_key') }}

WITH affected AS (
    SELECT p_partkey AS part_key
    FROM {{ changed(ref('ods_part')) }} AS changed_rows
    UNION
    SELECT ps_partkey
    FROM {{ changed(ref('ods_partsupp')) }} AS changed_rows
),
supply AS (
    SELECT
        part.p_partkey AS part_key,
        MAX(part.p_brand) AS brand,
        MAX(part.p_retailprice) AS retail_price,
        COUNT(*) AS supplier_count,
        SUM(offer.ps_availqty) AS available_quantity,
        MIN(offer.ps_supplycost) AS lowest_cost,
        MAX(part.p_retailprice) - MIN(offer.ps_supplycost) AS best_margin
    FROM {{ ref('ods_part') }} AS part
    INNER JOIN {{ ref('ods_partsupp') }} AS offer
        ON part.p_partkey = offer.ps_partkey
    {% if is_incremental() -%}
    WHERE part.p_partkey IN (SELECT part_key FROM affected)
    {%- endif %}
    GROUP BY part.p_partkey
)
{{ upserts_and_deletes('supply', ['part_key']) }}
