{{ config(materialized='incremental', unique_key='id') }}
SELECT id, region, amount FROM {{ ref('raw') }}
