"""Runs a keyed model whose table exists: chooses the kind of write."""

from __future__ import annotations

from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.microbatch import replace_keys
from dbt_arctic.refresh.overwrite import overwrite
from dbt_arctic.refresh.upsert import computed_upsert, upsert
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context, Outcome


def write_rows(
    context: Context,
    name: Name,
    config: KeyedConfig,
    sql: str,
    consumption: Consumption,
    interval: Interval | None,
) -> Outcome:
    """Write the rows of a model to its keyed table by the configured strategy.

    :param interval: the interval of the batch, for the strategy ``microbatch``.
    """
    if config.overwrite is not None:
        return overwrite(context, name, config, sql, consumption)
    if consumption.consumed:
        return computed_upsert(context, name, config, sql, consumption)
    if interval is not None:
        return replace_keys(context, name, config, sql, interval)
    return upsert(context, name, config, sql)
