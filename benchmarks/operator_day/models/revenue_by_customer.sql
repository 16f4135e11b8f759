{{ config(incremental_strategy='auto', unique_key='customer_id') }}
select customer_id, count(*) as orders, sum(amount) as amount
from {{ ref('orders') }}
group by customer_id
