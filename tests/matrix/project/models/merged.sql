{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
SELECT id, region, amount FROM {{ ref('raw') }}
