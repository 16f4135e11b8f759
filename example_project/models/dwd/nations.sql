{{ config(materialized='ephemeral') }}

SELECT
    nation.n_nationkey AS nation_key,
    nation.n_name AS nation_name,
    region.r_name AS region_name
FROM {{ ref('nation') }} AS nation
INNER JOIN {{ ref('region') }} AS region
    ON nation.n_regionkey = region.r_regionkey
