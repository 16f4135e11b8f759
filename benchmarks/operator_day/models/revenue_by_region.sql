{{ config(incremental_strategy='auto', unique_key='region', buckets=1) }}
select region, count(*) as orders, sum(amount) as amount
from {{ ref('orders') }} as o
join {{ ref('customers') }} as c on c.customer_id = o.customer_id
group by region
