{{ config(incremental_strategy='auto', unique_key='order_id') }}
select o.order_id, o.amount, o.ordered_on, c.name, c.region
from {{ ref('orders') }} as o
join {{ ref('customers') }} as c on c.customer_id = o.customer_id
where o.amount > 90
