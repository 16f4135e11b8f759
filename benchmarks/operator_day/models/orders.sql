{{ config(unique_key='order_id', delete_when="status = 'cancelled'") }}
-- Every order at first; in each round one of fifty changes, some are new, a few are cancelled.
{% set first = var('orders') %}
select
  id as order_id,
  id * 7919 % {{ first // 20 }} as customer_id,
  case when (id + {{ var('round') }}) % 400 = 0 and {{ var('round') }} > 0 then 'cancelled' else 'open' end as status,
  cast((id * 31 + {{ var('round') }} * 17) % 10000 / 100.0 as decimal(12, 2)) as amount,
  date_add(date'2026-01-01', cast(id % 300 as int)) as ordered_on,
  sha2(concat(id, '-', {{ var('round') }}), 256) as note
{% if is_incremental() %}
from (
  select id from range({{ first }}) where (id + {{ var('round') }}) % 50 = 0
  union all
  select id from range({{ first + var('round') * 500 }}, {{ first + (var('round') + 1) * 500 }})
)
{% else %}
from range({{ first }})
{% endif %}
