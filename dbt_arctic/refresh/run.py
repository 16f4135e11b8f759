"""One run of a keyed model whose table is there: which of the writes it is."""

from __future__ import annotations

from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.consumption import Consumption
from dbt_arctic.refresh.edge import Edge, Outcome
from dbt_arctic.refresh.interval import Interval
from dbt_arctic.refresh.microbatch import replace_keys
from dbt_arctic.refresh.overwrite import overwrite
from dbt_arctic.refresh.upsert import computed_upsert, upsert


def write_rows(
    edge: Edge, name: Name, config: KeyedConfig, sql: str, consumption: Consumption, interval: Interval | None
) -> Outcome:
    """:param interval: of the batch, for the strategy ``microbatch``."""
    if config.overwrite is not None:
        return overwrite(edge, name, config, sql, consumption)
    if consumption.consumed:
        return computed_upsert(edge, name, config, sql, consumption)
    if interval is not None:
        return replace_keys(edge, name, config, sql, interval)
    return upsert(edge, name, config, sql)
