{{ config(incremental_strategy='append') }}
-- A plain table, to which each round adds a few small files.
select /*+ repartition(6) */ id + {{ var('round') }} * 1000 as event_id, id % 7 as kind, {{ var('round') }} as round
from range(1000)
