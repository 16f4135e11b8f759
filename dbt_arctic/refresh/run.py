"""Runs a keyed model whose table exists: chooses the kind of write, or checks a run without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig, choose_strategy, parse_config
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.microbatch import replace_keys
from dbt_arctic.refresh.overwrite import overwrite
from dbt_arctic.refresh.upsert import check_unchanged_config, computed_upsert, upsert
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import find_keyed


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


def check_skipped(catalog: CatalogReader, name: Name, model: str, config: Mapping[str, Any]) -> None:
    """Check a model with a keyed table whose run has nothing to write.

    Otherwise a changed key would be an error of the next run that writes rows, which may be weeks later. The
    key of a history is compared when it is written, because its columns need Spark.

    :raises ConfigError: a setting that the stored rows depend on has changed.
    """
    table = find_keyed(catalog, name)
    if table is not None and choose_strategy(model, config) != "history":
        check_unchanged_config(parse_config(model, config), table)
