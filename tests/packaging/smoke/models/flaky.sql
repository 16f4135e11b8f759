{{ config(materialized='view') }}
SELECT {{ env_var('SMOKE_COLUMN', 'no_such_column') }} AS one FROM {{ ref('orders') }}
