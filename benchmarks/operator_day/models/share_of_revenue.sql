{{ config(incremental_strategy='auto', unique_key='customer_id') }}
-- A share of everything: no key is left untouched, so this one is computed in full.
select customer_id, amount, amount / sum(amount) over () as share
from {{ ref('revenue_by_customer') }}
