{{ config(unique_key='customer_id', buckets=2) }}
-- Every customer at first; in each round one of a hundred moves.
select
  id as customer_id,
  concat('customer ', id) as name,
  element_at(array('north', 'east', 'south', 'west'), cast((id + {{ var('round') }}) % 4 as int) + 1) as region
from range({{ var('orders') // 20 }})
{% if is_incremental() %}where (id + {{ var('round') }}) % 100 = 0{% endif %}
