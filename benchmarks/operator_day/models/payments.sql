{{ config(unique_key='order_id') }}
-- Pulls what changed in orders, deletes included.
select order_id, amount * 1.19 as paid, ordered_on, _action
from {{ incremental_pull(ref('orders')) }}
